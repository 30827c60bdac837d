"""Each row of the seed's table of scopes (S2-4), and what clears what."""

from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.features.gates.files import registry_file
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.state.branches import reduce_registry
from tests.features.gates.stage import Stage, names

REVIEW: dict[str, Any] = {"pre_commit_review": {}}


def one(scope: str, **more: Any) -> Stage:
    return Stage(planned={"scope": scope, "auto_resolve_skill": "plan", **more})


@pytest.mark.parametrize(("scope", "open_again"), [("session", True), ("branch", False), ("permanent", False)])
def test_what_a_new_session_finds(scope: str, open_again: bool) -> None:
    stage = one(scope)
    stage.skill("plan")
    assert stage.edit().silent
    stage.end()
    stage.start("s-2")
    assert (stage.edit(session="s-2").verdict == "deny") is open_again


def test_another_branch_is_another_matter() -> None:
    stage = one("branch")
    stage.skill("plan")
    stage.branch = "feature/other"
    assert names(stage.edit()) == ["planned"]


def test_a_plan_made_on_main_goes_with_its_session_onto_the_new_branch() -> None:
    stage = one("session")
    stage.branch = "main"
    stage.skill("plan")
    stage.branch = "feature/x"
    assert stage.edit().silent
    assert stage.edit(session="s-2").verdict == "deny"


def test_a_session_that_is_resumed_is_the_same_session() -> None:
    stage = one("session")
    stage.skill("plan")
    stage.end()
    stage.take("session.started", source="resume")
    assert stage.edit().silent


def test_single_use_is_cleared_by_the_commit_that_succeeded_and_by_no_other() -> None:
    """S2-12."""
    stage = Stage(**REVIEW)
    assert names(stage.run("git commit -m one")) == ["pre_commit_review"]
    stage.skill("pre-commit")
    assert stage.run("git commit -m one", code=1).silent
    assert stage.run("git commit -m one").silent
    assert names(stage.run("git commit -m two")) == ["pre_commit_review"]
    stage.skill("pre-commit")
    assert stage.run("git commit -m two").silent


def test_clearing_touches_only_the_sessions_own_entry() -> None:
    """D7."""
    stage = one("session")
    stage.skill("plan")
    stage.skill("plan", session="s-2")
    stage.say("gates.cleared", "s-1", requirements=["planned"], method="person")
    assert stage.edit().verdict == "deny"
    assert stage.edit(session="s-2").silent


def test_clear_session_state_at_the_end_is_off_by_default_and_touches_nobody_else() -> None:
    """S2-11, D7."""
    spec = {"requirements": {"planned": {"auto_resolve_skill": "plan"}}}
    for clear in (False, True):
        stage = Stage(GateSettings.of({**spec, "hooks": {"session_end": {"clear_session_state": clear}}}))
        stage.skill("plan")
        stage.skill("plan", session="s-2")
        stage.end()
        assert (stage.edit().verdict == "deny") is clear
        assert stage.edit(session="s-2").silent


@pytest.mark.parametrize("over", ["session.ended", "session.lost", "session.stale", "session.closed"])
def test_every_end_takes_a_session_out_of_the_registry(over: str) -> None:
    """S2-1, S2-11, D6: also one that was killed and told nothing."""
    doc = None
    for n, (kind, session) in enumerate([("session.started", "s-1"), ("session.started", "s-2"), (over, "s-1")]):
        doc = reduce_registry(doc, Event(key=f"k{n}", kind=kind, at=n, session=session, project="/p")) or doc
    assert doc is not None and list(registry_file(doc)["sessions"]) == ["s-2"]


def test_a_branch_level_override_satisfies_every_session() -> None:
    """O2-d."""
    stage = one("session")
    stage.say(
        "gates.satisfied", "", requirements=[{"name": "planned", "scope": "session"}], everyone=True, method="person"
    )
    assert stage.edit().silent
    assert stage.edit(session="s-2").silent


def test_a_ttl_ends_what_was_satisfied() -> None:
    stage = one("branch", ttl=60)
    stage.skill("plan")
    assert stage.later(59).edit().silent
    assert stage.later(2).edit().verdict == "deny"


def test_carry_over_is_off_by_default_has_a_window_and_is_audited() -> None:
    """O2-e: plan in one session, implement in the next."""
    off, on = one("session"), one("session", carry_over=300)
    for stage in (off, on):
        stage.skill("plan", session="old")
        stage.later(100).end("old")
        stage.later(299).start("new")
    assert off.edit(session="new").verdict == "deny"
    assert on.edit(session="new").silent
    branch = next(doc for ref, doc in on.simulation.docs.items() if ref.kind == "gates.branch")
    entry = branch.requirements["planned"].sessions["new"]
    assert entry.by == "carry_over"
    assert entry.metadata["from"] == "old"
    on.later(299).start("third")  # What was carried over is not carried on.
    assert on.edit(session="third").verdict == "deny"


def test_carry_over_ends_with_its_window() -> None:
    stage = one("session", carry_over=True)
    stage.skill("plan", session="old")
    stage.end("old")
    stage.later(301).start("new")
    assert stage.edit(session="new").verdict == "deny"


def test_a_requirement_remembers_a_thousand_sessions() -> None:
    """The first of many sessions is not asked again because others came after it."""
    stage = Stage(planned={"auto_resolve_skill": "plan"})
    for n in range(1_001):
        stage.take("tool.finished", f"s-{n}", tool="Skill", action="skill", skill="plan", ok=True)
    assert stage.edit(session="s-1").silent
    assert stage.edit(session="s-0").verdict == "deny"
