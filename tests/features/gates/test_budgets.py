"""Budgets: they warn, then stop within one tool call; what a model without a price cost stays unknown."""

import pytest

from holdfast.core.section import Unfit
from holdfast.features.gates.settings import GateSettings
from tests.features.gates.stage import Stage

DAY_S = 86_400


def spend(stage: Stage, tokens: int, session: str = "s-1", model: str = "claude-sonnet-4-5") -> None:
    stage.take("model.answered", session, tokens={"input": tokens, "output": 0}, model=model)


def read(stage: Stage, session: str = "s-1"):
    return stage.take("tool.started", session, tool="Read", action="read", paths=["/home/ada/engine/a.py"])


def test_a_session_is_warned_once_and_then_stopped_at_the_next_call_of_any_tool() -> None:
    stage = Stage(purse={"type": "budget", "tokens": 1_000})
    stage.start()
    spend(stage, 700)
    assert read(stage).silent
    spend(stage, 150)
    warned = read(stage)
    assert warned.verdict == "none"
    assert "850 of 1,000 tokens in this session" in warned.contexts[0].text
    assert not read(stage).contexts  # said once
    spend(stage, 200)
    refused = read(stage)
    assert refused.verdict == "deny"
    assert "the budget is used up: 1,050 of 1,000 tokens" in refused.reasons[0]
    assert "a person can approve it" in refused.reasons[0]
    assert read(stage, "s-2").silent
    stage.take("gates.approved", "s-1", requirements=[{"name": "purse", "until": stage.now + 60_000}], method="person")
    assert read(stage).silent
    assert read(stage.later(61)).verdict == "deny"


def test_history_that_was_imported_uses_up_no_budget() -> None:
    stage = Stage(purse={"type": "budget", "tokens": 100, "per": "project"})
    stage.start()
    stage.take("model.answered", "old-1", tokens={"input": 9_000}, model="claude-sonnet-4-5", imported="claude-code")
    assert read(stage).silent


def test_a_turn_a_day_and_a_project_are_counted_apart() -> None:
    for per, elsewhere, later in (("turn", True, False), ("day", False, True), ("project", False, False)):
        stage = Stage(purse={"type": "budget", "tokens": 100, "per": per})
        stage.start()
        spend(stage, 100)
        assert read(stage).verdict == "deny"
        assert read(stage, "s-2").silent is elsewhere, per
        stage.take("prompt.submitted", prompt="go on")
        assert read(stage).silent is (per == "turn")
        assert read(stage.later(DAY_S)).silent is (later or per == "turn"), per


def test_an_answer_that_is_read_late_belongs_to_the_turn_it_was_given_in() -> None:
    """The last answers of a turn are read from the transcript when the next prompt may have come already."""
    stage = Stage(purse={"type": "budget", "tokens": 1_000, "per": "turn"})
    stage.start()
    stage.prompt()
    answered_at = stage.later(10).now
    stage.later(10).prompt()
    asked_at, stage.now = stage.now, answered_at
    spend(stage, 900)
    stage.now = asked_at
    spend(stage, 200)
    assert read(stage.later(5)).silent
    spend(stage, 800)
    assert "1,000 of 1,000 tokens in this turn" in read(stage).reasons[0]


def test_money_is_counted_by_the_price_list_and_unknown_prices_are_named() -> None:
    stage = Stage(purse={"type": "budget", "usd": 3.0})
    stage.start()
    for _ in range(9):
        spend(stage, 100_000)
    spend(stage, 5_000_000, model="somebodys-own-model")
    told = read(stage)
    assert told.verdict == "none"
    assert "what somebodys-own-model cost is unknown" in told.contexts[0].text
    spend(stage, 100_000)
    assert "$3.00 of $3.00" in read(stage).reasons[0]


def test_a_budget_needs_a_limit_and_may_be_lowered_only() -> None:
    with pytest.raises(Unfit, match="needs `tokens:` or `usd:`"):
        GateSettings.of({"requirements": {"purse": {"type": "budget"}}})
    was = GateSettings.of({"requirements": {"purse": {"type": "budget", "usd": 5}}})
    for now, loosened in (
        ({"usd": 4}, False),
        ({"usd": 6}, True),
        ({"tokens": 9}, True),
        ({"usd": 5, "tokens": 9}, False),
    ):
        found = GateSettings.of({"requirements": {"purse": {"type": "budget", **now}}})
        assert bool(found.in_force(was)[1]) is loosened, now


@pytest.mark.parametrize("told", [{}, {"tokens": {}}, {"tokens": {"input": -5}}])
def test_an_answer_without_figures_spends_nothing(told) -> None:
    stage = Stage(purse={"type": "budget", "tokens": 1})
    stage.start()
    stage.take("model.answered", **told)
    assert read(stage).silent
