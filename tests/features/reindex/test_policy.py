"""The gates, in order, each with its reason (O0-c)."""

from typing import Any

import msgspec
import pytest

from holdfast.features.reindex.policy import choose_run
from holdfast.features.reindex.settings import Settings
from holdfast.features.reindex.state import AGAIN, BRANCH, COMMAND, FIRST_PROMPT, TURN_END, Checkout

NOW = 10_000_000
MINE = Settings(cooldown_s=300, timeout_s=100)
RUNNING = {"id": "r1", "trigger": FIRST_PROMPT, "at": NOW - 1000, "session": "s"}


def told(trigger: str, settings: Settings = MINE, rebuild: bool = False, **doc: Any) -> tuple[str, str, dict]:
    checkout = msgspec.convert({"project": "/p", **doc}, Checkout)
    choice = choose_run(trigger, checkout, NOW, settings, rebuild=rebuild)
    return choice.decision, choice.reason, choice.details.as_dict()


def test_nothing_in_the_way() -> None:
    for trigger in (FIRST_PROMPT, TURN_END, BRANCH, COMMAND, AGAIN):
        assert told(trigger) == ("run", "reindex_spawned", {})


def test_prerequisites_come_first() -> None:
    off = Settings(enabled=False)
    assert told(FIRST_PROMPT, off, run=RUNNING)[:2] == ("skip", "prerequisites_not_ready")
    assert told(FIRST_PROMPT, project="/")[:2] == ("skip", "prerequisites_not_ready")
    assert told(FIRST_PROMPT, project="relative")[:2] == ("skip", "prerequisites_not_ready")
    assert told(COMMAND, off)[0] == "run", "a person who asks is not told to wait"


def test_a_checkout_that_could_not_be_indexed_is_tried_again_after_a_day() -> None:
    """O0-f."""
    hour = 3_600_000
    assert told(FIRST_PROMPT, refused={"why": "gone", "at": NOW - hour})[2]["why"] == "gone"
    assert told(FIRST_PROMPT, refused={"why": "gone", "at": NOW - 25 * hour})[0] == "run"


@pytest.mark.parametrize(("ago", "left"), [(0, 300), (1, 300), (299_001, 1), (299_999, 1)])
def test_the_cooldown_says_how_long(ago: int, left: int) -> None:
    assert told(TURN_END, started_at=NOW - ago) == ("skip", "cooldown_active", {"remaining_s": left})


def test_the_cooldown_is_for_ends_of_turns_alone_and_ends() -> None:
    assert told(TURN_END, started_at=NOW - 300_000)[0] == "run"
    for trigger in (FIRST_PROMPT, BRANCH, COMMAND):
        assert told(trigger, started_at=NOW)[0] == "run"


def test_one_at_a_time_and_what_is_out_of_date_is_superseded() -> None:
    assert told(FIRST_PROMPT, run=RUNNING) == ("skip", "concurrent_reindex", {"run": "r1"})
    assert told(BRANCH, run=RUNNING) == ("run", "reindex_spawned", {"supersedes": "r1"})
    assert told(COMMAND, run=RUNNING, rebuild=True)[2] == {"supersedes": "r1", "rebuild": True}


def test_a_rebuild_that_is_superseded_is_still_made() -> None:
    anew = {**RUNNING, "rebuild": True}
    assert told(BRANCH, run=anew)[2] == {"supersedes": "r1", "rebuild": True}
    assert told(COMMAND, run={**anew, "at": NOW - 200_000})[2] == {}, "one that is long dead asks for nothing"


def test_a_run_whose_end_was_never_told_does_not_block_for_ever() -> None:
    dead = {**RUNNING, "at": NOW - 200_000}
    assert told(FIRST_PROMPT, run=dead) == ("run", "reindex_spawned", {})


def test_a_clock_that_went_back_blocks_nothing_for_longer_than_the_cooldown() -> None:
    """O0-h: the machine's clock was an hour ahead when the last run began."""
    decision, reason, details = told(TURN_END, started_at=NOW + 3_600_000)
    assert (decision, reason) == ("run", "reindex_spawned"), details
