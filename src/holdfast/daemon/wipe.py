"""Erases everything of ours, resumed by a start that finds the mark on disk."""

import contextlib
import os
import shutil
from pathlib import Path

import apsw

from holdfast.core.decision import Delivery
from holdfast.core.errors import HoldfastError
from holdfast.daemon.ingest.frames import BadFrame, as_delivery, split_spool_records
from holdfast.paths import WIPE_MARK, Paths, emergency_spools, private_folder, sync_path, write_atomically
from holdfast.stores.body_keys import remove_key
from holdfast.stores.key_name import KEY_NAME
from holdfast.stores.sqlite_reader import SqliteReader


def mark_of(paths: Paths) -> Path:
    return paths.run / WIPE_MARK


def begin_wipe(paths: Paths) -> None:
    private_folder(paths.state)
    private_folder(paths.run)
    write_atomically(mark_of(paths), b"")
    sync_path(paths.run)


def finish_wipe(paths: Paths, database: Path) -> None:
    """The caller holds the lease. Lease and mark stay, the mark until everything else is gone."""
    # Before the database, which names it.
    _remove_body_key(database)
    _remove_database(database)
    _remove_emergency_spools(paths)
    still_needed = (paths.run, mark_of(paths), paths.lease, paths.start_lock)
    # run/ comes last: it has the mark by which a later start resumes.
    for path in sorted(paths.state.iterdir()):
        if path != paths.run:
            _remove_path(path)
    for path in sorted(paths.run.iterdir()):
        if path not in still_needed:
            _remove_path(path)
    # Removals are durable before the mark goes: a power cut cannot leave files without a mark.
    sync_path(paths.state)
    mark_of(paths).unlink(missing_ok=True)
    sync_path(paths.run)


def remove_state(paths: Paths) -> None:
    """Remove the empty folders and the lease, at the very end."""
    for path in (paths.lease, paths.start_lock):
        path.unlink(missing_ok=True)
    for folder in (paths.run, paths.state):
        with contextlib.suppress(OSError):  # A hook came meanwhile and starts over.
            folder.rmdir()


def _remove_path(path: Path) -> None:
    # A symlink is removed, not followed.
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_body_key(database: Path) -> None:
    """Remove the key from the keyring. A locked keyring keeps a useless key."""
    with contextlib.suppress(HoldfastError, apsw.Error):
        reader = SqliteReader(database)
        try:
            name = reader.meta(KEY_NAME)
        finally:
            reader.close()
        if name:
            remove_key(name)


def _remove_database(path: Path) -> None:
    """Remove a database outside the state folder."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.with_suffix(".head").unlink(missing_ok=True)


def _remove_emergency_spools(paths: Paths) -> None:
    for folder in emergency_spools():
        # These folders are outside the state folder: only files of this user and this state folder are ours.
        for path in folder.glob("*") if folder.is_dir() and folder.stat().st_uid == os.geteuid() else ():
            if (first := _first_delivery(path)) and Path(first.state).resolve() == paths.state.resolve():
                path.unlink(missing_ok=True)


def _first_delivery(path: Path) -> Delivery | None:
    try:
        frames, _ = split_spool_records(path.read_bytes())
        return as_delivery(frames[0]) if frames else None
    except (OSError, BadFrame, ValueError, HoldfastError):
        return None
