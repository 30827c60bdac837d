"""Backups, retention and health checks, a little at a time."""

import time
from typing import TYPE_CHECKING

from holdfast.app import now_ms
from holdfast.core.errors import HoldfastError, StoreDamaged
from holdfast.paths import INTENT_SUFFIX
from holdfast.stores import backup, sqlite_path

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

EXPIRE_AT_ONCE = 500
DAY_MS = 86_400_000
ERASE_AGAIN_S = 60.0


class Housekeeping:
    def __init__(self, daemon: "Daemon") -> None:
        self._daemon = daemon
        self._checked = False
        self._next_backup = 0.0
        self._next_expiry = 0.0
        self._expired = False
        self._next_erasures = time.monotonic() + ERASE_AGAIN_S

    def round(self) -> None:
        for duty in (self._check_once, self._back_up, self._expire, self._retry_erasures):
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
            with self._daemon.copying:
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
        self._expired = self._expired or bool(gone)
        if self._expired and gone < EXPIRE_AT_ONCE:
            self._daemon.call(self._daemon.app.store.truncate_log)
            self._expired = False

    def _expire_some(self, days: int) -> int:
        store = self._daemon.app.store
        with store.transaction():
            return store.expire_bodies(now_ms() - days * DAY_MS, EXPIRE_AT_ONCE)

    def _retry_erasures(self) -> None:
        if time.monotonic() >= self._next_erasures:
            self._next_erasures = time.monotonic() + ERASE_AGAIN_S
            if any(self._daemon.paths.run.glob(f"*{INTENT_SUFFIX}")):
                self.finish_erasures()

    def finish_erasures(self) -> None:
        from holdfast.daemon.erase import finish_open_erasures  # Here, because a start should not wait for it.

        finish_open_erasures(self._daemon)
