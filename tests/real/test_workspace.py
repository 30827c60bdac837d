"""The real Claude Code and Codex lose work, and one command brings it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import World, git

from .claude import ClaudeCode
from .codex import Codex
from .model_server import ModelServer, call, text

pytestmark = pytest.mark.real
LOSING = "git checkout -q -- . && git clean -fdq && rm -r lib"


def prepare(world: World) -> None:
    (world.project / "lib").mkdir(exist_ok=True)
    (world.project / "lib" / "shop.py").write_text("committed\n")
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", "shop")
    (world.project / "lib" / "shop.py").write_text("committed\n" + "by the person\n" * 20)
    (world.project / "notes.md").write_text("only here\n")


def brought_back(world: World) -> None:
    assert not (world.project / "lib").exists()
    assert not (world.project / "notes.md").exists()
    assert "21 lines lost" in world.cli("undo", "--list")
    world.cli("undo", "--yes")
    assert (world.project / "lib" / "shop.py").read_text() == "committed\n" + "by the person\n" * 20
    assert (world.project / "notes.md").read_text() == "only here\n"


def test_claude_code_loses_work_and_one_command_brings_it_back(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    prepare(held)
    model.script([call("Bash", command=LOSING), text("all done")])
    assert claude.run("clean up").returncode == 0
    brought_back(held)


@pytest.fixture
def held_by_codex(codex: Codex, tmp_path: Path) -> Iterator[World]:
    """A Holdfast whose hooks are in the project's hooks file."""
    world = World(tmp_path / "holdfast")
    world.home, world.project = codex.home, codex.project
    world.env |= {"HOME": str(codex.home)}
    codex.env |= {name: world.env[name] for name in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    prepare(world)
    world.cli("install", "--agent", "codex", "--project")
    git(world.project, "add", "-A", ".codex")
    git(world.project, "commit", "-qm", "hooks")
    yield world
    world.close()


def test_codex_loses_work_and_one_command_brings_it_back(
    codex: Codex, model: ModelServer, held_by_codex: World
) -> None:
    model.script([call("exec_command", cmd=LOSING), text("all done")])
    assert codex.run("clean up").returncode == 0
    brought_back(held_by_codex)
