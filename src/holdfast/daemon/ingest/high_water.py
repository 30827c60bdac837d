"""Records how far the log had come in a file of its own."""

import contextlib
import os
from pathlib import Path

# In digits, padded with blanks: a shorter number leaves nothing of a longer one behind.
WIDTH = 20


class HighWaterMark:
    """Of one SQLite file."""

    def __init__(self, database: Path) -> None:
        self._path, self._fd = _mark_file(database), -1
        self.head = _read_mark(self._path)

    def saw(self, head: int) -> None:
        if head == self.head:
            return
        self.head = head
        with contextlib.suppress(OSError):  # A full disk: then it lags behind, which is allowed.
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.pwrite(self._fd, f"{head:{WIDTH}d}\n".encode(), 0)


def remove_high_water_mark(database: Path) -> None:
    """Somebody went back to an older state on purpose: that is no loss."""
    _mark_file(database).unlink(missing_ok=True)


def _mark_file(database: Path) -> Path:
    return database.with_suffix(".head")


def _read_mark(path: Path) -> int:
    try:
        text = path.read_bytes()[:WIDTH].strip()
    except OSError:
        return 0
    # A number that fills the whole width was not written by us.
    return int(text) if text.isdigit() and len(text) < WIDTH - 1 else 0
