"""Knowing that nothing changed without looking at every file (O0-g): same commit, same dirty files, same settings."""

from typing import Any

import apsw
import msgspec

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
        return bool(then) and database.meta(db, "settings") == fingerprint(settings) and msgspec.json.decode(then) == now
    except (apsw.Error, msgspec.DecodeError):
        return False
    finally:
        db.close()


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
