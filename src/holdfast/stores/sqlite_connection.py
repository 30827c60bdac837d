"""Opens SQLite files and translates their errors."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from holdfast.core.errors import StoreDamaged, StoreUnavailable

WRITING_CACHE_KIB, READING_CACHE_KIB = 8_000, 2_000
"""One writer, and a reader per thread; the kernel caches the rest."""
# Milliseconds to wait for another connection's lock.
BUSY_MS = 5_000


def for_writing(path: Path) -> apsw.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Created 0600: SQLite gives its WAL and shared-memory files the mode of the database.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(BUSY_MS)
    db.pragma("journal_mode", "wal")
    # FULL syncs the write-ahead log at every commit; NORMAL would not.
    db.pragma("synchronous", "full")
    # Negative: kibibytes instead of pages.
    db.pragma("cache_size", -WRITING_CACHE_KIB)
    # In bytes: a checkpoint cuts the log file to this.
    db.pragma("journal_size_limit", 64 << 20)
    db.execute("create table if not exists meta (name text primary key, value text not null) strict, without rowid")
    return db


def for_reading(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    db.set_busy_timeout(BUSY_MS)
    db.pragma("query_only", True)
    db.pragma("cache_size", -READING_CACHE_KIB)
    return db


@contextlib.contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamaged(str(error), where=str(path), fix="Run: holdfast doctor --fix") from error
    except OSError as error:
        # An OSError of ours (missing folder, no permission) counts like SQLite's errors below.
        raise StoreUnavailable(error.strerror or str(error), where=str(path)) from error
    except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.BusyError) as error:
        raise StoreUnavailable(str(error), where=str(path), fix="Free some space or check permissions.") from error
