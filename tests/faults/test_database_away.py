"""PostgreSQL directly under daemons, behind a way that is watched, silent, cut and whole again: nothing is lost or held up."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import World, git, spooled, wait_until
from tests.stores.conftest import postgres_url
from tests.stores.proxy import DatabaseProxy, noting_locks
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


def test_a_daemon_at_work_never_keeps_the_lock_while_something_is_on_its_way(
    way: DatabaseProxy, postgres_url: str, tmp_path: Path
) -> None:
    """Hooks, the jobs that follow them, their ends, the full-text index."""
    world = World(tmp_path / "world", HOLDFAST_STORE__URL=way.url)
    try:
        world.start()
        with noting_locks(way, postgres_url) as held:
            agent = world.session()
            agent.start()
            agent.prompt("Remember that we use tabs here.")
            agent.tool("Bash", command="make lint")
            agent.stop()
            agent.end()
            wait_until(lambda: world.view("log.history", query="tabs")["hits"], "it is indexed")
            with world.reader() as reader:
                wait_until(lambda: not any(job["owner"] for job in reader.jobs()), "its jobs have ended")
        assert held and not any(held)
    finally:
        world.close()


def test_two_daemons_whose_database_goes_away_in_the_middle_of_a_batch_lose_nothing(
    way: DatabaseProxy, tmp_path: Path
) -> None:
    """Each time at another moment of what they are sending; both go on, and what was answered is there once."""
    worlds = [World(tmp_path / name, HOLDFAST_STORE__URL=way.url) for name in ("one", "two")]
    sent: list[str] = []
    over = threading.Event()

    def work(world: World, name: str) -> None:
        agent, n = world.session(name), 0
        while not over.is_set():
            agent.tool("Read", file_path=str(world.project / "a.py"))
            agent.prompt(f"{name} says {n}")
            sent.append(f"{name} says {n}")
            n += 1

    try:
        for world in worlds:
            world.start()
        agents = [threading.Thread(target=work, args=(world, world.root.name)) for world in worlds]
        for agent in agents:
            agent.start()
        for _ in range(6):
            before = way.turns
            wait_until(lambda before=before: way.turns > before + 5, "they write")
            way.drop_all()
        over.set()
        for agent in agents:
            agent.join()
        prompts = lambda: sorted(e.data.prompt for e in worlds[0].events(kinds=("prompt.submitted",)))  # noqa: E731
        wait_until(lambda: set(prompts()) >= set(sent), "all of it is in the log")
        for world in worlds:
            wait_until(lambda world=world: not spooled(world.paths.spool), "nothing is left behind")
        assert prompts() == sorted(sent)
        assert [e.seq for e in worlds[0].events()] == list(range(1, len(worlds[0].events()) + 1))
    finally:
        over.set()
        for world in worlds:
            world.close()
