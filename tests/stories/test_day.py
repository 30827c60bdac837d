"""A day in one repository, fifty-odd steps by an agent and by a person beside it: after each, every answer agrees with git."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kit import Agent, World, git

REQUIREMENTS = "requirements:\n  tests_green: {enabled: true}\n"
PASSED, FAILED = (
    "===== 3 passed in 0.10s =====",
    "FAILED test_a.py::test_one - assert 0\n===== 1 failed, 2 passed in 0.10s =====",
)
IGNORED = ".claude/\nignored/\n"
AGENT, PERSON = "agent", "person"


class Step(NamedTuple):
    who: str
    command: str
    prints: str = ""


MORNING = [
    Step(AGENT, "echo 'def one(): return 1' > a.py"),
    Step(AGENT, "pytest -q", PASSED),
    Step(AGENT, "git add -A && git commit -qm 'one'"),
    Step(AGENT, "git checkout -qb feature"),
    Step(PERSON, "echo '# by hand' >> a.py"),
    Step(AGENT, "pytest -q", FAILED),
    Step(PERSON, "git checkout -q -- a.py"),
    Step(AGENT, "pytest -q", PASSED),
    Step(AGENT, "mkdir -p src && echo 'x = 1' > src/new.py"),
    Step(AGENT, "git stash -qu"),
    Step(AGENT, "git stash pop -q"),
    Step(PERSON, "mkdir -p 文档 && echo '你好' > '文档/設計 ノート.md'"),
    Step(AGENT, "git add -A && git commit -qm '设计'"),
    Step(PERSON, "rm 文档/*"),
]
MERGES = [
    Step(AGENT, "git checkout -q -- ."),
    Step(AGENT, "git mv src/new.py src/newer.py"),
    Step(AGENT, "git commit -qm 'rename'"),
    Step(AGENT, "git checkout -q main"),
    Step(AGENT, "echo 'def one(): return 2' > a.py && git commit -qam 'two'"),
    Step(AGENT, "git checkout -q feature"),
    Step(AGENT, "echo 'def one(): return 3' > a.py && git commit -qam 'three'"),
    Step(AGENT, "git merge -q main || true"),
    Step(PERSON, "printf 'def one(): return 4\\n' > a.py"),
    Step(AGENT, "git add a.py"),
    Step(AGENT, "git commit -qm 'merged'"),
    Step(AGENT, "pytest -q", PASSED),
    Step(PERSON, "touch -d '2001-01-01' a.py"),
    Step(AGENT, "git rebase -q main || true"),
    Step(PERSON, "git rebase --abort || true"),
    Step(AGENT, "git cherry-pick main || true"),
    Step(AGENT, "git cherry-pick --abort || true"),
    Step(AGENT, "git revert --no-edit -m 1 HEAD || true"),
]
TREES = [
    Step(AGENT, "git worktree add -q ../tree -b aside"),
    Step(PERSON, "echo 'y = 1' > ../tree/y.py"),
    Step(AGENT, "cd ../tree && pytest -q", FAILED),
    Step(PERSON, "git -C ../tree add -A && git -C ../tree commit -qm aside"),
    Step(AGENT, "git bisect start -q HEAD HEAD~2 || git bisect start HEAD HEAD~2"),
    Step(AGENT, "git bisect good || true"),
    Step(PERSON, "git bisect reset -q || git bisect reset"),
    Step(AGENT, "git -c protocol.file.allow=always submodule add -q ../other lib"),
    Step(AGENT, "git commit -qm 'lib'"),
    Step(PERSON, "echo changed >> lib/readme"),
    Step(AGENT, "git -C lib checkout -q -- readme"),
    Step(PERSON, "mkdir many && for n in $(seq 5000); do echo $n > many/f$n.txt; done"),
    Step(AGENT, "pytest -q", PASSED),
    Step(PERSON, "echo more >> many/f4711.txt"),
    Step(AGENT, "git add -A && git commit -qm 'five thousand'"),
    Step(PERSON, "echo more >> many/f4712.txt"),
    Step(AGENT, "git reset -q --hard"),
    Step(AGENT, "git checkout -q --detach HEAD~1"),
    Step(AGENT, "git checkout -q feature"),
    Step(PERSON, "mkdir -p ignored && echo z > ignored/z"),
    Step(AGENT, "git clean -qfd"),
    Step(AGENT, "git branch -q -D aside || git worktree remove --force ../tree"),
]
DAY = [*MORNING, *MERGES, *TREES]


@pytest.fixture
def day(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    for folder in (other, world.project):
        git(folder, "init", "-q", "-b", "main")
    (other / "readme").write_text("a library\n")
    git(other, "add", "."), git(other, "commit", "-qm", "readme")
    (world.project / ".gitignore").write_text(IGNORED)
    file = world.project / ".claude" / "requirements.yaml"
    file.parent.mkdir()
    file.write_text(REQUIREMENTS)
    git(world.project, "add", "."), git(world.project, "commit", "-qm", "first")
    yield world
    world.close()


def shell(world: World, command: str) -> None:
    identity = {
        f"GIT_{who}_{what}": f"t{mark}t.invalid"
        for who in ("AUTHOR", "COMMITTER")
        for what, mark in (("NAME", "."), ("EMAIL", "@"))
    }
    env = {"PATH": os.environ["PATH"], "HOME": str(world.home), "GIT_EDITOR": "true", **identity}
    subprocess.run(["bash", "-c", command], cwd=world.project, env=env, capture_output=True, check=True)


def take(world: World, agent: Agent, step: Step) -> None:
    if step.who == PERSON:
        shell(world, step.command)
        return
    call = agent._next_call()
    agent.before("Bash", call, command=step.command)
    if not step.prints:
        shell(world, step.command)
    if step.prints == FAILED:
        agent.failed("Bash", f"Exit code 1\n{FAILED}", call, command=step.command)
    else:
        agent.after("Bash", call, {"stdout": step.prints, "stderr": "", "interrupted": False}, command=step.command)


class Oracle:
    """What git itself says, and on which content the tests last passed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.proven = folder, ""

    def state(self) -> dict[str, Any]:
        out = git(self.folder, "-c", "core.quotePath=false", "status", "--porcelain=v1", "-z", "-uall", "--branch")
        entries = iter(out.split("\0")[1:-1])
        codes = []
        for entry in entries:
            codes.append(entry[:2])
            if "R" in entry[:2]:
                next(entries)
        branch = git(self.folder, "branch", "--show-current").strip()
        return {
            "branch": branch or "HEAD",
            "hash": git(self.folder, "rev-parse", "HEAD").strip(),
            "count": len(codes),
            "status": "dirty" if codes else "clean",
            "conflicts": sum("U" in code or code in ("AA", "DD") for code in codes),
        }

    def content(self) -> str:
        """Of everything that git would take in, submodules too."""
        index = self.folder.parent / "oracle-index"
        index.unlink(missing_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_INDEX_FILE": str(index)}
        run = {"cwd": self.folder, "env": env, "check": True, "capture_output": True, "text": True}
        subprocess.run(["git", "read-tree", "HEAD"], **run)  # type: ignore[call-overload]
        subprocess.run(["git", "add", "-A"], **run)  # type: ignore[call-overload]
        tree = subprocess.run(["git", "write-tree"], **run).stdout  # type: ignore[call-overload]
        inner = (self.folder / "lib" / "readme").read_text() if (self.folder / "lib" / "readme").exists() else ""
        return f"{tree}{inner}"

    def note(self, step: Step) -> None:
        if step.prints and "cd " not in step.command:
            self.proven = self.content() if step.prints == PASSED else ""


def differences(world: World, session: str, oracle: Oracle) -> list[str]:
    project = str(world.project)
    state = world.ask(op="view", name="project.state", args={}, project=project)
    said, true = state["document"]["CURRENT_STATE"]["git"], oracle.state()
    shown = {
        "branch": said["branch"], "hash": said["last_commit"]["hash"], "count": said["uncommitted_files"]["count"],
        "status": said["status"],
    }  # fmt: skip
    wrong = [f"state {name}: {value!r}, git {true[name]!r}" for name, value in shown.items() if value != true[name]]
    listed = world.ask(op="view", name="project.tasks", args={}, project=project)
    kinds = {task["gap_type"] for task in listed["tasks"]}
    if ("merge_conflict" in kinds) != bool(true["conflicts"]):
        wrong.append(f"tasks {sorted(kinds)}, git has {true['conflicts']} conflicts")
    if not true["count"] and kinds & {"unvalidated_changes", "uncommitted_changes"}:
        wrong.append(f"tasks {sorted(kinds)}, git is clean")
    if not (state["current"] and listed["current"]):
        return []  # It says as of when it was true.
    gates = world.ask(op="view", name="gates.status", args={}, project=project, session=session)
    proven = next(one["ok"] for one in gates["requirements"] if one["name"] == "tests_green")
    # Open in spite of equal content is right where an edit is on record.
    if proven and oracle.content() != oracle.proven:
        wrong.append("gate: proven, but the tests passed on other content")
    return wrong


def run_day(world: World, steps: list[Step]) -> list[str]:
    agent, oracle, wrong = world.session("day-1"), Oracle(world.project), []
    agent.start()
    agent.prompt("Work on it")
    world.cli("state", "refresh")
    for n, step in enumerate(steps, 1):
        take(world, agent, step)
        oracle.note(step)
        wrong += [f"{n}. {step.command}: {one}" for one in differences(world, agent.id, oracle)]
    return wrong


@pytest.mark.quick
def test_every_answer_agrees_with_git_through_a_morning(day: World):
    assert run_day(day, MORNING) == []


@pytest.mark.timeout(600)
def test_every_answer_agrees_with_git_through_a_day(day: World):
    assert len(DAY) >= 52
    assert run_day(day, DAY) == []
