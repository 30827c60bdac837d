"""Backups of the store: whole, checked, the newest seven kept."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.paths import is_plain_file, private_folder, sync_path
from holdfast.stores.sqlite_connection import for_reading, translate_sqlite_errors

KEEP = 7
# Pages copied in one call.
PAGES_A_STEP = 512
SIDE_FILES = ("-wal", "-shm")
# The part of a backup's name that its age is read from.
STAMP = len("20260101T000000Z")
_OURS = re.compile(r"\d{8}T\d{6}Z-")
"""The prefix of a backup's name; other files in the folder stay."""


def write_backup(source: Path, folder: Path, reason: str = "daily", keep: int = KEEP) -> Path:
    """A backup appears under its name only when it is complete, checked and on disk."""
    private_folder(folder)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = _free_name(folder, f"{stamp}-{reason}")
    # With our pid: a starting daemon removes what nobody is writing any more.
    partial = folder / f".{target.name}.{os.getpid()}.partial"
    with translate_sqlite_errors(source):
        _copy_database(source, partial)
    # An unreadable backup is found today, not when it is needed.
    check_database(partial)
    sync_path(partial)
    partial.replace(target)
    # The rename is durable only when the folder is synced too.
    sync_path(folder)
    prune_backups(folder, keep, never=target)
    return target


def _free_name(folder: Path, stem: str) -> Path:
    names = (folder / f"{stem}{'' if n == 0 else f'.{n}'}.db" for n in range(1000))
    return next(name for name in names if not name.exists())


