"""Knowing that nothing changed without a program (O0-g): every file and folder has the size and times it had."""

import os
from typing import Any

import apsw
import msgspec

from holdfast.search import embedder as embedders
from holdfast.search.embedder import NoEmbedder
from holdfast.search.index import checkout, database
from holdfast.search.index.index_dir import IndexDir
from holdfast.search.settings import IndexSettings


def fingerprint(settings: IndexSettings) -> str:
    return msgspec.json.encode(settings).decode()


def marks(root: str) -> str:
    return msgspec.json.encode(checkout.git_marks(root)).decode()


def is_unchanged(place: IndexDir, root: str, settings: IndexSettings) -> bool:
    generation = place.current()
    if not generation:
        return False
    try:
        db = database.open_to_read(place.database(generation))
    except (database.IndexDamaged, apsw.Error):
        return False
    try:
        return _same_terms(db, root, settings) and _same_folders(db, root) and _same_files(db, root)
    except apsw.Error:
        return False
    finally:
        db.close()


def _same_terms(db: apsw.Connection, root: str, settings: IndexSettings) -> bool:
    """The last run went to its end under these settings, and its vectors are those that would be made now."""
    return (
        database.meta(db, "through") == "yes"
        and database.meta(db, "settings") == fingerprint(settings)
        and database.meta(db, "marks") == marks(root)
        and _same_vectors(db, settings)
    )


def _same_vectors(db: apsw.Connection, settings: IndexSettings) -> bool:
    """Ours may be another one since Holdfast was updated; where there was none to be had, there may be one now."""
    try:
        wanted = embedders.choose_embedder(settings).id
    except NoEmbedder:
        return True
    return database.meta(db, "model") == wanted and not database.meta(db, "note")


def _same_folders(db: apsw.Connection, root: str) -> bool:
    for path, mtime in db.execute("select path, mtime from folders"):
        try:
            if os.lstat(f"{root}/{path}").st_mtime_ns != mtime:
                return False
        except (OSError, ValueError):
            return False
    return True


def _same_files(db: apsw.Connection, root: str) -> bool:
    for path, size, mtime, ctime in db.execute("select path, size, mtime, ctime from files"):
        try:
            seen = os.lstat(f"{root}/{path}")
        except (OSError, ValueError):
            return False
        if seen.st_mtime_ns != mtime or seen.st_size != size or seen.st_ctime_ns != ctime:
            return False
    return True


def index_counts(place: IndexDir) -> dict[str, Any]:
    """What the index holds, for those who look at its last run."""
    db = database.open_to_read(place.database(place.current()))
    try:
        kept, left_out, chunks = database.one(
            db,
            "select (select count(*) from files where left_out = ''), (select count(*) from files where left_out <> ''),"
            " (select count(*) from chunks)",
        )
    finally:
        db.close()
    return {"files": kept + left_out, "left_out": left_out, "chunks": chunks}
