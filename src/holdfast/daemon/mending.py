"""A damaged database (P7): set aside whole, the newest good backup restored, what can be read from the rest put
back, and what was lost counted and said."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.ids import delivery_key
from holdfast.core.ports import Store
from holdfast.paths import Paths
from holdfast.stores import backup, open_store
from holdfast.stores.rows import decode

BATCH = 500


class Mended(msgspec.Struct):
    quarantine: str
    backup: str = ""
    backup_head: int = 0
    salvaged: int = 0
    lost: int = 0


def mend(paths: Paths, features: Sequence[Feature], expected_head: int, now: int) -> tuple[Store, Mended]:
    """The caller has closed the damaged store. Documents are rebuilt afterwards: their features are outdated."""
    database = paths.database
    place = backup.quarantine(database, paths.quarantine)
    chosen = backup.restore(paths.backups, database)
    store = open_store(f"sqlite:///{database}", backups=paths.backups)
    with store.transaction() as head:
        start = head
    told = Mended(quarantine=str(place), backup=str(chosen or ""), backup_head=start)
    told.salvaged, top = _salvage(store, place / database.name, start)
    told.lost = max(0, max(expected_head, top) - start - told.salvaged)
    with store.transaction() as head:
        store.append([_restored(told, head + 1, now)])
        for feature in features:
            store.set_meta(f"feature:{feature.name}", "")
    return store, told


def _salvage(store: Store, damaged: Path, after: int) -> tuple[int, int]:
    """(events put back, the highest seq the damaged file still knew)."""
    found: list[Event] = []
    with contextlib.suppress(apsw.Error, OSError):
        for row in backup.salvage(damaged, after):
            with contextlib.suppress(Exception):
                found.append(_event(row))
    saved = 0
    for start in range(0, len(found), BATCH):
        saved += _append_new(store, found[start : start + BATCH])
    return saved, backup.highest(damaged)


def _append_new(store: Store, events: list[Event]) -> int:
    with store.transaction() as head:
        known = store.known([e.key for e in events])
        fresh = [e for e in events if e.key not in known]
        if fresh:
            store.append([msgspec.structs.replace(e, seq=head + n) for n, e in enumerate(fresh, 1)])
    return len(fresh)


def _event(row: tuple) -> Event:
    key, at, version, data, session, project, kind, tool, agent, size, digest, body = row
    return Event(
        key=key, at=at, v=version, data=decode(data), session=session, project=project, kind=kind, tool=tool,
        agent=agent, body=body or b"", body_size=size or 0, body_hash=digest or "",
    )  # fmt: skip


def _restored(told: Mended, seq: int, now: int) -> Event:
    data = msgspec.structs.asdict(told)
    return Event(key=delivery_key(now), kind="store.restored", at=now, data=data, seq=seq)
