"""Encrypted bodies on both engines: written, read, changed in form, erased; and what a missing key means."""

import base64

import pytest

from holdfast.core.erase import Quotation, build_eraser
from holdfast.core.errors import KeyUnavailable
from holdfast.core.event import Event
from holdfast.core.ports import Store
from holdfast.stores import body_cipher, body_keys
from holdfast.stores.body_cipher import (
    ENCRYPTED_MARK,
    JOURNAL_PLACE,
    UNREADABLE,
    BodyCipher,
    BodyUnreadable,
    is_encrypted,
    key_id,
    place_of,
)
from holdfast.stores.key_name import KEY_NAME, prepare_key
from holdfast.stores.sqlite import SqliteStore

from .conftest import Place

KEY = bytes(range(32))
SECRET = b'{"note": "the zebrafinch sings"}'


class Switch:
    """The setting, and a keyring in memory."""

    def __init__(self) -> None:
        self.on = True
        self.keys = {key_id(KEY).hex(): KEY}
        self.locked = False

    def find(self, name: str) -> bytes | None:
        if self.locked:
            raise KeyUnavailable("locked")
        return self.keys.get(name)

    def cipher(self) -> BodyCipher:
        return BodyCipher(lambda: self.on, self.find)


def events(first: int, count: int) -> list[Event]:
    return [Event(seq=n, key=f"key-{n}", kind="tool.finished", at=n, body=SECRET) for n in range(first, first + count)]


def append(store: Store, first: int, count: int) -> None:
    with store.transaction():
        store.append(events(first, count))


def change(store: Store, seqs: list[int]) -> int:
    with store.transaction():
        return store.change_bodies(seqs)


def read(store: Store) -> list[bytes]:
    reader = store.reader()
    try:
        return [event.body for n in range(1, reader.head() + 1) if (event := reader.event(n))]
    finally:
        reader.close()


def forms(store: Store) -> dict[bytes, int]:
    reader = store.reader()
    try:
        return reader.body_keys()
    finally:
        reader.close()


def wrong_form(store: Store, encrypted: bool) -> list[int]:
    reader = store.reader()
    try:
        return reader.bodies_in_form(encrypted, 0, 100)
    finally:
        reader.close()


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def store(place: Place, switch: Switch):
    cipher = switch.cipher()
    cipher.use_key(KEY)
    store = SqliteStore(place.path, cipher=cipher)
    yield store
    store.close()


def test_bodies_are_encrypted_where_they_lie_and_plain_where_they_are_read(store: Store) -> None:
    append(store, 1, 3)
    assert forms(store) == {key_id(KEY): 3}
    assert read(store) == [SECRET] * 3


def test_a_change_of_form_may_stop_anywhere_and_go_on(store: Store, switch: Switch) -> None:
    switch.on = False
    append(store, 1, 5)
    assert forms(store) == {b"": 5}
    switch.on = True
    assert change(store, [1, 2]) == 2
    assert wrong_form(store, encrypted=False) == [3, 4, 5]
    assert read(store) == [SECRET] * 5, "half done is no harm"
    assert change(store, [1, 2, 3, 4, 5]) == 3
    assert forms(store) == {key_id(KEY): 5}
    switch.on = False
    assert change(store, [1, 2, 3, 4, 5]) == 5
    assert forms(store) == {b"": 5}
    assert read(store) == [SECRET] * 5


def test_a_text_is_erased_from_encrypted_bodies(store: Store) -> None:
    append(store, 1, 2)
    wanted = Quotation("the zebrafinch sings")
    with store.transaction():
        assert {row.table for row in store.rows_with(wanted.probes)} == {"bodies"}
        assert store.rewrite(wanted.probes, build_eraser([wanted])) == 2
    assert all(b"zebrafinch" not in body for body in read(store))
    assert forms(store) == {key_id(KEY): 2}, "what is left of them stays encrypted"


def test_bodies_of_a_lost_key_are_told_as_such_and_go_with_an_erasure(place: Place, store: Store) -> None:
    append(store, 1, 2)
    lost = Switch()
    lost.keys.clear()
    other = SqliteStore(place.path, cipher=lost.cipher())
    try:
        assert read(other) == [UNREADABLE] * 2
        with other.transaction():
            other.rewrite(Quotation("zebrafinch").probes, build_eraser([Quotation("zebrafinch")]))
        assert forms(other) == {}
    finally:
        other.close()


