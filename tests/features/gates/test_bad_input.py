"""Settings that are taken away in the middle of a call, approvals that race, clocks that jump, heads without a branch."""

import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.core.git_context import locate
from tests.features.gates.stage import Stage, names
from tests.kit import BIN, World, git

RULES = "requirements:\n  deploy: {manual: false, scope: single_use, command_pattern: 'make deploy'}\n"
GUARD = {"type": "guard", "guard_type": "protected_branch", "protected_branches": ["main"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("input"))
    (world.root / "config").mkdir()
    (world.root / "config" / "settings.yaml").write_text(RULES)
    yield world
    world.close()


def vanish(file: Path) -> None:
    file.unlink()


def become_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def become_a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/null")


def grow(file: Path) -> None:
    file.write_bytes(b"# " + b"x" * (30 << 20))


def break_it(file: Path) -> None:
    file.write_text("requirements: [\n\t: {")


@pytest.mark.parametrize(
    "change", [vanish, become_a_folder, become_a_link, grow, break_it], ids=lambda one: one.__name__
)
def test_settings_that_are_taken_away_during_a_call_loosen_nothing(
    world: World, change: Callable[[Path], None]
) -> None:
    file = world.root / "config" / "settings.yaml"
    agent = world.session(f"s-{change.__name__}")
    agent.start()
    agent.before("Bash", "c1", command="python3 x.py")
    change(file)
    try:
        agent.after("Bash", "c1", command="python3 x.py")
        assert "deny" in str(agent.before("Bash", command="make deploy"))
        assert "deploy" in world.cli("gate", "status", code=None)
    finally:
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
        file.write_text(RULES)
        agent.end()


def test_two_approvals_at_once_are_one_use(world: World) -> None:
    agent = world.session("s-race")
    agent.start()
    line = [BIN / "holdfast", "gate", "approve", "deploy", "--session", "s-race"]
    how = {"env": world.env, "cwd": world.project, "capture_output": True, "start_new_session": True}
    with ThreadPoolExecutor() as pool:
        run = [pool.submit(subprocess.run, line, **how) for _ in "ab"]
        assert [one.result().returncode for one in run] == [0, 0]
    assert agent.before("Bash", "c1", command="make deploy") == {}
    agent.after("Bash", "c1", command="make deploy")
    assert "deny" in str(agent.before("Bash", command="make deploy"))


def test_a_clock_that_jumps_neither_keeps_nor_renews_an_approval() -> None:
    stage = Stage(plan={"manual": False})
    given = [{"name": "plan", "scope": "session", "until": stage.now + 60_000}]
    stage.say("gates.approved", requirements=given, method="person")
    assert stage.later(-3_600).edit().silent
    assert names(stage.later(3_600 + 61).edit()) == ["plan"]
    assert (
        names(stage.later(-30).edit()) == [] or stage.edit().silent
    )  # back inside its time it counts, as it was given


def test_a_detached_head_and_a_worktree_are_known_by_what_is_checked_out(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    git(repo, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "side"))
    here, side = locate(str(repo)), locate(str(tmp_path / "side"))
    assert (here["branch"], side["branch"], here["repo"]) == ("main", "topic", side["repo"])
    git(repo, "checkout", "-q", "--detach")
    detached = locate(str(repo)).get("branch", "")
    stage = Stage(guard=GUARD)
    for branch, refused in (("main", ["guard"]), (detached, []), ("topic", [])):
        stage.branch = branch
        assert names(stage.edit()) == refused


def test_of_two_agents_in_one_repository_each_is_asked_for_its_own() -> None:
    stage = Stage(plan={"auto_resolve_skill": "plan"}, deploy={"scope": "single_use", "command_pattern": "make deploy"})
    for session in ("s-1", "s-2"):
        stage.start(session)
    stage.skill("plan", session="s-1")
    assert stage.edit(session="s-1").silent
    assert names(stage.edit(session="s-2")) == ["plan"]
    given = [{"name": "deploy", "scope": "single_use", "until": stage.now + 60_000}]
    stage.say("gates.approved", "s-2", requirements=given, method="person")
    assert names(stage.run("make deploy", session="s-1")) == ["deploy"]
    assert stage.run("make deploy", session="s-2").silent
