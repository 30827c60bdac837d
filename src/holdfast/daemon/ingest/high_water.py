"""Records in a file of its own how far the log has come."""

import contextlib
import os
from pathlib import Path

# In digits, padded with blanks, so that a shorter number overwrites a longer one.
WIDTH = 20


class HighWaterMark:
    """The mark of one SQLite file."""

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
    """Remove the mark after a deliberate return to an older state, which is no loss."""
    _mark_file(database).unlink(missing_ok=True)


def _mark_file(database: Path) -> Path:
    return database.with_suffix(".head")


def _read_mark(path: Path) -> int:
    try:
        text = path.read_bytes()[:WIDTH].strip()
    except OSError:
        return 0
    # A number of full width was not written by us.
    return int(text) if text.isdigit() and len(text) < WIDTH - 1 else 0
