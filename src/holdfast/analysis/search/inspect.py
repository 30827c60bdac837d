"""Inspects an index without querying it."""

import contextlib
import os
from typing import Any

import apsw

from holdfast.analysis.search import languages
from holdfast.analysis.search.index import checkout, database, left_out
from holdfast.analysis.search.index.places import IndexDir
from holdfast.analysis.search.searcher import NoIndex
from holdfast.analysis.search.settings import IndexSettings


def _open_index(place: IndexDir) -> "contextlib.closing[apsw.Connection]":
    generation = place.current()
    if not generation:
        raise NoIndex
    return contextlib.closing(database.open_to_read(place.database(generation)))


def index_summary(index_dir: IndexDir) -> dict[str, Any] | None:
    """None if there is no index; `problem` if it cannot be read."""
    try:
        with _open_index(index_dir) as db:
            return _read_summary(index_dir, db)
    except NoIndex:
        return None
    except (database.IndexDamaged, apsw.Error) as error:
        return {"problem": str(error), "folder": str(index_dir.folder)}


def _read_summary(index_dir: IndexDir, db: apsw.Connection) -> dict[str, Any]:
    files_, source, chunks = database.fetch_required_row(
        db, "select count(*), coalesce(sum(size), 0), (select count(*) from chunks) from files where left_out = ''"
    )
    of_model = "select count(*) from vectors where model = (select id from models where name = ?)"
    embedded = database.fetch_required_row(db, of_model, (database.get_meta(db, "model"),))[0]
    return {
        "folder": str(index_dir.folder),
        "files": files_,
        "chunks": chunks,
        "embedded": embedded,
        "model": database.get_meta(db, "model"),
        "note": database.get_meta(db, "note"),
        "at": int(database.get_meta(db, "at") or 0),
        "source_bytes": source,
        "bytes": sum(p.stat().st_size for p in index_dir.folder.glob("*.db*")),
        "left_out": dict(
            db.execute("select left_out, count(*) from files where left_out <> '' group by 1 order by 2 desc")
        ),
        "languages": dict(
            db.execute(
                "select f.lang, count(*) n from chunks c join files f on f.id = c.file group by 1 order by n desc limit 20"
            )
        ),
    }


def explain_file(index_dir: IndexDir, root: str, name: str, settings: IndexSettings) -> dict[str, Any]:
    path = path_within(root, name)
    with _open_index(index_dir) as db:
        row = db.execute("select id, left_out, lang from files where path = ?", (path,)).fetchone()
        if row and not row[1]:
            chunks = [
                {"line": start, "end": stop, "kind": kind, "symbol": symbol}
                for start, stop, kind, symbol in db.execute(
                    "select start, stop, kind, symbol from chunks where file = ? order by start", (row[0],)
                )
            ]
            return {"path": path, "indexed": True, "lang": row[2], "chunks": chunks, "reason": ""}
        return {
            "path": path,
            "indexed": False,
            "chunks": [],
            "reason": row[1] if row else _absence_reason(db, root, path, settings),
        }


def path_within(root: str, name: str) -> str:
    # Links are resolved on both sides, so that a path through a link counts as inside.
    real, base = os.path.realpath(os.path.join(root, name)), os.path.realpath(root)
    return os.path.relpath(real, base) if real == base or real.startswith(f"{base}{os.sep}") else name


def _absence_reason(db: apsw.Connection, root: str, path: str, settings: IndexSettings) -> str:
    whole = os.path.join(root, path)
    if path.startswith(("..", "/")):
        return "it is outside the checkout"
    if not os.path.lexists(whole):
        return "there is no such file"
    if os.path.isdir(whole):
        return "it is a folder"
    if not checkout.is_wanted(path, settings):
        return "settings leave it out (reindex.include, reindex.exclude)"
    seen = os.lstat(whole)
    if reason := left_out.by_name(path, seen.st_size, settings.largest_kb * 1024):
        return reason
    # `at` is in ms; ctime, because a moved file keeps its mtime.
    if seen.st_ctime_ns // 1_000_000 >= int(database.get_meta(db, "at", "0")):
        return "it is newer than the last run (run: holdfast search index run)"
    if os.path.lexists(os.path.join(root, ".git")):
        return "git ignores it"
    folders = sorted(languages.TABLES.files.not_walked.intersection(path.split("/")))
    return f"it is in a folder that is not indexed ({', '.join(folders)})"


def files_left_out(index_dir: IndexDir, limit: int) -> list[dict[str, str]]:
    with _open_index(index_dir) as db:
        rows = db.execute(
            "select path, left_out from files where left_out <> '' order by left_out, path limit ?", (limit,)
        )
        return [{"path": path, "reason": reason} for path, reason in rows]
