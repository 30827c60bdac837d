"""Rows of a SQLite file rewritten in place: for the live database and for its backups."""

import os
from pathlib import Path
from typing import cast

import apsw

from holdfast.core.erase import Change
from holdfast.stores.sql import queries
from holdfast.stores.sqlite_connection import BUSY_MS, translated

SQL = queries("sqlite")
TABLES = ("facts", "bodies", "states", "jobs")


def rewrite(db: apsw.Connection, probe: bytes, change: Change) -> int:
    """Inside a transaction. How many rows were changed."""
    changed = 0
    for table in TABLES:
        for *key, found in db.execute(SQL[f"{table}_with"], (probe,)).fetchall():
            row = cast(bytes, found)
            after = change(row)
            if after != row:
                db.execute(SQL[f"set_{table}"], (after, *key))
                changed += 1
    return changed


def vacuum_erased(db: apsw.Connection) -> None:
    """Deleted rows lie in free pages and in the write-ahead log until both are written anew."""
    db.execute("vacuum")
    db.pragma("wal_checkpoint", "truncate")


def rewrite_file(path: Path, probe: bytes, change: Change) -> int:
    with translated(path):
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            db.set_busy_timeout(BUSY_MS)
            db.execute("begin immediate")
            changed = rewrite(db, probe, change)
            db.execute("commit")
            if changed:
                db.execute("vacuum")
        finally:
            db.close()
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return changed
