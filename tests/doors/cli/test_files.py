"""`holdfast files` names every file that was written outside its folders, and nothing else."""

from pathlib import Path

import pytest

from tests.kit import World, git


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    git(world.project, "init", "-q")
    yield world
    world.close()


def files_below(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def test_whatever_appears_outside_is_listed_and_gone_after_an_uninstall(world: World) -> None:
    (world.home / ".claude").mkdir(exist_ok=True)
    before = files_below(world.home) | files_below(world.project)
    assert "nothing on this machine" in world.cli("files")
    world.cli("install", "--agent", "claude-code")
    world.cli("gate", "hooks", "on")
    agent = world.session("s1")
    agent.start()
    agent.prompt("Fix it")
    agent.stop("Done.")
    world.ask(op="settle")
    own = (str(world.paths.state), str(world.root / "config"))

    def unlisted() -> set[str]:
        """Looked for first: what the daemon writes meanwhile is listed, too."""
        found = {p for p in files_below(world.home) | files_below(world.project) if not p.startswith(own)} - before
        # Git's own: objects, logs and the like are not ours.
        return {p for p in found if "/.git/" not in p or "/hooks/" in p} - {one["path"] for one in world.json("files")}

    assert unlisted() == set()
    listed = {one["path"] for one in world.json("files")}
    assert str(world.paths.state) in listed
    world.cli("uninstall")
    assert {one["path"] for one in world.json("files")} <= set(own)
