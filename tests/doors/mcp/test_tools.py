"""What an agent is told of code: lines, why, what is around; and whose a lease is."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.doors.mcp.tools import _code_rows, _held_by, _outline_rows, _symbol_rows

HIT = {
    "path": "src/wheel.py", "line": 7, "end": 9, "symbol": "Brake.press", "kind": "method",
    "why": ["phrase", "words: slow", "meaning 0.27", "name"], "excerpt": "def press(self):",
    "within": {"symbol": "Brake", "kind": "class", "line": 6, "end": 9}, "before": None,
    "after": {"symbol": "turn", "kind": "function", "line": 12, "end": 14},
}  # fmt: skip


def test_a_hit_is_a_block_with_its_reason_and_neighbours() -> None:
    (row,) = _code_rows({"at": 0, "hits": [HIT]})
    assert (row.id, row.type, row.status) == ("src/wheel.py:7-9", "method", "phrase; words: slow; meaning 0.27")
    assert row.text == "Brake.press (in Brake:6, then turn:12)\ndef press(self):"


def test_an_outline_and_a_name() -> None:
    outlined = {"path": "a.py", "definitions": [{"symbol": "f", "kind": "function", "line": 1, "end": 3}]}
    assert [(row.id, row.text) for row in _outline_rows(outlined)] == [("a.py:1-3", "f")]
    place = {"path": "a.py", "line": 1, "symbol": "f", "text": "def f():", "end": 3}
    told = {"definitions": [place], "uses": [], "tests": [{**place, "path": "test_a.py"}], "similar": ["g"]}
    assert [(row.id, row.status) for row in _symbol_rows(told)] == [
        ("a.py:1", "definition"), ("test_a.py:1", "test"), ("g", "similar name"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "pid", "held"), [("port", 7, True), ("port", 8, False), ("db", 7, False), ("none", 7, False)]
)
def test_a_lease_is_held_by_the_process_that_is_named_as_its_holder(name: str, pid: int, held: bool) -> None:
    leases = [{"name": "port", "holders": [{"pid": 6}, {"pid": 7}]}, {"name": "db", "holders": []}]
    context: Any = SimpleNamespace(view=lambda _name: {"leases": leases})
    assert _held_by(name, pid, context) is held
