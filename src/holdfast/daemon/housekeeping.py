"""Backups, retention and health checks, a little at a time."""

import time
from typing import TYPE_CHECKING

from holdfast.core.errors import HoldfastError, StoreDamaged
from holdfast.core.machine import release_unused_memory
from holdfast.core.times import DAY, now_ms
from holdfast.paths import INTENT_SUFFIX
from holdfast.stores import backup

if TYPE_CHECKING:
    from holdfast.daemon.body_encryption import BodyEncryption
    from holdfast.daemon.service import Daemon

# Events whose bodies are removed in one transaction.
EXPIRE_AT_ONCE = 500
ERASE_AGAIN_S = 60.0
# Seconds allowed for one page of history or old bodies.
INDEX_PATIENCE_S = 5.0
# After so many events, and so many seconds without one, unused memory goes back to the system.
MANY_EVENTS, QUIET_S = 5_000, 10.0


class Housekeeping:
    def __init__(self, daemon: "Daemon") -> None:
        self._daemon = daemon
        self._checked = False
        self._next_backup = 0.0
        self._next_expiry = 0.0
        self._expired = False
        self._next_erasures = time.monotonic() + ERASE_AGAIN_S
        self._encryption: BodyEncryption | None = None
        self._released_at = 0
        """The head of the log when memory was last released."""

    def round(self) -> None:
        # Each on its own: a failed backup does not prevent retention.
        for duty in (
            self._check_once,
            self._back_up,
            self._expire,
            self._retry_erasures,
            self._encrypt_bodies,
            self._release_memory,
        ):
            try:
                duty()
            except Exception as error:
                self._daemon.log.error("housekeeping.failed", error, duty=duty.__name__)

    def _check_once(self) -> None:
        """The whole-file check at start, in the background because a large file takes seconds."""
        if self._checked:
            return
        # Set before the check: a failing check is not repeated in every round.
        self._checked = True
        store = self._daemon.app.store
        try:
            backup.check_database(store.path)
        except StoreDamaged as error:
            self._daemon.call(lambda error=error: self._daemon.repair_store(error, store))

    def check_again(self) -> None:
        """Request a check, because a reader met damage."""
        self._checked = False

    def _release_memory(self) -> None:
        """An import leaves much of the heap unused, which the allocator would keep."""
        head = self._daemon.app.engine.head
        if head - self._released_at >= MANY_EVENTS and self._daemon.seconds_without_events() >= QUIET_S:
            self._released_at = head
            release_unused_memory()

    def _back_up(self) -> None:
        if time.monotonic() < self._next_backup:
            return
        # Seconds until the next look; whether a backup is made depends on the age of the newest one.
        self._next_backup = time.monotonic() + 600
        settings = self._daemon.app.settings.for_project("")["backup"]
        newest = next(iter(backup.list_backups(self._daemon.paths.backups)), None)
        # A backup from the future was made before the clock was set back.
        if newest and 0 <= time.time() - newest.stat().st_mtime < settings.hours * 3600:
            return
        try:
            with self._daemon.copying:
                made = backup.write_backup(self._daemon.app.store.path, self._daemon.paths.backups, keep=settings.keep)
            self._daemon.log("backup.written", path=made.name, bytes=made.stat().st_size)
        except HoldfastError as error:
            self._daemon.log.error("backup.failed", error)
            # A copy that fails its check casts doubt on the original: check that again.
            self._checked = self._checked and not isinstance(error, StoreDamaged)

    def _expire(self) -> None:
        if time.monotonic() < self._next_expiry:
            return
        days = self._daemon.app.settings.for_project("")["store"].body_days
        gone = self._expire_some(days) if days else 0
        # Small transactions, so that no hook waits.
        self._next_expiry = time.monotonic() + (0 if gone == EXPIRE_AT_ONCE else 3600)
        self._expired = self._expired or bool(gone)
        if self._expired and gone < EXPIRE_AT_ONCE:
            self._daemon.call(self._daemon.app.store.truncate_log)
            self._expired = False

    def _expire_some(self, days: int) -> int:
        older_than = now_ms() - days * DAY
        return self._daemon.worker.change_rows(lambda store: store.expire_bodies(older_than, EXPIRE_AT_ONCE))

    def _retry_erasures(self) -> None:
        if time.monotonic() >= self._next_erasures:
            self._next_erasures = time.monotonic() + ERASE_AGAIN_S
            if any(self._daemon.paths.run.glob(f"*{INTENT_SUFFIX}")):
                self.finish_erasures()

    def _encrypt_bodies(self) -> None:
        self.encryption.round()

    @property
    def encryption(self) -> "BodyEncryption":
        if self._encryption is None:
            from holdfast.daemon.body_encryption import BodyEncryption  # Here, because a start should not wait for it.

            self._encryption = BodyEncryption(self._daemon)
        return self._encryption

    def finish_erasures(self) -> None:
        from holdfast.daemon.erase import finish_open_erasures  # Here, because a start should not wait for it.

        finish_open_erasures(self._daemon)
