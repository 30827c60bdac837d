"""Sums per day: a turn counts once, however often it is gone through, and replay says the same."""

from holdfast.features.sessions.state import reducer
from holdfast.features.sessions.state.documents import DAY, YEAR, Turn
from tests.features.sessions.story import PROJECT, SECOND, House, Story, an


def a_turn(house: House, *tools: str, prompt: str = "Fix it") -> None:
    house.hook("prompt.submitted", prompt=prompt)
    for call in tools:
        house.hook("tool.finished", tool="Bash", call=call, ok=True)
    house.hook("turn.ended", message="Done.")


def today(house: House) -> dict:
    return house.view("activity", days=1)["today"]


def test_a_turn_counts_when_it_was_gone_through(house: House):
    house.hook("session.started", source="startup")
    a_turn(house, "a", "b")
    assert today(house)["turns"] == 0
    house.run("sessions.process", session="s-1")
    told = today(house)
    assert {name: told[name] for name in ("turns", "tools", "sessions", "ms", "failed")} == {
        "turns": 1, "tools": 2, "sessions": 1, "ms": 3 * SECOND, "failed": 0,
    }  # fmt: skip
    assert house.replayed() == []


def test_what_comes_late_is_added_and_nothing_counted_twice(house: House):
    a_turn(house, "a")
    house.run("sessions.process", session="s-1")
    house.hook("tool.finished", tool="Bash", call="late", ok=False)
    house.run("sessions.process", session="s-1")
    house.run("sessions.process", session="s-1")
    told = today(house)
    assert (told["turns"], told["tools"], told["sessions"]) == (1, 2, 1)
    a_turn(house, "b", prompt="More")
    house.run("sessions.process", session="s-1")
    assert (today(house)["turns"], today(house)["sessions"]) == (2, 1)
    assert house.replayed() == []


def test_by_project_and_agent(house: House):
    a_turn(house, "a")
    house.run("sessions.process", session="s-1")
    tokens = {"input": 5, "output": 7, "cache_read": 11, "reasoning": 3}
    day = reducer.local_day(house.clock())
    house.take([an("model.answered", at=house.clock(), tokens=tokens, day=day)])
    (row,) = house.view("activity", days=7)["rows"]
    assert (row["project"], row["agent"], row["tools"], row["tokens"]) == (PROJECT, "claude-code", 1, 23)
    assert today(house)["tokens"] == 23


def test_events_of_before_are_counted_by_their_own_time():
    """Written by an older Holdfast: no day, no agent, no difference to what was told before."""
    facts = {"at": 1_700_000_000_000, "end": 1_700_000_060_000, "tools": 3, "failed": 1, "first": 2, "seq": 9}
    docs = Story().start().tell("turn.processed", n=1, upto=9, facts=facts).docs()
    (by,) = docs[DAY.ref("2023-11-14")]["by"].values()
    assert by == {"": {"turns": 1, "ms": 60_000, "tools": 3, "failed": 1, "sessions": 1}}
    assert docs[YEAR.ref("2023")]["days"]["11-14"]["turns"] == 1


def test_documents_stay_small():
    story = Story()
    for n in range(300):
        story.events.append(
            an("turn.processed", n=1, day="2026-01-01", agent="a", more={"turns": 1}, facts={"at": 1}, session=f"s{n}")
        )
    import msgspec

    story.events = [msgspec.structs.replace(e, project=f"/p{n}") for n, e in enumerate(story.events)]
    doc = story.docs()[DAY.ref("2026-01-01")]
    assert len(doc["by"]) == reducer.MAX_PROJECTS + 1
    assert doc["by"][reducer.OTHER_PROJECTS]["a"]["turns"] == 300 - reducer.MAX_PROJECTS


def test_a_night_with_an_open_turn_is_no_nights_work():
    week = Turn(n=1, at=0, end=7 * 86_400_000)
    assert reducer.growth_of(week, None)["ms"] == reducer.LONGEST_TURN_MS
    assert reducer.local_day(1 << 62) == "1970-01-01"
