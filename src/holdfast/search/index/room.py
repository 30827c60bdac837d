"""An index may be made again, the log may not: a run ends before it takes the last of the disk they share."""

import os
from pathlib import Path

import apsw

from holdfast.core.errors import HoldfastError

KEPT_FREE = 64 << 20
KEPT_SHARE = 0.1
"""Of a disk so small that the above were most of it."""


class DiskAlmostFull(HoldfastError):
    """The disk is full"""


def check(db: apsw.Connection, folder: Path) -> None:
    """Raises DiskAlmostFull. Pages of the index that hold nothing any more count as free: they are used first."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize + int(db.pragma("freelist_count")) * int(db.pragma("page_size"))
    if free < min(KEPT_FREE, disk.f_blocks * disk.f_frsize * KEPT_SHARE):
        raise DiskAlmostFull(
            f"{free >> 20} MB are free, the log needs them",
            where=str(folder),
            fix="Make room, then run: holdfast index run. Until then the index answers as it is.",
        )
