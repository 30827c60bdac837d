"""Each figure has one meaning: what counts as denied, how long a session took, what is unknown."""

import pytest

from holdfast.analysis.usage.spending import Spending
from holdfast.core.replay import fold_events
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.state.documents import IDLE, SESSION, WAITING, PendingQuestion
from holdfast.features.sessions.state.reducer import local_day
from holdfast.features.sessions.views.figures import (
    NOTHING_SPENT,
    UNKNOWN,
    Figures,
    Spent,
    build_figures,
    format_cost,
    format_tokens,
    format_work,
    shown_state,
)

from ..story import House, Story

MINUTE = 60_000


def figures(story: Story) -> Figures:
    return build_figures(fold_events(FEATURE, story.events)[SESSION.ref("s-1")], Spending(), story.now)


def denied(story: Story, of_kind: str, **data: str) -> Story:
    of = story.events[-1].seq
    return story.tell("decision.made", verdict="deny", of=of, of_kind=of_kind, reasons=["no"], **data)


def test_every_denial_counts_once_also_a_refused_stop() -> None:
    story = Story().start().prompt().tell("tool.started", tool="Bash", call="c1")
    denied(story, "tool.started", call="c1").tell("permission.denied", tool="Bash", call="c1")
    denied(story.stop(), "turn.ended")
    denied(story.stop(), "turn.ended")
    story.tell("permission.denied", tool="Bash", call="c2")
    story.tell("decision.made", verdict="none", of=1, of_kind="session.started")
    assert figures(story).denied == 4


def test_a_denied_call_is_no_call_that_ran() -> None:
    story = Story().start().prompt().tell("tool.started", tool="Bash", call="c1")
    denied(story, "tool.started", call="c1").tell("tool.failed", tool="Bash", call="c1", ok=False)
    assert (figures(story).calls, figures(story).failed, figures(story).denied) == (0, 0, 1)


def test_reports_of_jobs_make_no_session_longer() -> None:
    """52 minutes of work were shown as 274, because a job reported late."""
    story = Story().start().prompt().tool("c1", after=52 * MINUTE).stop()
    whole = figures(story).duration_ms
    story.tell("turn.processed", after=200 * MINUTE, n=1, upto=5).tell("model.answered", tokens={"input": 1})
    story.tell("session.summarised", after=22 * MINUTE, of=5, title="x")
    assert figures(story).duration_ms == whole


@pytest.mark.parametrize("view", ["show", "list"])
def test_late_reports_change_no_view(house: House, view: str) -> None:
    house.take(Story().start().prompt().tool("c1").stop().end())
    house.clock.tick(300 * MINUTE)
    house.run("sessions.summarise", session="s-1")
    found = house.view(view, all=True)
    row = found["sessions"][0] if view == "list" else found
    assert row["duration_ms"] == 5_000
    if view == "show":
        assert found["summary"]["ms"] == 5_000 and found["summary"]["text"].endswith("0 files edited, 5 s.")


def test_what_nobody_told_is_unknown_and_not_0(house: House) -> None:
    house.hook("prompt.submitted", prompt="one")
    shown = house.view("show")
    assert (shown["tokens"], shown["total_tokens"], shown["cost"]) == (None, None, None)
    assert (format_tokens(NOTHING_SPENT), format_cost(NOTHING_SPENT)) == (UNKNOWN, UNKNOWN)
    told = Spent(tokens={"input": 5, "output": 0}, total_tokens=5, cost=2_000_000, unpriced=[], reported=3_000_000)
    assert format_tokens(told) == "5 in, 0 out"
    assert format_cost(told) == "$2.00 (the agent says $3.00)"


def test_tokens_told_by_events_count_once_and_by_turn(house: House) -> None:
    house.hook("prompt.submitted", prompt="one", transcript="/nowhere")
    tokens = {"input": 5, "output": 7, "cache_write_5m": 2, "cache_write_1h": 3}
    house.hook("model.answered", tokens=tokens, turn_n=1, day=local_day(house.clock()), model="claude-opus-5-5")
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    shown = house.view("show")
    assert shown["tokens"] == tokens and shown["model"] == "claude-opus-5-5"
    assert shown["turns"][0]["cost"] == shown["cost"] > 0
    assert (shown["total_tokens"], shown["turns"][0]["tokens"]["output"]) == (17, 7)
    assert house.view("activity", days=1)["today"]["tokens"] == 17
    assert house.replayed() == []


def test_a_day_without_a_told_token_has_an_unknown_sum(house: House) -> None:
    house.hook("prompt.submitted", prompt="one")
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    assert house.view("activity", days=1)["today"]["tokens"] is None


def test_work_in_words() -> None:
    story = Story().start().prompt().tool("c1", ok=False)
    assert format_work(figures(story)) == "1 prompt, 1 tool call, 1 failed"


def test_a_session_that_waits_for_an_answer_does_not_become_idle() -> None:
    over = fold_events(FEATURE, Story().start().prompt().stop().events)[SESSION.ref("s-1")]
    assert over.state == WAITING
    late = over.since + 3_600_000 * 24
    assert (shown_state(over, over.since), shown_state(over, late)) == (WAITING, IDLE)
    over.asks = [PendingQuestion(what="permission", tool="Bash", about="", lane="", at=over.since)]
    assert shown_state(over, late) == WAITING
