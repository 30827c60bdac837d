"""What many files of one folder look like from outside, and which of them look otherwise than before.

One call of native/stamps.c looks at all of them while other threads run; where it was not built, Python does the same.
"""

import os
import threading
import time
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FIELDS = 5
"""When it was written, when its entry changed, size, number, kind and mode; all zero where there is no such file."""
Stamp = tuple[int, int, int, int, int]
MISSING: Stamp = (0, 0, 0, 0, 0)
UNSETTLED = -1
SETTLED_NS = 20_000_000
"""A file that was written within one tick of the clock can change again without a new stamp."""
# Fewer names than the first are not worth a thread.
NAMES_OF_A_THREAD, MAX_THREADS = 3_000, 4
_LIBRARY = Path(__file__).parents[1] / "redact" / "libanchors.so"


def read_stamp(path: str) -> Stamp:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    return stamp_of(found)


def stamp_of(found: os.stat_result) -> Stamp:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)


MOST_SMALL_FILES, SMALL_FILE = 1_000, 64 * 1024
_small_files: dict[str, tuple[Stamp, bytes]] = {}


def read_small_file(path: str) -> bytes:
    """The beginning of a file that is asked for at every hook: read again only when its stamp is another. Raises OSError."""
    found = os.stat(path)
    stamp = stamp_of(found)
    known = _small_files.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    # NONBLOCK: a named pipe under this path must not hold up the hook.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        content = os.read(file, SMALL_FILE)
    finally:
        os.close(file)
    # Its time can be set back by whoever writes it, that of its entry cannot.
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > SETTLED_NS:
        if len(_small_files) >= MOST_SMALL_FILES:
            _small_files.clear()
        _small_files[path] = (stamp, content)
    return content


class _Part(NamedTuple):
    """Names that one thread looks at: the place of the first, how many, and where they begin in the packed names."""

    first: int
    size: int
    offset: int


class FileStamps:
    """Stamps of names below one folder, in the order they were given."""

    def __init__(self, root: str, names: Sequence[str]) -> None:
        """Reads them all. Raises OSError where one cannot be looked at."""
        self._root, self.names = root, names
        packed = [os.fsencode(name) + b"\0" for name in names]
        self._packed, self._parts = b"".join(packed), _split_names(packed)
        self._stamps = array("q", bytes(8 * FIELDS * len(names)))
        if not self._look_natively(None):
            for place, name in enumerate(names):
                self.set_stamp(place, read_stamp(os.path.join(root, name)))
        self._mark_unsettled(time.time_ns() - SETTLED_NS)

    def find_changed(self) -> list[int]:
        """Places of the names that look otherwise than when they were read or set."""
        changed: list[list[int]] = [[] for _ in self._parts]
        if self._look_natively(changed):
            return [place for places in changed for place in places]
        root = self._root
        return [n for n, name in enumerate(self.names) if read_stamp(os.path.join(root, name)) != self.stamp(n)]

    def stamp(self, place: int) -> Stamp:
        return tuple(self._stamps[place * FIELDS : (place + 1) * FIELDS])  # type: ignore[return-value]

    def set_stamp(self, place: int, stamp: Stamp) -> None:
        self._stamps[place * FIELDS : (place + 1) * FIELDS] = array("q", stamp)

    def forget(self, places: Iterable[int]) -> None:
        """These are reported by every later look."""
        for place in places:
            # No file was written at this time, so the comparison always fails.
            self._stamps[place * FIELDS] = UNSETTLED

    def _mark_unsettled(self, newest: int) -> None:
        self.forget([n for n in range(len(self.names)) if self._stamps[n * FIELDS] > newest])

    def _look_natively(self, changed: list[list[int]] | None) -> bool:
        """Reads the stamps, or compares them and fills `changed`. False: it has to be done without the library."""
        look = _native_look()
        if look is None:
            return False
        from ctypes import c_uint32

        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        done = [False] * len(self._parts)

        def look_at(number: int) -> None:
            part = self._parts[number]
            found = (c_uint32 * max(1, part.size))() if changed is not None else None
            # Eight bytes for each field, from the first name of this part on.
            stamps = self._stamps.buffer_info()[0] + 8 * FIELDS * part.first
            count: int = look(folder, self._packed[part.offset :], part.size, stamps, found)
            done[number] = count >= 0
            if changed is not None and found is not None and count > 0:
                changed[number] = [part.first + place for place in found[:count]]

        try:
            # The interpreter's lock is free meanwhile: the parts take as long as one of them where there are processors.
            threads = [threading.Thread(target=look_at, args=(n,), daemon=True) for n in range(1, len(self._parts))]
            for thread in threads:
                thread.start()
            look_at(0)
            for thread in threads:
                thread.join()
        finally:
            os.close(folder)
        return all(done)


def _split_names(packed: Sequence[bytes]) -> list[_Part]:
    each = max(NAMES_OF_A_THREAD, -(-len(packed) // MAX_THREADS))
    parts, offset = [], 0
    for first in range(0, max(1, len(packed)), each):
        some = packed[first : first + each]
        parts.append(_Part(first, len(some), offset))
        offset += sum(map(len, some))
    return parts


@cache
def _native_look() -> Any:
    import ctypes  # Commands that only want a branch do without it.

    try:
        look = ctypes.CDLL(str(_LIBRARY)).holdfast_look_at_files
    except (OSError, AttributeError):
        return None  # It was not built for this machine, or by an older version.
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    look.argtypes, look.restype = (ctypes.c_int, ctypes.c_char_p, size, pointer, pointer), ctypes.c_int64
    return look
