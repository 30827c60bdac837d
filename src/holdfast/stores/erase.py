"""Rows of a SQLite file rewritten in place: for the live database and for its backups."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import apsw

from holdfast.core.erase import Change
from holdfast.core.history import MARK, HistoryMark, history_entry
from holdfast.core.ports import HistoryEntry
from holdfast.stores.history_match import facet_words
from holdfast.stores.rows import EVENT, FROM, as_event
from holdfast.stores.sql import queries
from holdfast.stores.sqlite_connection import BUSY_MS, translated

SQL = queries("sqlite")
TABLES = ("facts", "bodies", "states", "jobs")


def rewrite(db: apsw.Connection, probe: bytes, change: Change) -> int:
    """Inside a transaction. How many rows were changed."""
    changed, events = 0, list[int]()
    for table in TABLES:
        for *key, found in db.execute(SQL[f"{table}_with"], (probe,)).fetchall():
            row = cast(bytes, found)
            after = change(row)
            if after != row:
                db.execute(SQL[f"set_{table}"], (after, *key))
                changed += 1
                events += cast(list[int], key) if table == "facts" else []
    reindex(db, events)
    return changed


def reindex(db: apsw.Connection, seqs: Sequence[int]) -> None:
    """The words of rewritten events, as far as they are indexed. A backup may be older than the index."""
    if not seqs or not db.execute(SQL["has_history"]).fetchall():
        return
    mark = HistoryMark.parse(cast(str, db.execute(SQL["meta"], (MARK,)).get or ""))
    for seq in seqs:
        db.execute(SQL["drop_history"], (seq,))
        entry = _entry(db, seq) if seq <= mark.seq else None
        if entry:
            db.execute(SQL["add_history"], (seq, entry.words, entry.paths, facet_words(entry, _number_of(db))))
    db.execute(SQL["set_meta"], (MARK, str(HistoryMark(mark.seq, mark.erasures + 1))))


def _entry(db: apsw.Connection, seq: int) -> HistoryEntry | None:
    row = db.execute(f"select {EVENT} {FROM} where e.seq = ?", (seq,)).fetchall()[0]
    return history_entry(as_event(row, lambda number: cast(str, db.execute(SQL["name"], (number,)).get or "")))


def _number_of(db: apsw.Connection) -> Callable[[str], int]:
    return lambda name: cast(int, db.execute(SQL["name_id"], (name,)).get)


def merge_history(db: apsw.Connection) -> None:
    """Words of deleted entries are not left in older segments of the index."""
    if db.execute(SQL["has_history"]).fetchall():
        db.execute(SQL["merge_history"])


def vacuum_erased(db: apsw.Connection) -> None:
    """Deleted rows lie in free pages and in the write-ahead log until both are written anew."""
    merge_history(db)
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
                merge_history(db)
                db.execute("vacuum")
        finally:
            db.close()
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return changed