def _copy_database(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    reading, writing = for_reading(source), apsw.Connection(str(target))
    try:
        # One snapshot for the whole copy: otherwise every commit of the daemon would restart it.
        reading.execute("begin; select count(*) from sqlite_schema").fetchall()
        with writing.backup("main", reading, "main") as copy:
            while not copy.done:
                copy.step(PAGES_A_STEP)
        # Otherwise the copy would be in WAL mode and need extra files.
        writing.pragma("journal_mode", "delete")
    finally:
        writing.close()
        reading.close()


def prune_backups(folder: Path, keep: int = KEEP, never: Path | None = None) -> None:
    """`never`: the one just made stays, even if a clock that was set back makes it look oldest."""
    for old in list_backups(folder)[keep:]:
        if old != never and _OURS.match(old.name):
            old.unlink(missing_ok=True)
    for leftover in folder.glob(".*.partial*"):
        # One hour: a younger one may still be written by another process.
        if time.time() - leftover.stat().st_mtime > 3600:
            leftover.unlink(missing_ok=True)


def list_backups(folder: Path) -> list[Path]:
    """Newest first: by the second in the name, then by mtime."""
    backups = [path for path in folder.glob("*.db") if is_plain_file(path)] if not folder.is_symlink() else []
    return sorted(backups, key=lambda path: (path.name[:STAMP], path.stat().st_mtime_ns), reverse=True)


def check_database(path: Path) -> None:
    """Run `quick_check`: every page is in order."""
    with translate_sqlite_errors(path):
        # Read-only, but including a log next to the file (`immutable=0`).
        db = apsw.Connection(f"file:{path}?immutable=0", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            problems = [row[0] for row in db.execute("pragma quick_check(5)")]
        finally:
            db.close()
    if problems != ["ok"]:
        raise StoreDamaged("; ".join(problems), where=str(path))


def quarantine_database(path: Path, folder: Path) -> Path:
    """Move the damaged files aside together. Nothing is deleted."""
    target_folder = free_place(folder)
    _move_database(path, target_folder)
    return target_folder


def free_place(folder: Path) -> Path:
    first_choice = folder / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return next(p for p in (first_choice, *(Path(f"{first_choice}.{n}") for n in range(1, 1000))) if not p.exists())


def _move_database(path: Path, target_folder: Path) -> None:
    import shutil  # Here, because a daemon's start should not wait for it.

    for folder in (target_folder.parent, target_folder):
        private_folder(folder)
    for name in _with_side_files(path):
        if name.exists():
            shutil.move(name, target_folder / name.name)


def _with_side_files(path: Path) -> list[Path]:
    return [path, *(Path(f"{path}{suffix}") for suffix in SIDE_FILES)]


def remove_copy(path: Path) -> None:
    """Remove a half-made copy of ours."""
    for name in _with_side_files(path):
        name.unlink(missing_ok=True)


def remove_side_files(path: Path) -> None:
    """Remove what SQLite leaves next to a file that was replaced as a whole."""
    for name in _with_side_files(path)[1:]:
        name.unlink(missing_ok=True)


def replacement_path(target: Path) -> Path:
    """Where a new database is assembled."""
    return target.with_name(f"{target.name}.mending")


def _completed_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.mended")


def complete_replacement(fresh: Path, target: Path) -> None:
    """From here on the new one counts: after a crash `finish_swap` completes the exchange."""
    if any(name.exists() for name in _with_side_files(fresh)[1:]):
        # SQLite is silent if it cannot fold the log into the file on close; without its log the file is incomplete.
        raise StoreUnavailable("it could not be written whole", where=str(fresh))
    check_database(fresh)
    sync_path(fresh)
    fresh.replace(_completed_path(target))
    sync_path(target.parent)


def swap_in_replacement(target: Path, target_folder: Path) -> None:
    # The old files go first; in between only the completed name exists, and `finish_swap` continues.
    _move_database(target, target_folder)
    _completed_path(target).replace(target)
    sync_path(target.parent)


def finish_swap(target: Path, folder: Path) -> bool:
    """Finish an interrupted exchange."""
    if not _completed_path(target).exists():
        return False
    swap_in_replacement(target, free_place(folder))
    return True


def go_back(chosen: Path, target: Path, folder: Path) -> Path:
    """Return to a backup that a person chose; return where the present files went."""
    target_folder = free_place(folder)
    remove_copy(replacement_path(target))
    put_back(chosen, replacement_path(target))
    complete_replacement(replacement_path(target), target)
    swap_in_replacement(target, target_folder)
    return target_folder


def restore_backup(backups: Path, target: Path) -> Path | None:
    """Restore the newest backup that passes its check into the empty place of the database."""
    for candidate in list_backups(backups):
        # A damaged backup is skipped for the next older one.
        with contextlib.suppress(StoreDamaged, StoreUnavailable):
            check_database(candidate)
            put_back(candidate, target)
            return candidate
    return None


def put_back(chosen: Path, target: Path) -> None:
    import shutil

    # Copied under another name: an interrupted copy must not be taken for the database, and is removed at the next
    # start.
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    shutil.copyfile(chosen, partial)
    partial.chmod(0o600)
    sync_path(partial)
    partial.replace(target)
    sync_path(target.parent)


def salvage_events(damaged: Path, after: int) -> Iterator[tuple[Any, ...]]:
    """Read every event after `after` from a damaged file, oldest first, page by page."""
    db = _open_damaged(damaged)
    try:
        top = _highest_seq(db)
        # A damaged page may claim any number; a file holds at most bytes / 16 rows.
        for seq in range(after + 1, min(top, after + damaged.stat().st_size // 16) + 1):
            # One query per number: a damaged page loses its own events and no others.
            with contextlib.suppress(apsw.Error):
                yield from db.execute(SALVAGE, (seq,))
    finally:
        db.close()


def last_seq_of_database(path: Path) -> int:
    """Where the log of a sound database ends, without changing a byte of it."""
    if not path.exists() or not path.stat().st_size:
        return 0
    with translate_sqlite_errors(path):
        db = for_reading(path)
        try:
            there = db.execute("select 1 from sqlite_schema where name = 'events'").get
            return db.execute("select coalesce(max(seq), 0) from events").get if there else 0
        finally:
            db.close()


def last_shared_seq(one: Path, other: Path) -> int:
    """How far two logs are the same: the last event that both have at the same place."""
    low, high = 0, min(last_seq_of_database(one), last_seq_of_database(other))
    if not high:
        return 0
    with translate_sqlite_errors(one):
        logs = [for_reading(path) for path in (one, other)]
        try:
            # Logs only grow: where an event is in both, so are all before it.
            while low < high:
                middle = (low + high + 1) // 2
                keys = [log.execute("select key from facts where seq = ?", (middle,)).get for log in logs]
                low, high = (middle, high) if keys[0] == keys[1] else (low, middle - 1)
        finally:
            for log in logs:
                log.close()
    return low


def tombstones_of_database(path: Path) -> int:
    """How many events of it are erased; older versions kept no count."""
    with translate_sqlite_errors(path):
        db = for_reading(path)
        try:
            there = db.execute("select 1 from pragma_table_info('facts') where name = 'leaf'").get
            return db.execute("select count(*) from facts where leaf is not null").get if there else 0
        finally:
            db.close()


def last_seq_of_damaged(damaged: Path) -> int:
    """The last readable seq of a damaged file, 0 if none."""
    with contextlib.suppress(apsw.Error):
        db = _open_damaged(damaged)
        try:
            return _highest_seq(db)
        finally:
            db.close()
    return 0


def _open_damaged(damaged: Path) -> apsw.Connection:
    db = apsw.Connection(str(damaged), flags=apsw.SQLITE_OPEN_READWRITE)
    # Reading its log needs a writable file, but closing must not fold the log into the evidence.
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return db


def _highest_seq(db: apsw.Connection) -> int:
    # The index of one table may be readable where the other's is not.
    for table in ("events", "facts"):
        with contextlib.suppress(apsw.Error):
            return db.execute(f"select coalesce(max(seq), 0) from {table}").get or 0
    return 0


SALVAGE = """
select e.seq, f.key, e.at, e.v, f.data, s.name, p.name, k.name, t.name, a.name, b.size, b.hash, b.body
from events e join facts f on f.seq = e.seq
join names s on s.id = e.session join names p on p.id = e.project join names k on k.id = e.kind
join names t on t.id = e.tool join names a on a.id = e.agent left join bodies b on b.seq = e.seq
where e.seq = ?
"""
