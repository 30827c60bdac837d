"""The content store: exact bytes back, small differences, bounds, erasure, encryption."""

import os
import random
import stat
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.times import DAY
from holdfast.features.workspace import codec
from holdfast.features.workspace.content_store import (
    LONGEST_CHAIN,
    UNKEPT,
    ContentStore,
    Seen,
    content_id,
    path_of,
    text_of,
)
from holdfast.stores.body_cipher import BodyCipher


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_decoding_gives_the_bytes_back(content: bytes, base: bytes) -> None:
    assert codec.decode(codec.encode(content, base), lambda: base) == content


def test_an_edit_of_a_large_file_takes_little_space(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    lines = [f"line {random.Random(n).random()}\n".encode() for n in range(3_000)]
    before = store.put(b"".join(lines), "", 1)
    first = store.used_bytes()
    for n in range(40):
        lines[n * 70] = b"changed %d\n" % n
        after = store.put(b"".join(lines), before, n)
        assert store.get(after) == b"".join(lines)
        before = after
    # Forty versions in less than what five in full would take, although every twelfth is stored in full.
    assert store.used_bytes() < 5 * first
    assert store.count() == 41


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_what_is_evicted_takes_no_other_version_with_it(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    body = os.urandom(20_000)
    names = [store.put(body, "", 0)]
    for n in range(1, LONGEST_CHAIN):
        names.append(store.put(body + b"%d" % n, names[-1], n * DAY))
    store.keep_bounds(now=(LONGEST_CHAIN - 1) * DAY + 1, days=3, most_bytes=1 << 30)
    kept = [n for n, name in enumerate(names) if store.has(name)]
    assert kept == list(range(LONGEST_CHAIN - 3, LONGEST_CHAIN))
    assert all(store.get(names[n]) == body + b"%d" % n for n in kept)


def test_big_versions_are_evicted_first_and_what_files_hold_now_last(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    big, small, current = os.urandom(2 << 20), os.urandom(1_000), os.urandom(2 << 20)
    names = [store.put(content, "", at) for at, content in enumerate((small, big, current))]
    with store.transaction():
        store.note("/r", "a", Seen(names[2], 0o100644, "x"))
    store.keep_bounds(now=10, days=7, most_bytes=3 << 20)
    assert [store.has(name) for name in names] == [True, False, True]
    store.keep_bounds(now=10, days=7, most_bytes=0)
    assert store.count() == 0


def test_erasing_a_text_removes_versions_that_quote_it_and_keeps_the_others(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    base = b"".join(b"line %d\n" % n for n in range(500))
    first = store.put(base + b"my secret word\n", "", 1)
    second = store.put(base, first, 2)
    assert store.erase(lambda content: b"my secret word" in content) == 1
    assert (store.get(first), store.get(second)) == (None, base)
    assert b"my secret word" not in store.path.read_bytes()


def test_erasing_a_project_forgets_its_files(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    one, two = store.put(b"one", "", 1), store.put(b"two", "", 1)
    with store.transaction():
        store.note("/p", "a", Seen(one, 0o100644))
        store.note("/p2", "a", Seen(two, 0o100644))
    store.erase(lambda _content: False, ["/p"])
    assert (store.get(one), store.get(two)) == (None, b"two")
    assert (store.files("/p"), list(store.files("/p2"))) == ({}, ["a"])


def test_erasing_a_project_takes_versions_that_were_replaced_long_ago(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    old, new, shared = (store.put(content, "", 1) for content in (b"old", b"new", b"shared"))
    with store.transaction():
        for root, before, after in (("/p/x", old, new), ("/p", new, shared), ("/q", shared, old[:0])):
            store.add_change(root, "a", Seen(before, 0o100644), Seen(after, 0o100644), 1, "")
    store.told(row.seq for row in store.changes())
    store.erase(lambda _content: False, ["/p"])
    assert [store.get(name) for name in (old, new, shared)] == [None, None, b"shared"]
    store.keep_bounds(now=10, days=7, most_bytes=0)
    assert store._rows("select * from versions") == []


def test_contents_are_encrypted_if_bodies_are(tmp_path: Path) -> None:
    wanted = False
    cipher = BodyCipher(lambda: wanted)
    store = ContentStore(tmp_path, cipher)
    plain = store.put(b"before the setting" * 9, "", 1)
    wanted = True
    cipher.use_key(b"k" * 32)
    sealed = store.put(b"after the setting" * 9, plain, 2)
    assert store.encrypt_older() == 1
    assert store.encrypt_older() == 0
    assert (store.get(plain), store.get(sealed)) == (b"before the setting" * 9, b"after the setting" * 9)
    locked = BodyCipher(lambda: True)
    locked.problem = "the keyring is closed"
    assert ContentStore(tmp_path, locked).put(b"new", "", 3) == UNKEPT


def test_changes_survive_until_they_are_told(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    with store.transaction():
        store.add_change("/r", "a\udcff", Seen("1", 1, by="s"), Seen("2", 2), 5, "c")
    store.close()
    (row,) = ContentStore(tmp_path).changes()
    assert (row.root, row.path, row.before, row.after, row.call, row.owner) == ("/r", "a\udcff", "1", "2", "c", "s")
    again = ContentStore(tmp_path)
    again.told([row.seq])
    assert again.changes() == []


def test_every_name_can_be_written_as_text() -> None:
    for name in ("plain", "é", "odd\udcff/é"):
        assert path_of(text_of(name)) == name
        text_of(name).encode()


def test_damaged_content_is_not_given_out(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    name = store.put(b"x" * 100, "", 1)
    store._db.execute("update blobs set stored=? where id=?", (codec.encode(b"y" * 100, None), name))
    assert store.get(name) is None
    assert content_id(b"x" * 100) == name
