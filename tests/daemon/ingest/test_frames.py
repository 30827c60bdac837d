"""A frame of many megabytes is shortened while it comes, and is JSON afterwards, wherever its pieces were cut."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.daemon.ingest.frames import LONGEST_REMEMBERED, as_delivery, as_frame, frame_length, open_large_frame

HALF = 192 << 10


def shortened(payload: Any, seed: int = 1, ascii_only: bool = True) -> tuple[Any, int, int]:
    """What is left of a payload, how long it was, and how long what is left of it is."""
    body = json.dumps(payload, ensure_ascii=ascii_only).encode()
    frame = as_frame({"key": "a1", "mode": "tell"}, body)
    large = open_large_frame(frame[:40], frame_length(frame[:12]))
    if large is None:
        pytest.skip("the native library is not built here")
    for piece in pieces(frame[40:], seed):
        assert not large.is_complete
        large.add(piece)
    assert large.is_complete
    delivery = large.as_delivery()
    assert (delivery.key, delivery.whole) == ("a1", len(body))
    return json.loads(delivery.body), delivery.whole, len(delivery.body)


def pieces(content: bytes, seed: int) -> Iterator[bytes]:
    chance, at = random.Random(seed), 0
    while at < len(content):
        size = chance.choice((1, 7, 4096, 65_536, 1 << 20))
        yield content[at : at + size]
        at += size


UNITS = ("x", "é", "\U0001f600", "\n", '\\"', "a\u2028", "ordinary words. ", "\\u0041")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_long_string_keeps_its_ends(unit: str, ascii_only: bool) -> None:
    text = "first" + unit * (5 * HALF // len(unit)) + "last"
    kept, _, size = shortened({"a": text, "after": [1, "two"]}, len(unit), ascii_only)
    assert kept["after"] == [1, "two"]
    head, mark, tail = kept["a"].partition("\n[… ")
    assert text.startswith(head)
    assert mark
    assert text.endswith(tail.partition("…]\n")[2])
    assert size < 3 * HALF


def test_a_string_that_is_not_long_stays() -> None:
    payload = {"a": ["é" * 30_000, 'say \\"it\\"' * 9_000], "b": {"c": None, "d": -1.5e3}, "e": []}
    assert shortened(payload)[0] == payload


def test_lists_and_objects_keep_their_first_items() -> None:
    rows = [{"n": n, "name": f"row {n}", "tags": ["a", ["b"]]} for n in range(60_000)]
    kept, _, size = shortened({"rows": rows, "many": {f"k{n}": n for n in range(60_000)}, "z": True})
    assert kept["rows"] == rows[:200]
    assert kept["many"] == {f"k{n}": n for n in range(200)}
    assert kept["z"] is True
    assert size < 40_000


def test_what_is_nested_deeply_ends_early() -> None:
    deep: Any = "bottom"
    for _ in range(300):
        deep = {"a": [deep, 1]}
    kept, _, _ = shortened({"deep": deep, "z": 1})
    assert kept["z"] == 1
    assert "bottom" not in json.dumps(kept)


FIELDS = {
    "key": "a1", "mode": "ask", "agent": "claude-code", "event": "Stop", "at": "5", "pid": "6", "start": "7", "cwd": "/p",
    "state": "/s", "client": "1.0", "via": "native", "confirms": "1", "told": "deny", "whole": "8", "env.A": "a=b", "env.B": "",
    "later": "x",
}  # fmt: skip


@pytest.mark.parametrize("cwd", ["/p", "/" + "p" * LONGEST_REMEMBERED])
@pytest.mark.parametrize("seed", range(20))
def test_the_fields_of_a_header_may_stand_in_any_order(seed: int, cwd: str) -> None:
    """What stands behind the folder is remembered for the next hooks: that must not be seen."""
    names = [*FIELDS]
    random.Random(seed).shuffle(names)
    fields = FIELDS | {"cwd": cwd}
    expected = as_delivery(as_frame(fields, b"{}"), ancestors=(9,))
    assert (expected.key, expected.at, expected.pid, expected.start, expected.whole) == ("a1", 5, 6, 7, 8)
    assert (expected.cwd, expected.client_verdict, expected.confirms) == (cwd, "deny", True)
    assert expected.env == {"A": "a=b", "B": ""}
    for _ in range(2):
        assert as_delivery(as_frame({name: fields[name] for name in names}, b"{}"), ancestors=(9,)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_frame_in_chunks_is_the_same_delivery(seed: int) -> None:
    frame = as_frame(FIELDS, bytes(range(256)) * 3)
    expected = as_delivery(frame, ancestors=(9,))
    start, rest = frame[: 12 + seed * 20], frame[12 + seed * 20 :]
    assert as_delivery(start, *pieces(rest, seed), ancestors=(9,)) == expected
    assert type(as_delivery(start, rest).body) is bytes


def test_one_call_leaves_nothing_behind_for_the_next() -> None:
    same = {"cwd": "/p", "client": "1.0"}
    first = as_delivery(as_frame({"key": "a1", "env.A": "1", "told": "deny", **same}, b""))
    second = as_delivery(as_frame({"key": "a2", **same}, b""))
    assert (first.key, first.env, first.client_verdict) == ("a1", {"A": "1"}, "deny")
    assert (second.key, second.env, second.client_verdict) == ("a2", {}, "")
