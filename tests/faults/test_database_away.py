"""PostgreSQL directly under a daemon, behind a way that is silent, cut and whole again: gates answer, nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import World, git, spooled, wait_until
from tests.stores.conftest import postgres_url
from tests.stores.proxy import DatabaseProxy
from tests.stories.test_gates import PLANNING, requirements

__all__ = ["postgres_url"]


@pytest.fixture
def way(postgres_url: str, tmp_path: Path) -> Iterator[DatabaseProxy]:
    with DatabaseProxy(f"{postgres_url}&options=-c%20search_path%3Daway_{tmp_path.stat().st_ino}", tmp_path) as proxy:
        yield proxy


def denies(answer: dict) -> bool:
    return answer.get("hookSpecificOutput", {}).get("permissionDecision") == "deny"


@pytest.mark.parametrize("how", ["silent", "cut"])
def test_gates_answer_and_nothing_is_lost_while_the_database_cannot_be_reached(
    way: DatabaseProxy, tmp_path: Path, how: str
) -> None:
    world = World(tmp_path / "world", HOLDFAST_STORE__URL=way.url)
    try:
        git(world.project, "init", "-q")
        git(world.project, "commit", "-q", "--allow-empty", "-m", "first")
        git(world.project, "checkout", "-q", "-b", "feature/test")
        requirements(world, PLANNING)
        agent = world.session()
        agent.start()
        assert denies(agent.before("Edit", file_path=str(world.project / "a.py"), old_string="", new_string="x"))
        setattr(way, how, True)
        if how == "cut":
            way.drop_all()
        for n in range(3):
            # The first one waits until the server is given up; it is answered in time all the same.
            refused = agent.before("Edit", file_path=str(world.project / f"{n}.py"), old_string="", new_string="x")
            assert denies(refused), n
            agent.after("Read", file_path=str(world.project / f"{n}.py"))
        agent.prompt("said while it was away")
        setattr(way, how, False)
        world_prompts = lambda: [e.data.prompt for e in world.events(kinds=("prompt.submitted",))]  # noqa: E731
        wait_until(lambda: world_prompts() == ["said while it was away"], "it is in the log")
        wait_until(lambda: not spooled(world.paths.spool), "nothing is left behind")
        calls = [e.data.call for e in world.events(kinds=("tool.started",))]
        assert len(calls) == len(set(calls)) == 4
        assert denies(agent.before("Edit", file_path=str(world.project / "b.py"), old_string="", new_string="x"))
    finally:
        world.close()
