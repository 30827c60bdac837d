"""Checks as an agent and a person live them: the real hook, the real daemon, real git."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.kinds.check_events import CheckFinished, GitActed
from tests.kit import Agent, World, git, wait_until
from tests.stories.test_gates_codex import Codex

GREEN = "..                                                                       [100%]\n2 passed in 0.02s"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, HOLDFAST_CHECKS__LOOK_MS="10000")
    (world.project / "src").mkdir()
    (world.project / "src" / "a.py").write_text("a = 1\n")
    git(world.project, "init", "-q")
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", "first")
    world.start()
    yield world
    world.close()


def checks(world: World) -> list[CheckFinished]:
    return [event.data for event in world.events(kinds=(CheckFinished.KIND,))]


def acts(world: World) -> list[GitActed]:
    return [event.data for event in world.events(kinds=(GitActed.KIND,))]


def shell(agent: Agent, command: str, stdout: str = "", **common: Any) -> None:
    agent.tool("Bash", {"stdout": stdout, "stderr": "", "interrupted": False}, command=command, **common)


def content_at_stop(world: World, agent: Agent) -> dict[str, str]:
    agent.stop()
    return world.events(kinds=("turn.ended",))[-1].data.content


@pytest.mark.quick
def test_a_green_run_is_proof_until_the_content_changes(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(agent, "pytest -q", GREEN)
    (run,) = checks(world)
    assert (run.kind, run.runner, run.dir, run.selection, run.verdict) == ("test", "pytest", ".", "all", "passed")
    assert (run.passed, run.worktree, run.branch) == (2, str(world.project), "main")
    assert run.content[""]
    assert content_at_stop(world, agent) == run.content
    told = world.json("checks", "show")
    assert told["holds"], told
    (world.project / "src" / "a.py").write_text("a = 2\n")
    shell(agent, "sed -i s/1/2/ src/a.py")
    assert content_at_stop(world, agent)[""] != run.content[""]
    told = world.json("checks", "show")
    assert (told["holds"], told["why"]) == (False, "files changed after it")
    assert "pytest -q" in world.cli("checks", "list")


def test_what_proves_nothing_is_not_called_passed(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(agent, "pytest -q 2>&1 | tail -1", "=== short summary ===")
    shell(agent, "pytest --version", "pytest 8.3.3")
    agent.before("Bash", "b1", command="pytest -q")
    agent.after("Bash", "b1", {"stdout": "", "stderr": "", "backgroundTaskId": "x"}, command="pytest -q")
    found = checks(world)
    assert [run.verdict for run in found] == ["unknown", "did_not_run", "unknown"]
    assert all(run.why for run in found)
    told = world.json("checks", "show", "--kind", "test")
    assert not told["holds"]


def test_a_failing_run_and_a_long_command(world: World) -> None:
    agent = world.session()
    agent.start()
    files = " ".join(f"tests/unit/test_some_long_name_of_a_module_{n}.py" for n in range(200))
    command = f"pytest -q {files} 2>&1 | tail -2"
    shell(agent, command, "1 failed, 3 passed in 0.2s")
    (run,) = checks(world)
    assert (run.verdict, run.failed, run.selection) == ("failed", 1, "part")
    agent.before("Bash", "f1", command="pytest -q")
    agent.failed("Bash", "Exit code 1\n1 failed, 3 passed in 0.2s", "f1", command="pytest -q")
    assert [run.verdict for run in checks(world)] == ["failed", "failed"]


def test_sessions_worktrees_and_branches_are_kept_apart(world: World, tmp_path: Path) -> None:
    first, second = world.session("session-1"), world.session("session-2")
    first.start()
    second.start()
    shell(first, "pytest -q", GREEN)
    shell(second, "pytest -q", GREEN)
    listed = world.json("checks", "list", HOLDFAST_SESSION="session-2")["runs"]
    assert sorted((run["session"], run["own"]) for run in listed) == [("session-1", False), ("session-2", True)]
    assert all(run["current"] for run in listed)
    other = tmp_path / "other"
    git(world.project, "worktree", "add", "-q", "-b", "topic", str(other))
    elsewhere = world.session("session-3", cwd=str(other))
    elsewhere.start()
    shell(elsewhere, "pytest -q", "1 failed in 0.1s")
    shell(first, f"cd {other} && pytest -q", GREEN)
    runs = [(run.worktree, run.branch, run.verdict) for run in checks(world)[2:]]
    assert runs == [(str(other), "topic", "failed"), (str(other), "topic", "passed")]


def test_a_run_in_one_folder_is_no_proof_for_the_others(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(agent, "cd src && pytest -q", GREEN)
    told = world.json("checks", "show")
    assert (told["holds"], told["why"]) == (False, "it ran in src only")
    assert world.json("checks", "show", "--dir", "src/deeper")["holds"]


def test_git_acts_are_taken_from_git(world: World) -> None:
    agent = world.session()
    agent.start()
    agent.before("Bash", "c1", command="git commit -qam second")
    started = world.events(kinds=("tool.started",))[-1].data
    assert started.git_verbs == ["commit"]
    assert started.content[""]
    (world.project / "src" / "a.py").write_text("a = 2\n")
    git(world.project, "commit", "-qam", "second")
    agent.after("Bash", "c1", command="git commit -qam second")
    assert len(acts(world)) == 1  # The hook is answered before git is looked at: whoever asks waits for it.
    git(world.project, "checkout", "-qb", "topic")
    (world.project / "src" / "a.py").write_text("a = 3\n")
    git(world.project, "commit", "-qam", "third")
    agent.prompt("go on")
    shell(agent, "echo git commit -m nothing")
    seen = [(act.verb, act.outside, act.before.branch, act.after.branch) for act in acts(world)]
    assert seen == [
        ("commit", False, "main", "main"), ("checkout", True, "main", "topic"), ("commit", True, "topic", "topic"),
    ]  # fmt: skip
    assert acts(world)[0].commits == [git(world.project, "rev-parse", "main").strip()]


def test_a_commit_made_while_the_daemon_was_down_is_seen(world: World) -> None:
    agent = world.session()
    agent.start()
    world.kill()
    (world.project / "src" / "a.py").write_text("a = 2\n")
    git(world.project, "commit", "-qam", "second")
    world.start()
    agent.prompt("go on")
    wait_until(lambda: acts(world), "the commit is seen")
    assert [(act.verb, act.outside) for act in acts(world)] == [("commit", True)]


def test_a_push_is_seen_by_its_trace(world: World, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(world.project, "remote", "add", "origin", str(tmp_path / "remote.git"))
    agent = world.session()
    agent.start()
    agent.before("Bash", "p1", command="./release.sh")
    git(world.project, "push", "-q", "origin", "main")
    agent.after("Bash", "p1", command="./release.sh")
    assert [(act.verb, act.outside) for act in acts(world)] == [("push", False)]


def test_a_report_tells_what_the_pipe_hides(world: World) -> None:
    agent = world.session()
    agent.start()
    command = "pytest -q --junitxml=report.xml | tail -1"
    agent.before("Bash", "r1", command=command)
    cases = '<testcase name="a"/><testcase name="b"><skipped/></testcase>'
    (world.project / "report.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    agent.after("Bash", "r1", {"stdout": "", "stderr": ""}, command=command)
    (run,) = checks(world)
    assert (run.verdict, run.passed, run.skipped) == ("passed", 1, 1), run.why
    shell(agent, command, "")
    assert checks(world)[-1].verdict == "unknown", "the report is older than the run"


def test_an_exit_code_that_codex_tells_late_makes_the_verdict(world: World) -> None:
    codex = Codex(world)
    codex.fire("SessionStart", source="startup")
    codex.run("pytest -q | cat", 0)
    codex.run("pytest -q", 0)
    wait_until(lambda: len(checks(world)) == 3, "the second command is judged again")
    codex.run("pytest -q", 1)
    wait_until(lambda: len(checks(world)) == 5, "the third command is judged again")
    assert [run.verdict for run in checks(world)] == ["unknown", "unknown", "passed", "unknown", "failed"]
    assert checks(world)[2].content == checks(world)[1].content != {}
    assert checks(world)[2].of == checks(world)[1].of
    world.cli("verify")


def test_replaying_the_log_gives_the_same_state(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(agent, "pytest -q; git commit --allow-empty -m x", GREEN)
    shell(agent, "ruff check .", "All checks passed!")
    before = world.json("checks", "list")["runs"]
    assert [run["kind"] for run in before] == ["lint", "test"]
    world.cli("verify")


def test_a_secret_in_the_name_of_a_branch_is_not_stored(world: World) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    agent = world.session()
    agent.start()
    agent.before("Bash", "c1", command=f"git checkout -b {secret}")
    git(world.project, "checkout", "-qb", secret)
    agent.after("Bash", "c1", command=f"git checkout -b {secret}")
    assert acts(world)
    shell(agent, "pytest -q", GREEN)
    assert [act.verb for act in acts(world)] == ["checkout"]
    assert all(secret not in repr(event.data) for event in world.events())
    assert checks(world)[0].verdict == "passed"
