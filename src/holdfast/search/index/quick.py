"""Knowing that nothing changed without looking at every file (O0-g): same commit, same dirty files, same settings."""

from typing import Any

import apsw
import msgspec

from holdfast.search import choose
from holdfast.search.embedder import NoEmbedder
from holdfast.search.index import database
from holdfast.search.index.build import fingerprint
from holdfast.search.index.place import Place
from holdfast.search.settings import IndexSettings


def unchanged(place: Place, now: dict[str, Any], settings: IndexSettings) -> bool:
    generation = place.current()
    if not generation or not now:
        return False
    try:
        db = database.open_to_read(place.database(generation))
    except (database.IndexDamaged, apsw.Error):
        return False
    try:
        then = database.meta(db, "snapshot")
        if not then or database.meta(db, "settings") != fingerprint(settings) or msgspec.json.decode(then) != now:
            return False
        return not database.meta(db, "note") or not _could_embed(settings)
    except (apsw.Error, msgspec.DecodeError):
        return False
    finally:
        db.close()


def _could_embed(settings: IndexSettings) -> bool:
    """The last run had no embedder; if there is one now, its vectors are missing."""
    try:
        return bool(choose.embedder(settings))
    except NoEmbedder:
        return False


def sizes(place: Place) -> dict[str, int]:
    """What the index holds, for those who look at its last run."""
    db = database.open_to_read(place.database(place.current()))
    try:
        kept, left_out, chunks = db.execute(
            "select (select count(*) from files where left_out = ''), (select count(*) from files where left_out <> ''),"
            " (select count(*) from chunks)"
        ).fetchone()
    finally:
        db.close()
    return {"files": kept + left_out, "left_out": left_out, "chunks": chunks}
