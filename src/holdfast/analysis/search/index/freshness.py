"""Finds out whether a checkout changed since it was indexed."""

import contextlib
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
        with contextlib.closing(database.open_to_read(index_dir.database(generation))) as db:
            return _same_terms(db, root, settings) and _same_folders(db, root) and _same_files(db, root)
    except (database.IndexDamaged, apsw.Error):
        return False


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
    rows = db.execute("select path, mtime from folders")
    return all((seen := _stat(root, path)) and seen.st_mtime_ns == mtime for path, mtime in rows)


def _same_files(db: apsw.Connection, root: str) -> bool:
    rows = db.execute("select path, size, mtime, ctime from files")
    return all(
        (seen := _stat(root, path)) and (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns) == (size, mtime, ctime)
        for path, size, mtime, ctime in rows
    )


def _stat(root: str, path: str) -> os.stat_result | None:
    try:
        return os.lstat(f"{root}/{path}")
    except (OSError, ValueError):
        return None


def index_counts(index_dir: IndexDir) -> dict[str, Any]:
    """What the index holds, for reports on its last run."""
    with contextlib.closing(database.open_to_read(index_dir.database(index_dir.current()))) as db:
        indexed, left_out, chunks = database.fetch_required_row(
            db,
            "select (select count(*) from files where left_out = ''), (select count(*) from files where left_out <> ''),"
            " (select count(*) from chunks)",
        )
    return {"files": indexed + left_out, "left_out": left_out, "chunks": chunks}
