"""Finds what keeps Holdfast from doing all its work: one list for every place that shows it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.event import own_event
from holdfast.core.kinds.engine_events import HealthChanged, Trouble
from holdfast.core.ports import Reader
from holdfast.core.replay import sample_differences
from holdfast.core.times import DAY, format_bytes, now_ms
from holdfast.features.log.health import HEALTH, THE_HEALTH, trouble_line
from holdfast.paths import plain_files

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

JOURNAL_WAITS = "hooks that were answered before the daemon last ended wait in its encrypted journal for the keyring"
SPOOL_PATIENCE_MS = 60_000
QUIET_S = 30.0
LOGS = "holdfast daemon logs"


class Health:
    def __init__(self, daemon: "Daemon") -> None:
        self._daemon = daemon
        self._since: dict[str, int] = {}
        self._lock = threading.Lock()
        self._recorded: set[str] | None = None
        self._differences: list[str] = []
        self._next_comparison = time.monotonic() + QUIET_S

    def troubles(self, reader: Reader) -> list[Trouble]:
        found = {one.name: one for one in self._find(reader)}
        now = now_ms()
        with self._lock:
            # One that was fixed and comes back begins again.
            self._since = {name: one.since or self._since.get(name, now) for name, one in found.items()}
            for name, one in found.items():
                one.since = self._since[name]
        return list(found.values())

    def described(self, reader: Reader) -> list[dict[str, Any]]:
        now = now_ms()
        return [{**msgspec.to_builtins(one), "line": trouble_line(one, now)} for one in self.troubles(reader)]

    def round(self) -> None:
        """Compare documents with the log now and then, and record what changed."""
        reader = self._daemon.app.store.reader()
        try:
            self._compare(reader)
            self._record(reader)
        finally:
            reader.close()

    def _compare(self, reader: Reader) -> None:
        if time.monotonic() < self._next_comparison or self._daemon.seconds_without_events() < QUIET_S:
            return
        self._next_comparison = time.monotonic() + DAY / 1000
        self._differences = sample_differences(self._daemon.app.features, reader)

    def _record(self, reader: Reader) -> None:
        if self._recorded is None:
            doc = HEALTH.load(reader, THE_HEALTH)
            known = doc.troubles if doc else []
            self._since = {one.name: one.since for one in known}
            self._recorded = {one.name for one in known}
        troubles = self.troubles(reader)
        if self._recorded != (names := {one.name for one in troubles}):
            event = own_event(HealthChanged(troubles=troubles), now_ms())
            self._daemon.call(lambda: self._daemon.pipeline.commit_events([event]))
            self._recorded = names

    def _find(self, reader: Reader) -> Iterator[Trouble]:
        daemon = self._daemon
        if refusing := daemon.store_guard.refusing:
            yield Trouble("store", f"the store refuses to write: {refusing}", "holdfast doctor")
        for feature, count in daemon.errors.items():
            yield Trouble(f"rules/{feature}", f"{feature}: {count} rules failed", LOGS)
        for feature in sorted(daemon.app.engine.suspended):
            yield Trouble(
                f"rebuild/{feature}", f"{feature} is being rebuilt from the log; until then it judges nothing"
            )
        yield from self._find_in_bodies()
        yield from self._find_waiting_files()
        if self._differences:
            count, first = len(self._differences), self._differences[0]
            yield Trouble("replay", f"{count} documents are not what the log says: {first}", "holdfast data rebuild")
        if dead := reader.counts().get("dead_jobs"):
            yield Trouble("jobs", f"{dead} background jobs failed", LOGS)

    def _find_in_bodies(self) -> Iterator[Trouble]:
        bodies = self._daemon.background.housekeeping.encryption.status()
        if bodies["problem"]:
            text = f"payloads are not stored: {bodies['problem']}"
            yield Trouble("bodies", text, "unlock the keyring, or: holdfast config set store.encrypt_bodies false")
        if bodies["journal_waits"]:
            yield Trouble("journal", JOURNAL_WAITS, "start or unlock the keyring")
        if bodies["unreadable"]:
            text = f"{bodies['unreadable']} stored payloads cannot be decrypted: their key is not in the keyring"
            yield Trouble("keys", text, "put the key back, or let them expire (store.body_days)")

    def _find_waiting_files(self) -> Iterator[Trouble]:
        paths = self._daemon.paths
        size, since = _size_and_age(paths.spool)
        if size and now_ms() - since > SPOOL_PATIENCE_MS:
            yield Trouble("spool", f"{format_bytes(size)} of hooks wait in the spool", LOGS, since)
        size, since = _size_and_age(paths.quarantine)
        if size:
            text = f"{format_bytes(size)} that could not be read are set aside in {paths.quarantine}"
            yield Trouble("quarantine", text, "look at them, then remove that folder", since)


def _size_and_age(folder: Path) -> tuple[int, int]:
    """Bytes in it, and the time of its oldest file in ms."""
    stats = []
    for path in plain_files(folder):
        try:
            stats.append(path.lstat())
        except OSError:
            continue
    oldest = min((one.st_mtime_ns for one in stats), default=0)
    return sum(one.st_size for one in stats), oldest // 1_000_000
