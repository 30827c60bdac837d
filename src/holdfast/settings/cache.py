"""Settings at the speed of a hook: files are looked at once a second at most, and a fault never gets out."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast import trust
from holdfast.settings.notice import Notice
from holdfast.settings.resolved import Resolved
from holdfast.settings.settings import Settings

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
        """Never raises. What is returned is shared: read it only."""
        now = self.clock()
        entry = self._entries.get(project)
        if entry is not None and now < entry.until:
            entry.used = now
            return entry.resolved
        with self._lock:
            return self._refresh(project, now)

    def look_again(self, project: str = "") -> Resolved:
        """As the files are at this moment: for commands of people, who have just changed one."""
        with self._lock:
            return self._refresh(project, self.clock())

    def forget(self) -> None:
        with self._lock:
            self._entries.clear()

    def _refresh(self, project: str, now: float) -> Resolved:
        entry = self._entries.get(project)
        signature = self._signature(project)
        if entry is None or signature is None or signature != entry.signature:
            entry = _Entry(self._load(project), signature, now, now)
            self._entries[project] = entry
            self._evict()
        entry.until, entry.used = now + self.fresh, now
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
        """Taken before reading, so that a change in between is seen the next time. None: cannot be known."""
        try:
            paths = [path for _, path in self.settings.all_files(project)] + [self.settings.config_dir / trust.FILE]
            return tuple(_stamp(path) for path in paths)
        except (ValueError, TypeError):
            return None

    def _evict(self) -> None:
        while len(self._entries) > self.limit:
            del self._entries[min(self._entries, key=lambda name: self._entries[name].used)]


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