def test_a_locked_keyring_keeps_an_erasure_from_claiming_that_it_is_done(place: Place, store: Store) -> None:
    append(store, 1, 2)
    locked = Switch()
    locked.locked = True
    other = SqliteStore(place.path, cipher=locked.cipher())
    try:
        with pytest.raises(KeyUnavailable), other.transaction():
            other.rewrite(Quotation("zebrafinch").probes, build_eraser([Quotation("zebrafinch")]))
        assert forms(other) == {key_id(KEY): 2}
    finally:
        other.close()


def test_a_key_is_made_once_and_named_in_the_store(
    place: Place, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bytes] = []

    def create(name_of) -> bytes:
        made.append(bytes([len(made)]) * 32)
        switch.keys[name_of(made[-1]).hex()] = made[-1]
        return made[-1]

    monkeypatch.setattr(body_keys, "create_key", create)
    store = SqliteStore(place.path)
    for _ in range(2):
        cipher = switch.cipher()
        prepare_key(cipher, store)
        assert cipher.ready
    assert len(made) == 1
    reader = store.reader()
    assert reader.meta(KEY_NAME) == key_id(made[0]).hex()
    reader.close()
    switch.keys.clear()
    cipher = switch.cipher()
    prepare_key(cipher, store)
    assert (cipher.ready, len(made)) == (True, 2), "a key that is lost is replaced"
    store.close()


def test_a_body_opens_only_in_its_own_place_and_unchanged(switch: Switch) -> None:
    cipher = switch.cipher()
    cipher.use_key(KEY)
    sealed = cipher.seal(SECRET, place_of(7))
    assert is_encrypted(sealed)
    assert b"zebrafinch" not in sealed
    assert cipher.open(sealed, place_of(7)) == SECRET
    assert cipher.seal(SECRET, place_of(7)) != sealed, "a nonce of its own each time"
    assert cipher.seal(sealed, place_of(7)) == sealed, "never twice"
    for wrong in (sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed[:30]):
        with pytest.raises(BodyUnreadable):
            cipher.open(wrong, place_of(7))
    with pytest.raises(BodyUnreadable):
        cipher.open(sealed, place_of(8))
    assert cipher.show(sealed, 8) == UNREADABLE


def test_without_a_key_a_body_is_left_out_and_never_plain(switch: Switch) -> None:
    cipher = switch.cipher()
    cipher.problem = "locked"
    assert cipher.seal(SECRET, place_of(1)) == b""
    switch.on = False
    assert cipher.seal(SECRET, place_of(1)) == SECRET


def test_a_keyring_that_does_not_answer_holds_nobody_up_for_long(switch: Switch) -> None:
    asked: list[str] = []

    def find(name: str) -> bytes | None:
        asked.append(name)
        raise KeyUnavailable("it does not answer")

    sealing = switch.cipher()
    sealing.use_key(KEY)
    sealed = [sealing.seal(SECRET, place_of(n)) for n in range(50)]
    cipher = BodyCipher(lambda: True, find)
    assert {cipher.show(one, n) for n, one in enumerate(sealed)} == {UNREADABLE}
    assert len(asked) == 1
    with pytest.raises(KeyUnavailable):
        body_cipher.BodyCipher(lambda: True, find).open(sealed[0], place_of(0), ask=False)
    assert len(asked) == 1


@pytest.mark.parametrize("text", [None, "no base64 at all!", base64.b64encode(b"short").decode()])
def test_what_is_no_key_in_the_keyring_is_none(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyring:
        def get_password(self, _service: str, _name: str) -> str | None:
            return text

    monkeypatch.setattr(body_keys, "require_keyring", Keyring)
    assert body_keys.find_key("name") is None


def test_a_key_that_is_asked_for_again_and_again_takes_no_memory() -> None:
    """A daemon whose keyring is gone looks at its journal at every tick: what it had in hand must not stay."""

    def refuse(_name: str) -> None:
        raise KeyUnavailable("the keyring is gone")

    cipher = BodyCipher(lambda: True, refuse)
    sealed = ENCRYPTED_MARK + bytes(100)
    steps = []
    for _ in range(20):
        with pytest.raises(KeyUnavailable) as caught:
            cipher.open(sealed, JOURNAL_PLACE)
        steps.append(len(caught.traceback))
    assert steps[-1] == steps[1]
