"""How far the log had come, told by another file than the log itself.

A damaged write-ahead log looks to SQLite like one that ends earlier: without a second witness the events behind the
damage would be gone without a word (P7). Written after the commit and never synced, so after a power cut it may lag
behind, but it is never ahead of what was acknowledged.
"""

import contextlib
import os
from pathlib import Path

WIDTH = 20


class Witness:
    def __init__(self, path: Path) -> None:
        self._path, self._fd = path, -1
        self.head = _read(path)

    def saw(self, head: int) -> None:
        if head == self.head:
            return
        self.head = head
        with contextlib.suppress(OSError):  # A full disk: then it lags behind, which is allowed.
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.pwrite(self._fd, f"{head:{WIDTH}d}\n".encode(), 0)


def _read(path: Path) -> int:
    try:
        text = path.read_bytes()[:WIDTH].strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() and len(text) < WIDTH - 1 else 0
