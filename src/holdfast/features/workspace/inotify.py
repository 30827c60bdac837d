"""Linux inotify through the C library: events are in the queue before the call that caused them returns."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
OVERFLOW, IGNORED, IS_DIR = 0x4000, 0x8000, 0x40000000
_ONLY_DIR, _DONT_FOLLOW, _EXCLUDE_UNLINKED = 0x01000000, 0x02000000, 0x04000000
_WATCHED = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
    | _ONLY_DIR | _DONT_FOLLOW | _EXCLUDE_UNLINKED
)  # fmt: skip
_HEAD = struct.Struct("iIII")
_BUFFER = 256 * 1024


class Notice(NamedTuple):
    watch: int
    mask: int
    name: str


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class Inotify:
    """Raises OSError where the system has no inotify, or no more of it."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("this system has no inotify")
        self.fd = _library().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _last_error("inotify")

    def watch(self, folder: str) -> int:
        """Watch one folder, without what is below. Raises OSError: ENOSPC if no watches are left."""
        number: int = _library().inotify_add_watch(self.fd, os.fsencode(folder), ctypes.c_uint32(_WATCHED))
        if number < 0:
            raise _last_error(folder)
        return number

    def unwatch(self, number: int) -> None:
        """The kernel may have removed it already."""
        _library().inotify_rm_watch(self.fd, number)

    def read(self) -> Iterator[Notice]:
        """Everything that is in the queue."""
        while True:
            try:
                read = os.read(self.fd, _BUFFER)
            except BlockingIOError:
                return
            at = 0
            while at < len(read):
                number, mask, _cookie, length = _HEAD.unpack_from(read, at)
                at += _HEAD.size
                yield Notice(number, mask, os.fsdecode(read[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        os.close(self.fd)


def _last_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
