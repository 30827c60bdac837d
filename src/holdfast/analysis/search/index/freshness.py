"""Finds out whether a checkout changed since it was indexed."""

import os
from typing import Any

import apsw
import msgspec

from holdfast.analysis.search import embedder as embedders
from holdfast.analysis.search.embedding_port import NoEmbedder
from holdfast.analysis.search.index import checkout, database
from holdfast.analysis.search.index.places import IndexDir
from holdfast.analysis.search.settings import IndexSettings


def settings_fingerprint(settings: IndexSettings) -> str:
    return msgspec.json.encode(settings).decode()


def encoded_git_marks(root: str) -> str:
    return msgspec.json.encode(checkout.git_marks(root)).decode()


def is_unchanged(index_dir: IndexDir, root: str, settings: IndexSettings) -> bool:
    generation = index_dir.current()
    if not generation:
        return False
    try:
        db = database.open_to_read(index_dir.database(generation))
    except (database.IndexDamaged, apsw.Error):
        return False
    try:
        return _same_terms(db, root, settings) and _same_folders(db, root) and _same_files(db, root)
    except apsw.Error:
        return False
    finally:
        db.close()


def _same_terms(db: apsw.Connection, root: str, settings: IndexSettings) -> bool:
    """The last run completed under these settings, with the vectors that would be made now."""
    return (
        database.get_meta(db, "through") == "yes"
        and database.get_meta(db, "settings") == settings_fingerprint(settings)
        and database.get_meta(db, "marks") == encoded_git_marks(root)
        and _same_vectors(db, settings)
    )


def _same_vectors(db: apsw.Connection, settings: IndexSettings) -> bool:
    """Our model may have changed with an update; a missing one may be available now."""
    try:
        model_id = embedders.choose_embedder(settings).id
    # Without an embedder a run could not make vectors either.
    except NoEmbedder:
        return True
    return database.get_meta(db, "model") == model_id and not database.get_meta(db, "note")


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


def index_counts(index_dir: IndexDir) -> dict[str, Any]:
    """What the index holds, for reports on its last run."""
    db = database.open_to_read(index_dir.database(index_dir.current()))
    try:
        indexed, left_out, chunks = database.fetch_required_row(
            db,
            "select (select count(*) from files where left_out = ''), (select count(*) from files where left_out <> ''),"
            " (select count(*) from chunks)",
        )
    finally:
        db.close()
    return {"files": indexed + left_out, "left_out": left_out, "chunks": chunks}
