"""Proof in the real Codex: its hooks tell no exit code, its rollout does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import World, git

from .codex import Codex
from .model_server import ModelServer, Turn, call, slow, text

pytestmark = pytest.mark.real

CHECKED = "{type: evidence, evidence: {command: 'sh check.sh*', after_edit: '*.txt'}}"
PATCH = "*** Begin Patch\n*** Add File: note.txt\n+one\n*** End Patch\n"


@pytest.fixture
def held(codex: Codex, tmp_path: Path) -> Iterator[World]:
    """A Holdfast whose hooks are in the project's hooks file, with a gate that asks for a check that passed."""
    world = World(tmp_path / "holdfast")
    world.home, world.project = codex.home, codex.project
    world.env |= {"HOME": str(codex.home)}
    codex.env |= {name: world.env[name] for name in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    git(world.project, "checkout", "-q", "-b", "feature/real")
    (world.project / "check.sh").write_text('test "$1" = well\n')
    (world.project / ".claude").mkdir()
    (world.project / ".claude" / "requirements.yaml").write_text(f"requirements:\n  checked: {CHECKED}\n")
    world.cli("install", "--agent", "codex", "--project")
    yield world
    world.close()


def done(words: str) -> Turn:
    """Said after a moment, as every model needs one: that is when the exit code is read."""
    return slow(text(words), 0.5)


def test_the_end_is_refused_until_the_command_exits_0(codex: Codex, model: ModelServer, held: World) -> None:
    patch, check = call("apply_patch", patch=PATCH), "exec_command"
    badly, well = call(check, cmd="sh check.sh badly"), call(check, cmd="sh check.sh well")
    model.script([patch, done("DONE-I-SAY"), badly, done("DONE-AGAIN"), well, done("DONE-AT-LAST")])
    result = codex.run("please do it")

    assert result.returncode == 0, result.stderr
    assert "DONE-AT-LAST" in result.stdout
    assert model.turns_left() == 0
    assert model.saw("no `sh check.sh` that passed is on record", "main")
    assert model.saw("the last `sh check.sh` failed", "main")
    read = held.events(kinds=("tool.exit_read",))
    assert [(event.data["command"], event.data["exit_code"]) for event in read] == [
        ("sh check.sh badly", 1),
        ("sh check.sh well", 0),
    ]
    refused = [e for e in held.events(kinds=("decision.made",)) if e.data["of_kind"] == "turn.ended"]
    assert [e.data["verdict"] for e in refused] == ["deny", "deny"]
    assert len(held.events(kinds=("turn.ended",))) == 3
