"""Backups, retention and health checks, a little at a time."""

import time
from typing import TYPE_CHECKING

from holdfast.app import now_ms
from holdfast.core.errors import HoldfastError, StoreDamaged
from holdfast.stores import backup, sqlite_path

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

EXPIRE_AT_ONCE = 500
DAY_MS = 86_400_000


class Housekeeping:
    def __init__(self, daemon: "Daemon") -> None:
        self._daemon = daemon
        self._checked = False
        self._next_backup = 0.0
        self._next_expiry = 0.0

    def round(self) -> None:
        for duty in (self._check_once, self._back_up, self._expire):
            try:
                duty()
            except Exception as error:
                self._daemon.log.error("housekeeping.failed", error, duty=duty.__name__)

    def _check_once(self) -> None:
        """The whole-file check of the start, done beside the hooks because a large file takes seconds."""
        path = sqlite_path(self._daemon.app.store.url)
        if self._checked or not path:
            return
        self._checked = True
        store = self._daemon.app.store
        try:
            backup.check(path)
        except StoreDamaged as error:
            self._daemon.call(lambda error=error: self._daemon.repair_store(error, store))

    def check_again(self) -> None:
        """Somebody who read met damage."""
        self._checked = False

    def _back_up(self) -> None:
        path = sqlite_path(self._daemon.app.store.url)
        if not path or time.monotonic() < self._next_backup:
            return
        self._next_backup = time.monotonic() + 600
        settings = self._daemon.app.settings.for_project("")["backup"]
        newest = next(iter(backup.listed(self._daemon.paths.backups)), None)
        # One from the future was made before the clock was set back.
        if newest and 0 <= time.time() - newest.stat().st_mtime < settings.hours * 3600:
            return
        try:
            made = backup.write(path, self._daemon.paths.backups, keep=settings.keep)
            self._daemon.log("backup.written", path=made.name, bytes=made.stat().st_size)
        except HoldfastError as error:
            self._daemon.log.error("backup.failed", error)
            # A copy that does not check out was made from something: look at that again.
            self._checked = self._checked and not isinstance(error, StoreDamaged)

    def _expire(self) -> None:
        if time.monotonic() < self._next_expiry:
            return
        days = self._daemon.app.settings.for_project("")["store"].body_days
        gone = self._daemon.call(lambda: self._expire_some(days)) if days else 0
        # Small bites, so that no hook waits for the broom.
        self._next_expiry = time.monotonic() + (0 if gone == EXPIRE_AT_ONCE else 3600)

    def _expire_some(self, days: int) -> int:
        store = self._daemon.app.store
        with store.transaction():
            return store.expire_bodies(now_ms() - days * DAY_MS, EXPIRE_AT_ONCE)
