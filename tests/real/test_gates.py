"""Gates in the real Claude Code: its refusals reach the model, its skills satisfy, its stops are held and let go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit import World, git

from .claude import ClaudeCode
from .model_server import ModelServer, Turn, call, slow, text
from .turns import spending

pytestmark = pytest.mark.real

SKILL = "---\nname: {name}\ndescription: {name} for this project\n---\nLook at the plan and say PLAN-LOOKS-GOOD.\n"


@pytest.fixture
def held(held: World) -> World:
    """On a branch of its own, with two skills."""
    for name in ("arch-review", "pre-commit"):
        skill = held.project / ".claude" / "skills" / name / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(SKILL.format(name=name))
    git(held.project, "checkout", "-q", "-b", "feature/real")
    return held


def requirements(world: World, text_: str) -> None:
    (world.project / ".claude" / "requirements.yaml").write_text(text_)


def write(world: World, name: str) -> Turn:
    return call("Write", file_path=str(world.project / name), content="one\n")


def decided(world: World, kind: str) -> list[dict[str, Any]]:
    return [e.data for e in world.events(kinds=("decision.made",)) if e.data["of_kind"] == kind and e.data["details"]]


def test_an_edit_is_denied_the_model_is_told_why_and_the_skill_opens_it(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    """S2-5, S2-6."""
    requirements(held, "requirements:\n  commit_plan: {enabled: true}\n  adr_reviewed: {enabled: true}\n")
    script = [write(held, "early.txt"), call("Skill", skill="arch-review"), write(held, "late.txt"), text("all done")]
    model.script(script)
    result = claude.run("please do it")

    assert result.returncode == 0, result.stderr
    assert not (held.project / "early.txt").exists()
    assert (held.project / "late.txt").read_text() == "one\n"
    assert model.saw("Write has to wait: 2 requirements are open", "main")
    assert model.saw("commit_plan: not satisfied", "main")
    assert model.saw("PLAN-LOOKS-GOOD", "main")
    (satisfied,) = held.events(kinds=("gates.satisfied",))
    assert satisfied.data["method"] == "skill"
    assert decided(held, "turn.ended") == []


def test_a_stop_is_refused_the_agent_goes_on_and_then_may_stop(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    """S2-10: proof, not words."""
    spec = "{type: evidence, evidence: {command: 'sh check.sh*', after_edit: '*.txt'}}"
    requirements(held, f"requirements:\n  checked: {spec}\n")
    (held.project / "check.sh").write_text("exit 0\n")
    model.script([write(held, "a.txt"), text("DONE-I-SAY"), call("Bash", command="sh check.sh"), text("DONE-AGAIN")])
    result = claude.run("please do it")

    assert "DONE-AGAIN" in result.stdout
    assert model.saw("Not done yet: 1 requirement is open", "main")
    assert model.turns_left() == 0
    assert [d["verdict"] for d in decided(held, "turn.ended")] == ["deny"]


def test_a_gate_that_cannot_be_met_lets_go(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """H2, pain 11: own counter, and a record."""
    requirements(held, "requirements:\n  never: {type: stop_only, auto_resolve_skill: nothing-like-it}\n")
    model.script([write(held, "a.txt"), *(text(f"STOP-{n}") for n in range(9))])
    result = claude.run("please do it")

    assert "STOP-3" in result.stdout
    assert model.turns_left() == 5
    assert [d["details"][0]["gate"] for d in decided(held, "turn.ended")] == ["stop", "stop", "stop", "let_go"]


def test_a_commit_uses_the_review_up(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S2-12."""
    requirements(held, "requirements:\n  pre_commit_review: {enabled: true}\n")
    commit = "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m"
    turns = [
        call("Bash", command=f"{commit} one"),
        call("Skill", skill="pre-commit"),
        call("Bash", command=f"{commit} two"),
        call("Bash", command=f"{commit} three"),
        text("tried"),
    ]
    model.script(turns)
    claude.run("commit please")

    assert git(held.project, "log", "--format=%s").split() == ["two", "first"]
    (used,) = held.events(kinds=("gates.cleared",))
    assert used.data["method"] == "used"


def test_the_agent_satisfies_by_hand_in_its_own_shell(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """H4: the session is known from the shell; nothing is guessed."""
    requirements(held, "requirements:\n  planned: {}\n")
    by_hand = call("Bash", command="holdfast gate satisfy planned")
    model.script([write(held, "no.txt"), by_hand, write(held, "yes.txt"), text("ok")])
    claude.run("go")

    assert not (held.project / "no.txt").exists()
    assert (held.project / "yes.txt").exists()
    (satisfied,) = held.events(kinds=("gates.satisfied",))
    assert satisfied.data["method"] == "agent"
    assert satisfied.session == held.events(kinds=("session.started",))[0].session


def test_a_budget_warns_and_then_stops_within_one_tool_call(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    """Issue 16, point 9: what the model says it spent is read from the transcript beside the hooks."""
    requirements(held, "requirements:\n  purse: {type: budget, tokens: 50000}\n")
    read = call("Bash", command="echo read")
    costly = spending(read, input=44_000)
    far_over = spending(call("Bash", command="touch paid.txt"), input=20_000)
    late = call("Bash", command="touch late.txt")
    model.script([costly, slow(far_over, 0.5), slow(late, 0.5), text("stopped")])
    claude.run("spend it")

    assert not (held.project / "late.txt").exists()
    assert model.saw("of 50,000 tokens in this session", "main"), "it was warned"
    assert model.saw("the budget is used up", "main"), "and then stopped"
