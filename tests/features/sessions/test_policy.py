"""C1, S4-17: the id decides which session it is, the source decides what is injected."""

from typing import Any

import msgspec
import pytest

from holdfast.core.decision import Delivery
from holdfast.features.sessions.policy import PROCESS, SUMMARISE, _end_work
from holdfast.features.sessions.state.documents import ACTIVE, COMPLETED, SESSION
from tests.factories import a_key, an_engine

from .story import FEATURE, House, Story, an


def told(house: House, source: str, session: str = "new", **data: Any) -> str:
    """What an agent is answered when this session starts."""
    event = an("session.started", at=house.clock.tick(1000), session=session, source=source, **data)
    engine = an_engine(
        house.store, FEATURE, read=lambda _delivery: event, clock=house.clock,
        settings=lambda _project: {"sessions": house.settings},
    )  # fmt: skip
    (outcome,) = engine.handle([Delivery(key=a_key(), agent="claude-code", event="SessionStart", mode="start")])
    return "\n".join(context.text for context in outcome.decision.contexts)


def test_the_first_session_of_a_project_is_told_nothing(house: House):
    assert told(house, "startup") == ""


def test_a_start_is_told_of_others_at_work(house: House):
    house.hook("prompt.submitted", session="other", prompt="Rewrite the parser")
    text = told(house, "startup")
    assert "Rewrite the parser (working, 1 s ago)" in text
    assert told(house, "resume", session="third") == ""


def test_a_start_is_told_what_the_last_session_left(house: House):
    house.take(Story().start(session="old").prompt("Build it", session="old"))
    house.clock.now += 60_000
    house.hook("session.ended", session="old", reason="other")
    house.run("sessions.summarise", session="old")
    text = told(house, "startup")
    assert "The last session here: Build it" in text
    assert "the last prompt was not finished: Build it" in text


def test_work_that_is_done_is_not_told(house: House):
    house.take(Story().start(session="old").prompt("Build it", session="old").stop(session="old"))
    house.clock.now += 60_000
    house.hook("session.ended", session="old", reason="other")
    house.run("sessions.summarise", session="old")
    assert told(house, "startup") == ""


def test_a_resume_is_told_only_that_it_was_cut_off(house: House):
    house.hook("session.started", session="s", source="startup", pid=4)
    house.hook("prompt.submitted", session="s", prompt="Long work")
    house.clock.tick(60_000)
    assert told(house, "resume", session="s", pid=5) == "This session was cut off while working on: Long work"


def test_a_clear_is_told_what_was_before_it(house: House):
    house.hook("session.started", session="old", source="startup", pid=9)
    house.hook("prompt.submitted", session="old", prompt="Half done", pid=9)
    house.hook("session.ended", session="old", reason="clear", pid=9)
    house.run("sessions.summarise", session="old")
    assert "Before the clear: Half done" in told(house, "clear", pid=9)


def test_a_compaction_is_told_where_it_was(house: House):
    house.hook("prompt.submitted", session="s", prompt="Refactor")
    assert told(house, "compact", session="s") == "Before the compaction: turn 1, working on: Refactor"


def test_it_can_be_turned_off(house: House):
    house.hook("prompt.submitted", session="other", prompt="x")
    house.settings = msgspec.structs.replace(house.settings, inject=False)
    assert told(house, "startup") == ""


@pytest.mark.parametrize(
    ("kind", "status", "asked"),
    [
        ("turn.answer_read", COMPLETED, [SUMMARISE]),
        ("turn.answer_read", ACTIVE, []),
        ("tool.started", COMPLETED, []),
        ("session.ended", COMPLETED, [SUMMARISE, PROCESS]),
        ("session.ended", ACTIVE, []),
    ],
)
def test_a_summary_is_made_anew_when_a_session_that_is_over_has_its_answer_read(
    house: House, kind: str, status: str, asked: list[str]
):
    house.take(Story().start(session="s"))
    session = msgspec.structs.replace(SESSION.load(house.reader, "s"), status=status)
    assert [job.kind for job in _end_work(session, an(kind, session="s"))] == asked
