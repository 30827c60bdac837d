"""Opens the database of an index."""

import os
from pathlib import Path
from typing import Any

import apsw

from holdfast.core.errors import HoldfastError

FORMAT = "5"
"""Raised when chunks or words are stored differently: indexes of another format are rebuilt."""
SCHEMA = Path(__file__).with_name("schema.sql")
# How long a connection waits for another one's lock.
BUSY_MS = 5_000


class IndexDamaged(HoldfastError):
    """The code index is damaged"""


DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)


def create_database(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    _set_pragmas(db)
    with db:
        for statement in db.execute(SCHEMA.read_text()):
            # The script has many statements: iterating the cursor runs them all.
            del statement
        db.execute("insert into meta values ('format', ?)", (FORMAT,))
    # The index contains source text.
    path.chmod(0o600)
    return db


def open_to_write(path: Path) -> apsw.Connection:
    """Raises IndexDamaged if the file is not ours or incomplete."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        _set_pragmas(db)
        if get_meta(db, "format") != FORMAT:
            raise IndexDamaged("it is of another format", where=str(path))
    except (apsw.SQLError, *DAMAGE) as error:
        raise IndexDamaged(str(error), where=str(path)) from None
    return db


def open_to_read(path: Path) -> apsw.Connection:
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)  # a reader of WAL writes to its -shm file
        db.set_busy_timeout(BUSY_MS)
        db.pragma("query_only", True)
        if get_meta(db, "format") != FORMAT:
            raise IndexDamaged("it is of another format", where=str(path), fix="Run: holdfast search index run")
        return db
    except (apsw.SQLError, apsw.CantOpenError, *DAMAGE) as error:
        raise IndexDamaged(str(error), where=str(path), fix="Run: holdfast search index rebuild") from None


def _set_pragmas(db: apsw.Connection) -> None:
    db.set_busy_timeout(BUSY_MS)
    db.pragma("journal_mode", "wal")
    # Losing the last commits in a power cut leaves the index intact, and the next run finds what is missing.
    db.pragma("synchronous", "normal")
    # Negative means KiB: 64 MB.
    db.pragma("cache_size", -64_000)
    db.pragma("temp_store", "memory")


def fetch_required_row(db: apsw.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """A row that must exist; otherwise somebody else wrote into the file."""
    row: tuple[Any, ...] | None = db.execute(sql, parameters).fetchone()
    if row is None:
        raise IndexDamaged("a row is missing", fix="Run: holdfast search index rebuild")
    return row


def get_meta(db: apsw.Connection, name: str, default: str = "") -> str:
    row = db.execute("select value from meta where name = ?", (name,)).fetchone()
    return row[0] if row else default


def set_meta(db: apsw.Connection, **values: Any) -> None:
    db.executemany(
        "insert into meta values (?, ?) on conflict (name) do update set value = excluded.value",
        [(name, str(value)) for name, value in values.items()],
    )


# Bytes left on the disk for the log, which must be able to grow.
KEPT_FREE = 64 << 20
KEPT_SHARE = 0.1
"""Share of a small disk, instead of the above."""


class DiskAlmostFull(HoldfastError):
    """The disk is full"""


def check_disk_space(db: apsw.Connection, folder: Path) -> None:
    """Raises DiskAlmostFull. Free pages of the index count, because they are used first."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize + int(db.pragma("freelist_count")) * int(db.pragma("page_size"))
    if free < min(KEPT_FREE, disk.f_blocks * disk.f_frsize * KEPT_SHARE):
        raise DiskAlmostFull(
            f"{free >> 20} MB are free, the log needs them",
            where=str(folder),
            fix="Free some space, then run: holdfast search index run. Until then the index answers as it is.",
        )
