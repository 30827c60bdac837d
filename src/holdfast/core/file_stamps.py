"""What many files of one folder look like from outside, and which of them look otherwise than before.

One call of native/stamps.c looks at all of them while other threads run; where it was not built, Python does the same.
"""

import ctypes
import os
import time
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FIELDS = 5
"""When it was written, when its entry changed, size, number, kind and mode; all zero where there is no such file."""
Stamp = tuple[int, int, int, int, int]
MISSING: Stamp = (0, 0, 0, 0, 0)
UNSETTLED = -1
SETTLED_NS = 20_000_000
"""A file that was written within one tick of the clock can change again without a new stamp."""
_LIBRARY = Path(__file__).parents[1] / "redact" / "libanchors.so"


def read_stamp(path: str) -> Stamp:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    return stamp_of(found)


def stamp_of(found: os.stat_result) -> Stamp:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)


class FileStamps:
    """Stamps of names below one folder, in the order they were given."""

    def __init__(self, root: str, names: Sequence[str]) -> None:
        """Reads them all. Raises OSError where one cannot be looked at."""
        self._root, self.names = root, names
        self._packed = b"".join(os.fsencode(name) + b"\0" for name in names)
        self._stamps = array("q", bytes(8 * FIELDS * len(names)))
        if self._look(None) is None:
            for place, name in enumerate(names):
                self.set_stamp(place, read_stamp(os.path.join(root, name)))
        self._mark_unsettled(time.time_ns() - SETTLED_NS)

    def find_changed(self) -> Sequence[int]:
        """Places of the names that look otherwise than when they were read or set."""
        changed = (ctypes.c_uint32 * max(1, len(self.names)))()
        count = self._look(changed)
        if count is not None:
            return changed[:count]
        root = self._root
        return [n for n, name in enumerate(self.names) if read_stamp(os.path.join(root, name)) != self.stamp(n)]

    def stamp(self, place: int) -> Stamp:
        return tuple(self._stamps[place * FIELDS : (place + 1) * FIELDS])  # type: ignore[return-value]

    def set_stamp(self, place: int, stamp: Stamp) -> None:
        self._stamps[place * FIELDS : (place + 1) * FIELDS] = array("q", stamp)

    def forget(self, places: Iterable[int]) -> None:
        """These are reported by every later look."""
        for place in places:
            self._stamps[place * FIELDS] = UNSETTLED

    def _mark_unsettled(self, newest: int) -> None:
        self.forget([n for n in range(len(self.names)) if self._stamps[n * FIELDS] > newest])

    def _look(self, changed: "ctypes.Array[ctypes.c_uint32] | None") -> int | None:
        """How many changed; None where it has to be done without the library."""
        look = _native_look()
        if look is None or not self.names:
            return None if self.names else 0
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            address, _ = self._stamps.buffer_info()
            found: int = look(folder, self._packed, len(self.names), address, changed)
        finally:
            os.close(folder)
        return None if found < 0 else found


@cache
def _native_look() -> Any:
    try:
        look = ctypes.CDLL(str(_LIBRARY)).holdfast_look_at_files
    except (OSError, AttributeError):
        return None  # It was not built for this machine, or by an older version.
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    look.argtypes, look.restype = (ctypes.c_int, ctypes.c_char_p, size, pointer, pointer), ctypes.c_int64
    return look
