"""Caches settings for hooks."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.settings import trust
from holdfast.settings.layers import Settings
from holdfast.settings.resolved import Resolved
from holdfast.settings.sections import Notice

SETTLED_S = 1.0
YOUNG_FRESH_S = 0.1
"""A file that changed less than the first ago may still be written; it is checked again after the second."""

# The stamp of each file; None if it doesn't exist.
Signature = tuple[tuple[int, ...] | None, ...]


@dataclass(slots=True)
class _Entry:
    resolved: Resolved
    signature: Signature | None
    until: float
    used: float


class SettingsCache:
    def __init__(
        self, settings: Settings, *, clock: Callable[[], float] = time.monotonic, fresh: float = 1.0, limit: int = 256
    ) -> None:
        self.settings, self.clock, self.fresh, self.limit = settings, clock, fresh, limit
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def for_project(self, project: str = "") -> Resolved:
        """Never raises. The result is shared: read it only."""
        now = self.clock()
        entry = self._entries.get(project)
        # Without the lock: reading a dict entry is safe, and hooks come concurrently.
        if entry is not None and now < entry.until:
            entry.used = now
            return entry.resolved
        with self._lock:
            return self._refresh(project, now)

    def look_again(self, project: str = "") -> Resolved:
        """Read the files as they are now: for commands of people who just changed one."""
        with self._lock:
            return self._refresh(project, self.clock())

    def forget(self) -> None:
        with self._lock:
            self._entries.clear()

    def _refresh(self, project: str, now: float) -> Resolved:
        entry = self._entries.get(project)
        signature = self._signature(project)
        # Without a signature it is unknown whether something changed, so files are read each time.
        if entry is None or signature is None or signature != entry.signature:
            entry = _Entry(self._load(project), signature, now, now)
            self._entries[project] = entry
            self._evict()
        fresh = min(self.fresh, YOUNG_FRESH_S) if _is_young(signature) else self.fresh
        entry.until, entry.used = now + fresh, now
        return entry.resolved

    def _load(self, project: str) -> Resolved:
        try:
            return self.settings.load(project)
        except Exception as error:  # P1: a hook must not fail for its settings
            notice = Notice(
                str(project)[:200], 0, 0, f"settings could not be read: {error!r}"[:300], "Defaults are used."
            )
            defaults = self.settings.defaults()
            return Resolved(defaults, defaults.trees, [notice])

    def _signature(self, project: str) -> Signature | None:
        """Taken before reading, so that a change in between is noticed next time. None if unknown."""
        try:
            # Trusting a file changes what it may set, so the list of trusted files counts too.
            paths = [path for _, path in self.settings.all_files(project)] + [self.settings.config_dir / trust.FILE]
            return tuple(_file_stamp(path) for path in paths)
        except (ValueError, TypeError):
            return None

    def _evict(self) -> None:
        while len(self._entries) > self.limit:
            # The least recently used entry.
            del self._entries[min(self._entries, key=lambda name: self._entries[name].used)]


def _file_stamp(path: Path) -> tuple[int, ...] | None:
    try:
        file_stat = path.stat()
    except OSError:
        return None
    # Several numbers, because an editor may replace a file within one clock tick and keep its size.
    return file_stat.st_mtime_ns, file_stat.st_ctime_ns, file_stat.st_size, file_stat.st_ino


def _is_young(signature: Signature | None) -> bool:
    newest = max((max(stamp[:2]) for stamp in signature or () if stamp), default=0)
    return abs(time.time_ns() - newest) < SETTLED_S * 1_000_000_000
