"""The demo's clock."""

import mmap
import os
import time
from pathlib import Path

SIZE = 8
_now = time.time_ns
MILLION = 1_000_000


def _shared_number(path: Path) -> memoryview:
    """The file as one signed number, shared between processes."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, SIZE)
        return memoryview(mmap.mmap(fd, SIZE)).cast("q")
    finally:
        os.close(fd)


class Clock:
    """The player's control of the clock. It never goes back, and never beyond now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset_ns = _shared_number(path)

    def now(self) -> int:
        return (_now() + self._offset_ns[0]) // MILLION

    def move_to(self, at: int) -> int:
        """Milliseconds since 1970; return the resulting moment."""
        # Not before its position, not after the real time.
        moved = min(0, max(at * MILLION - _now(), self._offset_ns[0]))
        self._offset_ns[0] = moved
        return self.now()

    def begin(self, at: int) -> None:
        self._offset_ns[0] = at * MILLION - _now()


def use_demo_clock(path: Path) -> None:
    """Use the demo's clock in this process. Call it before anything else is imported."""
    offset_ns = _shared_number(path)
    time.time_ns = lambda: _now() + offset_ns[0]
    time.time = lambda: (_now() + offset_ns[0]) / 1e9
