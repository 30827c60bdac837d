"""S4-10 to S4-14: each job by itself, each told by events, each safe to run twice."""

import pytest

from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.jobs import recovery
from holdfast.features.sessions.jobs.recovery import FINDERS
from holdfast.features.sessions.settings import (
    BACKGROUND_PROCESSING_INTERVAL,
    BATCH_ACTIVE_TIMEOUT_SECONDS,
    SESSION_INACTIVE_TIMEOUT_SECONDS,
    SessionsSettings,
)  # fmt: skip
from tests.features.sessions.story import SECOND, House, Story


def kinds(events) -> list[str]:
    return [event.kind for event in events]


def test_the_constants_are_the_seeds():
    assert (SESSION_INACTIVE_TIMEOUT_SECONDS, BATCH_ACTIVE_TIMEOUT_SECONDS, BACKGROUND_PROCESSING_INTERVAL) == (
        3600, 300, 60,
    )  # fmt: skip
    defaults = SessionsSettings()
    assert defaults.session_inactive_timeout_seconds == 3600
    assert (defaults.batch_active_timeout_seconds, defaults.background_processing_interval) == (300, 60)


def test_a_stuck_turn_is_closed_after_five_minutes(house: House):
    """S4-11."""
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(299 * SECOND)
    assert house.run("sessions.stuck") == []
    house.clock.tick(1 * SECOND)
    assert kinds(house.run("sessions.stuck")) == ["turn.recovered"]
    assert (house.doc()["status"], house.doc()["state"], house.doc()["turn"]["how"]) == ("active", "idle", "recovered")
    assert house.run("sessions.stuck") == []


def test_activity_puts_the_five_minutes_off(house: House):
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(290 * SECOND)
    house.hook("tool.finished", tool="Bash", call="c", ok=True)
    house.clock.tick(290 * SECOND)
    assert house.run("sessions.stuck") == []


def test_a_turn_that_waits_for_the_user_is_not_stuck(house: House):
    house.hook("prompt.submitted", prompt="go")
    house.hook("permission.requested", tool="Bash", command="rm -r x")
    house.clock.tick(7200 * SECOND)
    assert house.run("sessions.stuck") == []
    assert house.doc()["state"] == "waiting"


@pytest.mark.parametrize("activity", [True, False])
def test_a_session_without_a_process_is_stale_after_an_hour(house: House, activity: bool):
    """S4-12: since its last activity, or since its start where there was none."""
    house.hook("session.started", source="startup")
    if activity:
        house.clock.tick(3000 * SECOND)
        house.hook("tool.finished", tool="Bash", call="c", ok=True)
    house.clock.tick(3599 * SECOND)
    assert house.run("sessions.stale") == []
    house.clock.tick(1 * SECOND)
    assert kinds(house.run("sessions.stale")) == ["session.stale"]
    assert (house.doc()["status"], house.doc()["reason"]) == ("completed", "stale")
    assert house.run("sessions.stale") == []


def test_no_session_is_deleted_however_small(house: House):
    """D10: the seed deleted those with less than three activities."""
    house.hook("session.started", source="startup")
    house.clock.tick(4000 * SECOND)
    house.run("sessions.stale")
    assert [row["id"] for row in house.view("list", all=True)["sessions"]] == ["s-1"]


def test_a_session_closed_as_stale_goes_on_when_it_does(house: House):
    """S4-18."""
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(4000 * SECOND)
    house.run("sessions.stale")
    house.hook("tool.finished", tool="Bash", call="c", ok=True)
    assert (house.doc()["status"], house.doc()["state"]) == ("active", "working")
    house.clock.tick(4000 * SECOND)
    assert kinds(house.run("sessions.stale")) == ["session.stale"]


def test_a_clock_that_runs_backwards_ends_nothing(house: House):
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(-90_000 * SECOND)
    assert house.run("sessions.stale") == house.run("sessions.stuck") == []


