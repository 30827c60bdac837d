"""The status line says what is known, and nothing else."""

import pytest

from .story import House, Story


def test_what_is_known_is_said(house: House) -> None:
    house.hook("prompt.submitted", prompt="one")
    assert house.view("statusline", id="s-1")["text"] == "– tokens"
    assert house.view("statusline", id="s-1", reported=1.5, context=12.6)["text"] == "$1.50 · context 13%"
    house.hook("model.answered", tokens={"input": 100_000}, model="claude-sonnet-4-5")
    assert house.view("statusline", id="s-1", reported=1.5)["text"] == "$0.30 · 100.0k tokens"


@pytest.mark.parametrize("context", [None, "x", True, -1, 101, float("nan")])
def test_an_odd_share_of_the_context_is_left_out(house: House, context: object) -> None:
    house.hook("prompt.submitted", prompt="one")
    assert house.view("statusline", id="s-1", context=context)["text"] == "– tokens"


def test_gates_and_others_that_wait(house: House) -> None:
    detail = {"gate": "refused", "requirements": [{"name": "tests"}]}
    story = Story().start().prompt().tell("tool.started", tool="Bash", call="c")
    house.take(story.tell("decision.made", verdict="deny", of_kind="tool.started", call="c", details=[detail]))
    process = {"pid": 5, "start": 5, "boot": "b", "machine": "m", "name": "claude"}
    for name in ("s-2", "s-3"):
        house.take(Story().start(session=name, process=process).prompt(session=name).stop(session=name))
    assert house.view("statusline", id="s-1")["text"] == "– tokens · 1 open gate · 2 other sessions wait"


def test_a_long_turn_is_looked_at_in_the_middle(house: House) -> None:
    story = Story().start().prompt()
    for n in range(10):
        story.tool(f"c{n}")
    house.take(story)
    assert house.waiting().count("sessions.read_usage") == 1
