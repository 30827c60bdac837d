"""Finds what would keep a daemon from starting, without starting one."""

from pathlib import Path

import apsw

from holdfast.core.errors import HoldfastError
from holdfast.paths import Paths, private_folder
from holdfast.stores.migrations import newest_version, refuse_newer


def find_obstacle(paths: Paths, database: Path) -> str:
    """Empty if nothing is in the way."""
    try:
        for folder in (paths.state, paths.run, paths.spool, paths.backups, paths.logs, paths.derived):
            if folder.is_symlink() or folder.exists():
                private_folder(folder)
        if links := [path for path in (database, paths.log_file, paths.lease) if path.is_symlink()]:
            return f"{links[0]} is a link"
        refuse_newer(_schema_of(database), newest_version(), str(database))
    except (HoldfastError, OSError) as error:
        return str(error)
    return ""


def _schema_of(database: Path) -> int:
    if not database.exists():
        return 0
    try:
        db = apsw.Connection(f"file:{database}?immutable=0", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            return int(db.pragma("user_version") or 0)
        finally:
            db.close()
    # A damaged file is repaired at the start.
    except apsw.Error:
        return 0
