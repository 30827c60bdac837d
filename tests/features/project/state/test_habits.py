"""Learned patterns (S1-12): honest counts, a lower bound for confidence, ageing, per project and across projects."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.kinds.project_events import HabitFacts
from holdfast.core.times import DAY
from holdfast.features.project.document.v4 import habits_of_several
from holdfast.features.project.settings import Tokens
from holdfast.features.project.state import ALL, GLOBAL, HABITS, Activity, Habits, habits
from holdfast.features.project.state.habits import token_budget
from tests.factories import NOON, an_event
from tests.features.project.stage import ROOT, Stage


@given(st.integers(0, 60), st.integers(0, 60))
def test_confidence_never_exceeds_what_a_binomial_bound_allows(held: int, more: int) -> None:
    """Were the true share no higher than we say, to see it hold so often would happen one time in twenty at most."""
    seen = held + more
    bound = habits.habit_confidence(held, seen)
    assert 0 <= bound <= 1
    if seen:
        assert bound <= held / seen
    if held:
        at_least = sum(math.comb(seen, k) * bound**k * (1 - bound) ** (seen - k) for k in range(held, seen + 1))
        assert at_least <= 0.05 + 1e-9


def test_the_bound_is_tight_and_grows_with_evidence() -> None:
    assert habits.habit_confidence(3, 3) == 0.368
    assert habits.habit_confidence(15, 15) == 0.818
    assert habits.habit_confidence(50, 50) == 0.941
    assert habits.habit_confidence(5_000, 10_000) == pytest.approx(0.491, abs=0.002)
    assert habits.habit_confidence(0, 10) == 0


def habit(stage: Stage) -> list[HabitFacts]:
    reader = stage.store.reader()
    try:
        return habits.shown_habits(HABITS.load(reader, ROOT), stage.now)
    finally:
        reader.close()


def turn(stage: Stage, *commands: str, path: str = "src/api/a.py", session: str = "s-1") -> None:
    stage.say("prompt.submitted", session=session, prompt="go")
    stage.edit(path, session)
    for command in commands:
        stage.run(command, session=session)
    stage.say("turn.ended", session=session)


def test_after_changes_in_a_place_a_command_runs(stage: Stage) -> None:
    for _ in range(11):
        turn(stage, "make docs")
    turn(stage, "ls")
    (told,) = habit(stage)
    assert told.pattern == "make docs after changes in src/api/"
    assert (told.held, told.seen) == (10, 11), "the turn it was first seen in proves nothing yet"


def test_what_ran_before_the_edit_does_not_follow_from_it(stage: Stage) -> None:
    for _ in range(12):
        stage.run("make docs")
        turn(stage)
    assert habit(stage) == []


def test_a_turn_that_ends_twice_is_one_occasion(stage: Stage) -> None:
    for _ in range(7):
        turn(stage, "make docs")
        stage.say("turn.ended", session="s-1", again=True)
    assert habit(stage)[0].seen == 6


def test_a_command_that_fails_is_no_habit(stage: Stage) -> None:
    for _ in range(12):
        stage.say("prompt.submitted", session="s-1", prompt="go")
        stage.edit("src/api/a.py")
        stage.run("make docs", code=2)
        stage.say("turn.ended", session="s-1")
    assert habit(stage) == []


def test_what_runs_before_every_commit(stage: Stage) -> None:
    for n in range(9):
        stage.edit("src/a.py")
        stage.run("pre-commit run --all-files")
        stage.commit(f"c{n}")
        stage.say("turn.ended", session="s-1")
    patterns = {told.pattern: told for told in habit(stage)}
    assert patterns["Always run pre-commit run before commit"].seen == 8
    assert "Uncommitted files normal for <1 hours" in patterns


def test_a_commit_is_what_git_shows_as_one(stage: Stage) -> None:
    for n in range(9):
        stage.run("make lint")
        stage.run(f"git commit -am {n}", code=1)
    assert habit(stage) == []


def test_old_habits_age_out(stage: Stage) -> None:
    for _ in range(12):
        turn(stage, "make docs")
    assert habit(stage)
    for _ in range(40):
        turn(stage, "make site")
    assert [told.pattern for told in habit(stage)] == ["make site after changes in src/api/"]
    stage.now += 91 * DAY
    assert habit(stage) == []


def told(pattern: str, held: int, seen: int) -> HabitFacts:
    return HabitFacts(pattern=pattern, held=held, seen=seen, last_observed=NOON)


def test_projects_that_share_a_habit_are_counted_together() -> None:
    shared = habits.shared_habits({"a": [told("x", 8, 10)], "b": [told("x", 9, 10), told("y", 5, 5)]}, NOON)
    assert [(one.pattern, one.held, one.seen, one.projects) for one in shared] == [("x", 17, 20, ["a", "b"])]


def test_the_global_document_learns_from_every_project(stage: Stage) -> None:
    for root, name in (("/p/a", "a"), ("/p/b", "b")):
        facts = {"name": name, "folder": name, "patterns": [told("x", 9, 10).as_dict()]}
        stage.say("project.observed", project=root, facts=facts)
    reader = stage.store.reader()
    doc = GLOBAL.load(reader, ALL)
    (one,) = habits_of_several(doc, NOON)
    assert one.projects == ["a", "b"]
    reader.close()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abcdefghijklmnopqrstu"), st.lists(st.sampled_from("uvwxyz"))), max_size=120))
def test_the_document_stays_small(turns: list[tuple[str, list[str]]]) -> None:
    doc: Habits | None = None
    for area, commands in turns:
        data = {"areas": [area], "commands": commands}
        doc = habits.reduce_habits(doc, an_event(kind="project.turn_summed", data=data))
    if doc:
        assert len(doc.after) <= habits.MAX_HABIT_AREAS
        assert all(len(table) <= habits.MAX_HABIT_COMMANDS for table in doc.after.values())
        assert all(len(h.outcomes) <= habits.KEPT_OUTCOMES for table in doc.after.values() for h in table.values())


def test_the_budget_counts_its_own_period() -> None:
    days = {"2025-10-01": 5, "2025-10-05": 7, "2025-10-09": 11}
    doing = Activity(project="/p", tokens_by_day={**days, "2025-09-30": 100}, ended=[10, 20])
    assert NOON == 1_760_000_000_000, "Thursday, 2025-10-09"
    used = {
        period: token_budget(doing, Tokens(limit=50, period=period), NOON).used for period in ("day", "week", "month")
    }
    assert used == {"day": 11, "week": 11, "month": 23}
    assert token_budget(doing, Tokens(), NOON).per_session == 15
    assert token_budget(None, Tokens(), NOON).used == 0
