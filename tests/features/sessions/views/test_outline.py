"""The outline of a session has every row in its turn; the state at a moment is the engine's own fold."""

import pytest

from holdfast.core.document import encode
from holdfast.core.errors import CommandRefused
from holdfast.core.replay import document_at
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.state.documents import SESSION
from holdfast.features.sessions.views import outline

from ..story import House, Story

TURNS = 40


@pytest.fixture
def long(house: House) -> House:
    story = Story().start()
    for n in range(TURNS):
        story.prompt(f"prompt {n}").tool(f"c{n}", ok=n % 10 != 0).stop(f"answer {n}")
    house.take(story)
    return house


def test_every_row_is_in_the_block_of_its_turn(long: House):
    told = long.view("outline", id="s-1")
    turns = told["turns"]
    assert [turn["n"] for turn in turns] == list(range(TURNS + 1))
    assert told["rows"] == sum(turn["rows"] for turn in turns) == long.view("marks", id="s-1")["total"]
    for turn, following in zip(turns, [*turns[1:], {"first": 0}], strict=True):
        rows = long.view("rows", id="s-1", start=turn["blocks"][0], before=following["first"], limit=200)["rows"]
        assert len(rows) == turn["rows"]
        assert {row["turn"] for row in rows} == {turn["n"]}
    assert turns[1]["prompt"] == "prompt 0"
    assert turns[1]["failed"] == 1


def test_a_part_of_the_outline_is_the_same(long: House):
    whole = long.view("outline", id="s-1")["turns"]
    assert long.view("outline", id="s-1", turn=38)["turns"] == whole[38:]


def test_a_filter_leaves_turns_without_rows(long: House):
    turns = long.view("outline", id="s-1", only="failures")["turns"]
    assert sum(turn.get("rows", 0) for turn in turns) == 4


def test_long_turns_have_blocks(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outline, "BLOCK_ROWS", 3)
    story = Story().start().prompt("go")
    for n in range(8):
        story.tool(f"c{n}")
    house.take(story)
    turn = house.view("outline", id="s-1")["turns"][-1]
    assert turn["rows"] == 9
    assert len(turn["blocks"]) == 3


def test_the_state_at_each_moment_is_what_the_engine_folds(long: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outline.FoldedSessions, "EVERY", 7)
    rows = [row["seq"] for row in long.view("rows", id="s-1", limit=500)["rows"]]
    for seq in (*rows[::17], *rows[:3], rows[-1]):
        told = long.view("moment", id="s-1", seq=seq)
        assert encode(told["document"]) == encode(document_at(FEATURE, long.reader, SESSION.ref("s-1"), seq))
    assert long.view("moment", id="s-1")["seq"] == rows[-1]


def test_stepping_goes_through_every_row_once_in_both_directions(long: House):
    rows = [row["seq"] for row in long.view("rows", id="s-1", limit=500)["rows"]]
    at, steps = long.view("moment", id="s-1", start=1), []
    for _ in range(12):
        steps.append(at["seq"])
        at = long.view("moment", id="s-1", seq=at["next"])
    assert steps == rows[:12]
    assert long.view("moment", id="s-1", seq=steps[-1])["previous"] == steps[-2]
    assert long.view("moment", id="s-1", start=rows[0], offset=9)["seq"] == rows[9]
    assert long.view("moment", id="s-1", seq=rows[0])["previous"] == 0


def test_what_an_event_changed_is_named(long: House):
    rows = long.view("rows", id="s-1", limit=500)["rows"]
    failed = next(row for row in rows if row["kind"] == "tool.failed")
    told = long.view("moment", id="s-1", seq=failed["seq"])
    assert "failed" in told["changed"]
    assert told["counts"]["failed"] == 1


def test_an_event_of_another_session_is_refused(long: House):
    long.take(Story().start(session="another"))
    with pytest.raises(CommandRefused, match="does not belong to this session"):
        long.view("moment", id="s-1", seq=long.reader.head())
