"""Repairs a damaged database (P7): the newest good backup and everything readable are combined next to it, then the two are exchanged."""

# The damaged file is kept, and losses are counted and reported.

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.feature import Feature, version_key
from holdfast.core.ids import delivery_key
from holdfast.core.kinds import decode_payload
from holdfast.core.ports import Store
from holdfast.paths import Paths
from holdfast.stores import backup
from holdfast.stores.sqlite import SqliteStore

# Events per transaction.
BATCH = 500


class Repair(msgspec.Struct):
    quarantine: str
    backup: str = ""
    backup_head: int = 0
    salvaged: int = 0
    lost: int = 0
    tombstones: int = 0


def check_head(database: Path, paths: Paths, high_water: int) -> None:
    """Before anything is written: a log that ends earlier than it did would be overwritten from there."""
    # An interrupted exchange is finished first, or the wrong file's head would be compared.
    backup.finish_swap(database, paths.quarantine)
    head = backup.last_seq_of_database(database)
    if head < high_water:
        raise StoreDamaged(f"the log ends at {head} and had come to {high_water}", where=str(database))


def build_replacement(
    database: Path, paths: Paths, features: Sequence[Feature], expected_head: int, now: int
) -> Repair:
    """Everything that may fail, without touching the damaged file: after an error nothing has changed."""
    try:
        return _build_replacement(database, paths, features, expected_head, now)
    except OSError as error:
        raise StoreUnavailable(error.strerror or str(error), where=str(database)) from error


def _build_replacement(
    database: Path, paths: Paths, features: Sequence[Feature], expected_head: int, now: int
) -> Repair:
    result = Repair(quarantine=str(backup.free_place(paths.quarantine)))
    fresh = backup.replacement_path(database)
    # Left by a failed attempt.
    backup.remove_copy(fresh)
    result.backup = str(backup.restore_backup(paths.backups, fresh) or "")
    store = SqliteStore(fresh)
    try:
        result.backup_head = _store_head(store)
        result.tombstones = store.tombstones()
        result.salvaged = sum(_append_new(store, batch) for batch in _salvaged_batches(database, result.backup_head))
        # The damaged file may show less than was written; the high-water mark knows how far the log had come.
        reached = max(expected_head, backup.last_seq_of_damaged(database), result.backup_head)
        result.lost = reached - result.backup_head - result.salvaged
        _close_off(store, features, result, reached, now)
    finally:
        store.close()
    backup.complete_replacement(fresh, database)
    return result


def swap_in(database: Path, result: Repair) -> None:
    """The caller has closed the damaged store."""
    backup.swap_in_replacement(database, Path(result.quarantine))


def _close_off(store: Store, features: Sequence[Feature], result: Repair, reached: int, now: int) -> None:
    """Never reuse the numbers of lost events: a reference to one finds nothing instead of something else. Documents
    are rebuilt afterwards, because their features are outdated now."""
    event = Event(key=delivery_key(now), kind="store.restored", at=now, data=msgspec.structs.asdict(result))
    with store.transaction():
        store.append([msgspec.structs.replace(event, seq=reached + 1)])
        for feature in features:
            store.set_meta(version_key(feature), "")


def _store_head(store: Store) -> int:
    with store.transaction() as head:
        return head


def _salvaged_batches(damaged: Path, after: int) -> Iterator[list[Event]]:
    rows = _readable_rows(damaged, after)
    while batch := [event for row in itertools.islice(rows, BATCH) for event in _row_events(row)]:
        yield batch


def _readable_rows(damaged: Path, after: int) -> Iterator[tuple[Any, ...]]:
    # What was read before the error is kept.
    with contextlib.suppress(apsw.Error, OSError):
        yield from backup.salvage_events(damaged, after)


def _append_new(store: Store, events: list[Event]) -> int:
    with store.transaction() as head:
        known_keys = store.seqs_of_keys([e.key for e in events])
        # Numbers must rise, and a damaged file may return a row twice.
        fresh = [e for e in events if e.key not in known_keys and e.seq > head]
        if fresh:
            store.append(fresh)
    return len(fresh)


def _row_events(row: tuple[Any, ...]) -> list[Event]:
    """None if the row itself is damaged."""
    seq, key, at, version, data, session, project, kind, tool, agent, size, digest, body = row
    with contextlib.suppress(Exception):
        return [
            Event(
                seq=seq, key=key, at=at, data=decode_payload(kind, version, bytes(data)), session=session, project=project, kind=kind,
                tool=tool, agent=agent, body=body or b"", body_size=size or 0, body_hash=digest or "",
            )
        ]  # fmt: skip
    return []
