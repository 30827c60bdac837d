"""The hash chain shows what was changed, removed or reordered behind Holdfast's back."""

import random
import sqlite3
from collections.abc import Callable

import pytest

from holdfast.core.chain import ChainReport, Head, Restore, verify_chain
from holdfast.core.erase import Quotation, build_eraser
from tests.factories import events
from tests.stores.conftest import Place


def filled(place: Place, batches: int = 4) -> Head:
    store = place.store()
    for _ in range(batches):
        with store.transaction() as head:
            store.append(numbered(events(5), head))
    seq, link = store.head
    return Head(1, seq, link.hex())


def numbered(new, head: int):
    import msgspec

    return [msgspec.structs.replace(event, seq=head + n) for n, event in enumerate(new, 1)]


def verified(place: Place, *heads: Head, restores: tuple[Restore, ...] = ()) -> ChainReport:
    return verify_chain(place.reader().chained(), heads, restores)


def test_an_untouched_log_is_intact(place: Place) -> None:
    head = filled(place)
    report = verified(place, head)
    assert report.is_intact
    assert (report.since, report.chained, report.erased) == (1, 20, 0)
    assert report.head is not None
    assert report.head.link == head.link


TAMPERING: dict[str, str] = {
    "content": 'update facts set data = cast(\'{"call":"other"}\' as blob) where seq = 7',
    "key": "update facts set key = 'another' where seq = 7",
    "time": "update events set at = at + 1 where seq = 7",
    "session": "update names set name = 's-2' where name = 's-1'",
    "kind": "update events set kind = session where seq = 7",
    "removed": "delete from events where seq = 7; delete from facts where seq = 7",
    "blanked": "update facts set data = cast('{}' as blob), salt = null, leaf = randomblob(32) where seq = 7",
    "unchained": "update facts set link = null where seq = 7",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=list(TAMPERING))
def test_a_change_behind_our_back_is_found(place: Place, statement: str) -> None:
    filled(place)
    with sqlite3.connect(place.path) as db:
        db.executescript(statement)
    assert not verified(place).is_intact


def test_two_events_that_changed_places_are_found(place: Place) -> None:
    filled(place)
    with sqlite3.connect(place.path) as db:
        db.executescript("update facts set seq = -7 where seq = 7; update facts set seq = 7 where seq = 8;"
                         "update facts set seq = 8 where seq = -7")  # fmt: skip
    assert not verified(place).is_intact


def test_a_removed_end_is_found_by_a_noted_head(place: Place) -> None:
    head = filled(place)
    with sqlite3.connect(place.path) as db:
        db.executescript("delete from events where seq > 15; delete from facts where seq > 15")
    assert verified(place).is_intact, "the rest is whole"
    assert verified(place, head).lost_heads == [head]
    explained = verified(place, head, restores=(Restore(2, 15),))
    assert explained.is_intact
    assert explained.restored_heads == 1
    # A restore from before the head was noted explains nothing, nor does one that kept the event.
    assert not verified(place, head, restores=(Restore(0, 15), Restore(2, 20))).is_intact


def test_a_log_written_again_from_some_event_on_is_found_by_a_noted_head(place: Place, new_place: Callable) -> None:
    head = filled(place)
    other = new_place()
    filled(other)
    assert verified(other).is_intact
    assert verified(other, head).lost_heads == [head]


def test_erased_events_keep_the_chain_and_lose_their_salt(place: Place) -> None:
    head = filled(place)
    store = place.store()
    quotation = Quotation("call-")
    with store.transaction():
        changed = store.rewrite((b"call-",), build_eraser([quotation]))
    with store.transaction():
        store.blank_events(["s-1"], [])
    assert changed
    assert store.tombstones() == 20
    assert store.reader().chained().__next__().salt == b""
    report = verified(place, head)
    assert report.is_intact
    assert report.erased == 20


def test_a_log_from_before_the_chain_begins_it_with_its_next_event(place: Place) -> None:
    filled(place, 1)
    with sqlite3.connect(place.path) as db:
        db.execute("update facts set salt = null, link = null")
    filled(place, 1)
    report = verified(place)
    assert report.is_intact
    assert (report.since, report.chained) == (6, 5)


def test_a_rolled_back_transaction_leaves_no_link(place: Place) -> None:
    store = place.store()
    with pytest.raises(RuntimeError), store.transaction() as head:
        store.append(numbered(events(3), head))
        raise RuntimeError
    with store.transaction() as head:
        store.append(numbered(events(3), head))
    assert verified(place).is_intact


def test_any_history_of_appends_erasures_and_tampering(new_place: Callable) -> None:
    chance = random.Random(5)
    for _ in range(40):
        place = new_place()
        store, heads = place.store(), []
        for _ in range(chance.randint(1, 8)):
            with store.transaction() as head:
                store.append(numbered(events(chance.randint(1, 4), session=f"s-{chance.randint(1, 3)}"), head))
            heads.append(Head(1, store.head[0], store.head[1].hex()))
            if chance.random() < 0.3:
                with store.transaction():
                    store.blank_events([f"s-{chance.randint(1, 3)}"], [])
        assert verified(place, *heads).is_intact
        seq = chance.randint(1, store.head[0])
        with sqlite3.connect(place.path) as db:
            db.execute("delete from facts where seq = ?", (seq,))
        assert not verified(place, *heads).is_intact
