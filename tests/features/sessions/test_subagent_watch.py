"""Hooks of Kimi Code and Gemini CLI do not say that they ran in a subagent; the order they were recorded in says it."""

from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.features.sessions.subagent_watch import MOST_SESSIONS, SubagentWatch

from .story import House, an


def hook(kind: str, call: str = "", action: str = "shell", *, untold: bool = True, **data: Any) -> Event:
    given = {"call": call, "action": action} if kind.startswith("tool.") else {}
    return an(kind, tool="Agent" if action == "agent" else "Bash" if call else "", lane_untold=untold, **given, **data)


def spawned(call: str) -> Event:
    return hook("tool.started", call, "agent")


BEGUN = hook("subagent.started", lane="coder", lane_type="coder", untold=False)
ENDED = hook("subagent.ended", lane="coder", lane_type="coder", untold=False)


def placed(*events: Event) -> list[str]:
    """The lanes that were found, with a watch of their own."""
    watch, copies = SubagentWatch(), [an_again(event) for event in events]
    for event in copies:
        watch.assign_lane(event)
    return [event.data.lane for event in copies]


def an_again(event: Event) -> Event:
    return an(event.kind, tool=event.tool, session=event.session, **{k: event.data[k] for k in event.data})


STOP = hook("turn.ended")


def test_what_a_subagent_does_while_its_session_waits_is_its_own() -> None:
    inside = (hook("tool.started", "c2"), hook("tool.finished", "c2"), STOP)
    events = (spawned("c1"), BEGUN, *inside, ENDED, hook("tool.finished", "c1", "agent"), STOP)
    assert placed(*events) == ["", "coder", "coder", "coder", "coder", "coder", "", ""]


def test_a_call_beside_the_subagent_is_the_sessions() -> None:
    """Its start is told before the subagent begins."""
    beside = (hook("tool.started", "c2"), BEGUN, hook("tool.started", "c3"), STOP, ENDED)
    ends = (hook("tool.finished", "c1", "agent"), hook("tool.finished", "c2"))
    assert placed(spawned("c1"), *beside, *ends, STOP) == ["", "", "coder", "coder", "coder", "coder", "", "", ""]


OTHER = hook("subagent.started", lane="reader", lane_type="reader", untold=False)


@pytest.mark.parametrize(("second", "whose"), [(BEGUN, "coder"), (OTHER, "")])
def test_of_several_a_call_is_known_where_all_have_one_name_and_no_stop_is_the_sessions(
    second: Event, whose: str
) -> None:
    first = (spawned("c1"), spawned("c2"), BEGUN, second, hook("tool.started", "c3"), STOP, ENDED)
    rest = (hook("tool.finished", "c1", "agent"), STOP, ENDED, hook("tool.finished", "c2", "agent"), STOP)
    found = placed(*first, *rest)
    assert (found[4], found[5], found[-1]) == (whose, "coder", "")


def gemini(house: House, kind: str, tool: str = "", after: int = 1000, **given: Any) -> None:
    """As it comes: without ids, the subagent's like the session's."""
    action = "agent" if tool == "invoke_agent" else "shell"
    more = (
        {"action": action, "input": given, "lane_untold": True, "command": given.get("command", "")} if tool else given
    )
    ok = {"ok": True} if kind == "tool.finished" else {}
    event = an(kind, at=house.clock.tick(after), tool=tool, **more, **ok)
    event = msgspec.structs.replace(event, agent="gemini")
    WATCH.assign_lane(event)
    house.take([event])


WATCH = SubagentWatch()
LOOK, READ = {"agent_name": "generalist", "prompt": "look"}, {"agent_name": "generalist", "prompt": "read"}


def shell(house: House, command: str, after: int = 1000) -> None:
    gemini(house, "tool.started", "run_shell_command", after, command=command)
    gemini(house, "tool.finished", "run_shell_command", command=command)


def test_geminis_subagents_are_told_apart_from_their_session(house: House) -> None:
    """One that works, two at once of one name, one that calls nothing; calls before, beside and after them."""
    gemini(house, "prompt.submitted", prompt="do it")
    shell(house, "before")
    gemini(house, "tool.started", "invoke_agent", **LOOK)
    shell(house, "inside")
    gemini(house, "tool.finished", "invoke_agent", **LOOK)
    shell(house, "between")
    gemini(house, "tool.started", "invoke_agent", **LOOK)
    gemini(house, "tool.started", "invoke_agent", 100, **READ)
    shell(house, "beside", 100)
    shell(house, "in one of both")
    gemini(house, "tool.finished", "invoke_agent", **READ)
    shell(house, "in the other")
    gemini(house, "tool.finished", "invoke_agent", **LOOK)
    gemini(house, "tool.started", "invoke_agent", **READ)
    gemini(house, "tool.finished", "invoke_agent", **READ)
    shell(house, "after")
    rows = house.view("timeline", id="s-1")["entries"]
    lanes = {row["text"]: row["lane"] for row in rows if row["tool"] == "run_shell_command"}
    inside = ("inside", "in one of both", "in the other")
    assert lanes == {text: "generalist" if text in inside else "" for text in lanes} and len(lanes) == 7
    told = [row["label"] for row in rows if row["kind"].startswith("subagent.")]
    assert told.count("subagent started") == told.count("subagent ended") == 4
    assert house.view("show", id="s-1")["lanes_open"] == 0
    assert house.replayed() == []


def test_in_the_background_and_after_an_interrupt_everything_is_the_sessions() -> None:
    background = (spawned("c1"), BEGUN, hook("tool.finished", "c1", "agent"), hook("tool.started", "c2"), STOP)
    assert placed(*background)[-2:] == ["", ""]
    for over in ("prompt.submitted", "turn.interrupted"):
        assert placed(spawned("c1"), BEGUN, hook(over, untold=False), hook("tool.started", "c2"), STOP)[-2:] == ["", ""]


def test_an_agent_that_names_its_subagents_is_left_alone() -> None:
    events = (an("tool.started", tool="Agent", action="agent", call="c1"), BEGUN, an("turn.ended"))
    assert placed(*events) == ["", "coder", ""]


def test_what_is_watched_is_bounded() -> None:
    watch = SubagentWatch()
    for n in range(MOST_SESSIONS + 50):
        watch.assign_lane(an("tool.started", session=f"s{n}", tool="Agent", action="agent", call="c", lane_untold=True))
    assert len(watch._waiting) == MOST_SESSIONS


def test_the_turn_goes_on_after_the_subagents_stop(house: House) -> None:
    lane = {"lane": "coder", "lane_type": "coder"}
    house.take([
        an("prompt.submitted", prompt="do it"), spawned("c1"), BEGUN,
        an("turn.ended", lane_untold=True, **lane), ENDED,
    ])  # fmt: skip
    rows = house.view("timeline", id="s-1")["entries"]
    assert [row["label"] for row in rows] == ["prompt", "Agent", "subagent started", "subagent ended"]
    assert rows[1]["outcome"] == "running"
    assert house.view("show", id="s-1")["state"] == "working"
