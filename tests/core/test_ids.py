"""Identities."""

import time

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ids import (
    LONGEST_NAME,
    bounded_name,
    delivery_key,
    native_session_id,
    session_alias,
    shared_session_key,
)

LONG = st.text(min_size=LONGEST_NAME, max_size=LONGEST_NAME * 3)
NAMES = st.one_of(st.text(), LONG, st.text(st.characters()), LONG.map(lambda t: "same beginning " * 40 + t))
MILLISECONDS = st.integers(0, 2**48 - 1)


@given(NAMES, NAMES)
def test_two_names_stay_two(a, b):
    assert (bounded_name(a) == bounded_name(b)) == (a == b)


@given(NAMES)
def test_a_bounded_name_is_short_printable_and_stays(name):
    short = bounded_name(name)
    assert len(short) <= LONGEST_NAME
    assert short.isprintable()
    assert bounded_name(short) == short


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=LONGEST_NAME))
def test_an_ordinary_name_is_its_own(name):
    assert bounded_name(name) == name


@given(MILLISECONDS, MILLISECONDS)
def test_keys_sort_by_time(a, b):
    if a != b:
        assert (delivery_key(a) < delivery_key(b)) == (a < b)


@given(MILLISECONDS)
def test_a_key_is_32_hex_digits_that_begin_with_the_time(now):
    key = delivery_key(now)
    assert len(key) == 32
    assert int(key[:12], 16) == now
    assert key == f"{int(key, 16):032x}"


def test_keys_of_one_moment_differ():
    assert len({delivery_key(5) for _ in range(10_000)}) == 10_000


def test_without_a_time_it_is_now():
    before = int(time.time() * 1000)
    assert before <= int(delivery_key()[:12], 16) <= int(time.time() * 1000)


def test_the_alias_tells_seed_ids_apart():
    assert session_alias("session_20251201_101112") != session_alias("session_20251201_101113")
    assert session_alias("019ddb90-9933-7461-ad38-875618e21ac6") != session_alias(
        "019ddb90-9a11-7d31-9736-7094e307e0fd"
    )
    assert session_alias("ses_2bef27598ffe7m6Lx2BIiN92bh") != session_alias("ses_2bef25635ffe8EzID0I1Oeymal")
    assert session_alias("a1b2c3d4-e5f6-4890-abcd-ef1234567890") == "a1b2c3d4"
    assert all(len(session_alias(name)) <= 8 for name in ("", "x", "session_", "a" * 100))


def test_the_key_of_a_session_that_shares_its_id():
    """Made once however often it is asked for, and taken back to the id that the agent's own files have."""
    key = shared_session_key("s-1", "codex")
    assert (key, shared_session_key(key, "codex")) == ("s-1~codex", "s-1~codex")
    assert (native_session_id(key, "codex"), native_session_id("s-1", "codex"), native_session_id("s~x", "")) == (
        "s-1", "s-1", "s~x",
    )  # fmt: skip
