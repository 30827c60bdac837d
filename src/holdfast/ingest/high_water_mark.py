"""How far the log had come, told by another file than the log itself.

A damaged write-ahead log looks to SQLite like one that ends earlier: without a second witness the events behind the
damage would be gone without a word (P7). Written after the commit and never synced, so after a power cut it may lag
behind, but it is never ahead of what was acknowledged.
"""

import contextlib
import os
from pathlib import Path

WIDTH = 20


class HighWaterMark:
    """Of one SQLite file; of nothing where the store is a server."""

    def __init__(self, database: Path | None) -> None:
        self._path, self._fd = database and _beside(database), -1
        self.head = _read(self._path) if self._path else 0

    def saw(self, head: int) -> None:
        if head == self.head or not self._path:
            return
        self.head = head
        with contextlib.suppress(OSError):  # A full disk: then it lags behind, which is allowed.
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.pwrite(self._fd, f"{head:{WIDTH}d}\n".encode(), 0)


def forget(database: Path) -> None:
    """Somebody went back to an older state on purpose: that is no loss."""
    _beside(database).unlink(missing_ok=True)


def _beside(database: Path) -> Path:
    return database.with_suffix(".head")


def _read(path: Path) -> int:
    try:
        text = path.read_bytes()[:WIDTH].strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() and len(text) < WIDTH - 1 else 0
