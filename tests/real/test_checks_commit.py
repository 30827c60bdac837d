"""A commit asks for tests that passed on this very content, in the real Claude Code and the real Codex."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.kinds.check_events import CheckFinished, GitActed
from tests.kit import BIN, World, git

from .claude import ClaudeCode
from .codex import Codex
from .model_server import ModelServer, Turn, call, slow, text

pytestmark = pytest.mark.real

TESTED = (
    "requirements:\n  tested:\n    type: evidence\n    command_pattern: 'git\\s+commit'\n"
    "    evidence: {command: '*pytest*', after_edit: '**/*.py'}\n"
)
GREEN = ".venv/bin/pytest -q -p no:cacheprovider"
SHELL_EDIT = "printf 'def half(n): return n / 2\\n' >> calc.py"
COMMIT = "git -c user.name=A -c user.email=a@localhost commit -q -a -m"
FAST = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
STEPS = (GREEN, SHELL_EDIT, f"{COMMIT} refused", GREEN, f"{COMMIT} tested")


def write_project(world: World) -> None:
    """A module with a test, both committed, and the gate."""
    (world.project / "calc.py").write_text("def double(n): return 2 * n\n")
    (world.project / "test_calc.py").write_text("import calc\n\n\ndef test_double():\n    assert calc.double(2) == 4\n")
    (world.project / ".claude").mkdir(exist_ok=True)
    (world.project / ".claude" / "requirements.yaml").write_text(TESTED)
    (world.project / ".gitignore").write_text("__pycache__\n.venv\n")
    tools = world.project / ".venv" / "bin"  # Codex starts a login shell, which has a search path of its own.
    tools.mkdir(parents=True)
    (tools / "pytest").symlink_to(BIN / "pytest")
    git(world.project, "checkout", "-q", "-b", "feature/real")
    git(world.project, "add", ".")
    git(world.project, "commit", "-q", "-m", "a module")


def assert_committed_when_tested(world: World, model: ModelServer) -> None:
    """One commit, made on the content that the second run saw; the refusal names the first run and why it is none."""
    assert model.turns_left() == 0
    assert git(world.project, "log", "--format=%s").splitlines() == ["tested", "a module", "first"]
    assert git(world.project, "status", "--porcelain").strip() == ""
    runs = {event.data.of: event.data for event in world.events(kinds=(CheckFinished.KIND,))}
    assert [(run.runner, run.verdict) for run in runs.values()] == [("pytest", "passed"), ("pytest", "passed")]
    before, after = (run.content[""] for run in runs.values())
    assert before and after and before != after
    denied = [e.data for e in world.events(kinds=("decision.made",)) if e.data["verdict"] == "deny"]
    assert [one["of_kind"] for one in denied] == ["tool.started"]
    assert model.saw("tested: calc.py changed after the last `pytest` that passed", "main")
    acts = [event.data.verb for event in world.events(kinds=(GitActed.KIND,))]
    assert acts == ["commit"]


def test_claude_code_commits_what_was_tested(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    write_project(held)
    model.script([*(call("Bash", command=step) for step in STEPS), text("ALL-DONE")])
    result = claude.run("please do it", env=FAST)

    assert "ALL-DONE" in result.stdout, result.stderr
    assert_committed_when_tested(held, model)


@pytest.fixture
def held_codex(codex: Codex, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "holdfast")
    world.home, world.project = codex.home, codex.project
    world.env |= {"HOME": str(codex.home)}
    codex.env |= {name: world.env[name] for name in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    write_project(world)
    world.cli("install", "--agent", "codex", "--project")
    git(world.project, "add", ".")
    git(world.project, "commit", "-q", "--amend", "-m", "a module")
    yield world
    world.close()


def codex_step(command: str) -> Turn:
    """Said after a moment, as every model needs one: Codex tells an exit code in its rollout, after the call."""
    return slow(call("exec_command", cmd=command, yield_time_ms=30_000), 0.5)


def test_codex_commits_what_was_tested(codex: Codex, model: ModelServer, held_codex: World) -> None:
    model.script([*(codex_step(step) for step in STEPS), slow(text("ALL-DONE"), 0.5)])
    result = codex.run("please do it", env=FAST)

    assert "ALL-DONE" in result.stdout, result.stderr
    assert_committed_when_tested(held_codex, model)