def test_orphaned_activities_get_a_turn_of_their_own(house: House):
    """S4-13."""
    house.hook("tool.finished", tool="Bash", call="c1", ok=True)
    house.hook("tool.finished", tool="Bash", call="c2", ok=True)
    assert "sessions.adopt" in house.waiting()
    (event,) = house.run("sessions.orphans")
    assert (event.kind, event.data.as_dict()) == ("turn.adopted", {"n": 1, "first": 1})
    assert (house.doc()["turn"]["tools"], house.doc()["turn"]["origin"]) == (2, "recovery")
    assert house.run("sessions.adopt", session="s-1") == house.run("sessions.orphans") == []


def test_closed_turns_are_gone_through(house: House):
    """S4-6, S4-14."""
    house.hook("prompt.submitted", prompt="one")
    house.hook("tool.finished", tool="Bash", call="c1", ok=False)
    house.hook("prompt.submitted", prompt="two")
    assert "sessions.process" in house.waiting()
    house.hook("turn.ended", message="done")
    assert kinds(house.run("sessions.pending")) == ["turn.processed", "turn.processed"]
    turns = house.view("show")["turns"]
    assert [(t["n"], t["prompt"], t["tools"], t["failed"], t["how"]) for t in turns] == [
        (1, "one", 1, 1, "next-prompt"), (2, "two", 0, 0, "stopped"),
    ]  # fmt: skip
    assert house.run("sessions.pending") == house.run("sessions.process", session="s-1") == []
    house.hook("tool.finished", tool="Bash", call="late", ok=True)
    assert kinds(house.run("sessions.pending")) == ["turn.processed"]
    assert house.view("show")["turns"][-1]["tools"] == 1
    assert house.replayed() == []


def test_a_day_in_the_spool_loses_no_turn(house: House):
    """S4-14: more turns at once than a document holds."""
    story = Story().start()
    for n in range(1, 31):
        story.prompt(f"prompt {n}").tool(f"c{n}").stop(f"answer {n}")
    house.take(story)
    assert kinds(house.run("sessions.process", session="s-1")) == ["turn.processed"] * 30
    assert [(t["n"], t["prompt"], t["answer"], t["tools"]) for t in house.view("show", turns=100)["turns"]] == [
        (n, f"prompt {n}", f"answer {n}", 1) for n in range(1, 31)
    ]
    assert house.run("sessions.process", session="s-1") == []
    assert (house.doc()["missed"], house.doc()["previous"], house.replayed()) == (0, None, [])


def test_the_round_does_all_of_it_at_its_pace(house: House, monkeypatch: pytest.MonkeyPatch):
    """S4-10."""
    assert FEATURE.schedule == {"sessions.watch": 5.0}
    monkeypatch.setattr(recovery, "PACE", recovery.Pace())
    house.hook("prompt.submitted", prompt="one", session="old")
    house.clock.tick(4000 * SECOND)
    house.hook("tool.finished", tool="Bash", call="c1", ok=True, session="new")
    assert sorted(kinds(house.run("sessions.watch"))) == ["session.stale", "turn.adopted", "turn.recovered"]
    house.hook("tool.finished", tool="Bash", call="c1", ok=True, session="newer")
    assert house.run("sessions.watch") == []


def test_by_hand_it_is_the_same(house: House):
    house.hook("prompt.submitted", prompt="one")
    house.clock.tick(400 * SECOND)
    assert house.command("recover", kind="stuck") == {"stuck": ["s-1"]}
    assert house.command("recover", kind="stuck") == {"stuck": []}
    assert set(house.command("recover")) == set(FINDERS)


def test_settings_change_the_times(tmp_path):
    house = House(tmp_path, session_inactive_timeout_seconds=10, batch_active_timeout_seconds=5)
    try:
        house.hook("prompt.submitted", prompt="one")
        house.clock.tick(6 * SECOND)
        assert kinds(house.run("sessions.stuck")) == ["turn.recovered"]
        house.clock.tick(6 * SECOND)
        assert kinds(house.run("sessions.stale")) == ["session.stale"]
    finally:
        house.close()
