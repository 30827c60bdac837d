"""Where memory lives: shared by the worktrees of a repository, not by other projects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import World, git

DECISION = "Always use PostgreSQL for the event store."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def memory(reply: dict[str, Any]) -> str:
    context = reply.get("hookSpecificOutput", {}).get("additionalContext", "")
    return "\n".join(piece for piece in context.split("<holdfast-context ") if piece.startswith('source="memory'))


def in_folder(world: World, folder: Path, session: str) -> Any:
    agent = world.session(session, cwd=str(folder))
    agent.env["CLAUDE_PROJECT_DIR"] = str(folder)
    return agent


def test_two_worktrees_of_one_repository_share_what_they_learned(world: World) -> None:
    world.start()
    git(world.project, "init", "-q")
    (world.project / "a").write_text("a")
    git(world.project, "add", "a")
    git(world.project, "commit", "-qm", "first")
    side, stranger = world.root / "side", world.root / "stranger"
    git(world.project, "worktree", "add", "-q", str(side))
    stranger.mkdir()
    git(stranger, "init", "-q")

    main = in_folder(world, world.project, "main")
    main.start()
    main.prompt(DECISION)
    main.stop()
    main.end()
    assert DECISION in memory(in_folder(world, side, "side").start())
    assert DECISION not in memory(in_folder(world, stranger, "stranger").start())

    world.project = side
    assert DECISION in world.cli("memory", "list")
    assert DECISION in world.cli("memory", "search", "which", "database")
    world.cli("memory", "add", "The staging key rotates on Mondays", "--pin")
    world.cli("handoff", "--session", "main", "--next", "check the tests")
    world.project = stranger
    assert DECISION not in world.cli("memory", "list")
    assert "Nothing found" in world.cli("memory", "search", "which", "database")

    again = memory(in_folder(world, world.root / "project", "again").start())
    assert "staging key" in again
    assert "next step: check the tests" in again
    assert "Handed over" not in memory(in_folder(world, side, "last").start())
    assert world.json("rebuild")["differences"] == []


def test_what_was_learned_before_there_was_a_repository_is_not_lost(world: World) -> None:
    world.start()
    before = in_folder(world, world.project, "before")
    before.start()
    before.prompt(DECISION)
    before.stop()
    git(world.project, "init", "-q")
    assert DECISION in memory(in_folder(world, world.project, "after").start())
    assert DECISION in world.cli("memory", "list")
    assert DECISION in world.cli("memory", "search", "which", "database")
