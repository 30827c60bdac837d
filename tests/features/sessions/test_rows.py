"""Rows by range: the same, in whatever pieces they are asked for."""

import pytest

from holdfast.features.sessions import views

from .story import House, Story


@pytest.fixture
def long(house: House) -> House:
    story = Story().start()
    for n in range(130):
        story.prompt(f"prompt {n}").tool(f"c{n}", ok=n % 10 != 0).stop(f"answer {n}")
        story.tell("prompt.submitted", session="another", prompt="not mine")
    house.take(story)
    return house


def test_every_range_is_a_piece_of_the_whole(long: House):
    marks = long.view("marks", id="s-1")
    whole: list[int] = []
    for mark in marks["marks"]:
        page = long.view("rows", id="s-1", start=mark, limit=marks["every"])["rows"]
        assert page[0]["seq"] == mark
        whole += [row["seq"] for row in page]
    assert len(whole) == marks["total"] == 1 + 130 * 3
    assert whole == sorted(set(whole))
    assert whole[-1] == marks["last"]
    backwards, before = [], 0
    while True:
        page = long.view("rows", id="s-1", before=before, limit=100)
        backwards = [row["seq"] for row in page["rows"]] + backwards
        before = page["older"]
        if not before:
            break
    assert backwards == whole


@pytest.mark.parametrize("only", [name for name in views.ROW_FILTERS if name])
def test_what_is_filtered_is_marked_alike(long: House, only: str):
    marks = long.view("marks", id="s-1", only=only)
    page = long.view("rows", id="s-1", only=only, limit=500)["rows"]
    assert marks["total"] == len(page)
    assert {row["kind"] for row in page} <= set(views.ROW_FILTERS[only])


def test_a_row_knows_its_turn_and_how_long_it_took(long: House):
    page = long.view("rows", id="s-1", limit=4)["rows"]
    prompt, tool, answer = page[-3:]
    assert [row["kind"] for row in (prompt, tool, answer)] == ["prompt.submitted", "tool.finished", "turn.ended"]
    assert {row["turn"] for row in (prompt, tool, answer)} == {130}
    assert (tool["ms"], tool["at"] - tool["began"]) == (1000, 1000)  # Seen: it began a second before it ended.
    assert prompt["turn_at"] == prompt["at"]
    assert prompt["turn_end"] == answer["at"]


def test_words_are_found_and_the_search_goes_on_where_it_stopped(long: House):
    found = long.view("rows", id="s-1", q="PROMPT 12", limit=5)
    texts = [row["text"] for row in found["rows"]]
    assert texts == [f"prompt {n}" for n in range(125, 130)]
    older = long.view("rows", id="s-1", q="prompt 12", limit=500, before=found["older"])
    assert [row["text"] for row in older["rows"]] == ["prompt 12", *(f"prompt {n}" for n in range(120, 125))]
    assert older["older"] == 0
    assert long.view("rows", id="s-1", q="nowhere to be found")["rows"] == []


def test_paths_of_the_project_are_told_from_there(house: House):
    house.take(Story().start().prompt().tool(tool="Read", command="", paths=["/home/ada/engine/src/a.py"]))
    assert house.view("rows", id="s-1")["rows"][-1]["text"] == "src/a.py"


def test_an_overview_shows_turns_lanes_and_answers(house: House):
    story = Story().start().prompt().tell("subagent.started", lane="l1", lane_type="explorer").tool()
    story.tell("decision.made", of=3, of_kind="tool.started", verdict="deny", reasons=["no"], contexts=[]).stop()
    house.take(story)
    seen = house.view("overview", id="s-1")
    assert [(t["n"], t["tools"]) for t in seen["turns"]] == [(1, 1)]
    assert [lane["type"] for lane in seen["lanes"]] == ["explorer"]
    assert [d["deny"] for d in seen["decisions"]] == [True]
