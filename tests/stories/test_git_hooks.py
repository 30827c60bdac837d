"""Git's own hooks hold what an agent commits and pushes, whatever made it; real git, hooks and daemon."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import World, git

RULES = """
requirements:
  reviewed: {type: blocking, scope: session, command_pattern: 'git\\s+(commit|push)'}
  protected_branch: {type: guard, guard_type: protected_branch, protected_branches: [main]}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    (world.root / "config").mkdir()
    (world.root / "config" / "settings.yaml").write_text(RULES)
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "config", "user.email", "a@example.org")
    git(world.project, "config", "user.name", "A")
    (world.project / "a.txt").write_text("one\n")
    git(world.project, "add", "a.txt")
    git(world.project, "commit", "-qm", "first")
    world.start()
    world.cli("gate", "hooks", "on")
    yield world
    world.close()


class Shell:
    """An agent's process: its hooks come from it, and so do the commands of its calls."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.agent = world.session("s1")
        self.agent.start()

    def run(self, command: str, shown: str = "./work.sh") -> subprocess.CompletedProcess[str]:
        """`shown` is what the tool call tells."""
        call = f"c{os.urandom(3).hex()}"
        answer = self.agent.before("Bash", call=call, command=shown)
        if "deny" in str(answer):
            return subprocess.CompletedProcess(command, 99, "", str(answer))
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.world.project,
            env=self.world.env,
            capture_output=True,
            text=True,
            check=False,
        )
        self.agent.after("Bash", call=call, command=shown)
        return done


def head(world: World, name: str = "HEAD") -> str:
    return git(world.project, "rev-parse", name).strip()


@pytest.fixture
def shell(world: World) -> Shell:
    git(world.project, "checkout", "-q", "-b", "topic")
    (world.project / "a.txt").write_text("two\n")
    return Shell(world)


HIDDEN_COMMITS = {
    "a script": "printf 'git commit -qam x' > w.sh; sh w.sh",
    "base64": "echo Z2l0IGNvbW1pdCAtcWFtIHg= | base64 -d | sh",
    "without verifying": "git commit --no-verify -qam x",
    "an alias": "git -c alias.x='commit -qam x' x",
    "perl": "perl -e 'system(qw(git commit -qam x))'",
    "amending": "git commit --amend -qam x",
    "plumbing": "git update-ref refs/heads/topic $(git commit-tree -p HEAD -m x HEAD^{tree})",
    "another worktree": "git worktree add -q ../w -b other && cd ../w && echo 3 > a.txt && git commit -qam x",
}


@pytest.mark.parametrize("way", HIDDEN_COMMITS)
def test_a_commit_that_no_command_shows_is_held_cleanly_until_its_requirement_is_met(
    world: World, shell: Shell, way: str
) -> None:
    before = head(world)
    done = shell.run(HIDDEN_COMMITS[way])
    assert "reviewed" in done.stderr, done
    assert head(world) == before
    assert (world.project / "a.txt").read_text() == "two\n", "the work is untouched"
    assert [event.data.requirements for event in world.events(kinds=("gates.held",))][-1] == ["reviewed"]
    assert "deny" not in str(shell.agent.before("Read", file_path="a.txt")), "what was held went round nothing"
    world.cli("gate", "satisfy", "reviewed", "--session", "s1")
    if "worktree" in way:
        return  # It is on a branch of its own, which asks for its own review.
    assert shell.run(HIDDEN_COMMITS[way]).returncode == 0
    assert head(world) != before
    assert world.events(kinds=("gates.bypassed",)) == []


def test_a_push_is_held_and_a_person_s_is_not(world: World, shell: Shell, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(world.project, "remote", "add", "origin", str(tmp_path / "remote.git"))
    done = shell.run("git push -q origin topic")
    assert (done.returncode, "reviewed" in done.stderr) == (1, True)
    # A process of its own session is nobody's agent.
    person = subprocess.run(
        [sys.executable, "-c", "import os,sys; os.setsid() if os.fork() == 0 else os._exit(0); os.execvp('git', sys.argv[1:])",
         "git", "push", "-q", "origin", "main"],
        cwd=world.project, env=world.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert person.returncode == 0


def test_a_protected_branch_does_not_move_but_fetching_and_branching_do(world: World, shell: Shell) -> None:
    before = head(world, "main")
    world.cli("gate", "satisfy", "reviewed", "--session", "s1")
    assert shell.run("git stash -q && git checkout -q main && git stash pop -q && git commit -qam x").returncode != 0
    assert head(world, "main") == before
    assert shell.run("git checkout -q -b more").returncode == 0
    world.cli("gate", "satisfy", "reviewed", "--session", "s1")
    assert shell.run("git commit -qam x").returncode == 0
    assert shell.run("git branch -f main more").returncode != 0
    assert head(world, "main") == before


def test_what_would_be_left_half_done_is_not_refused_at_the_reference(world: World, shell: Shell) -> None:
    world.cli("gate", "satisfy", "reviewed", "--session", "s1")
    assert shell.run("git commit -qam two").returncode == 0
    world.cli("gate", "clear", "reviewed", "--session", "s1")
    done = shell.run(
        "set -e; git reset -q --hard HEAD~1; git merge -q --ff-only topic@{1}; git revert --no-edit HEAD; git rebase -q main;"
        " echo 4 > a.txt; git stash -q; git tag t; git gc -q; git pack-refs --all; git branch spare HEAD~1; git branch -D spare"
    )
    assert done.returncode == 0, done


def test_a_shown_commit_is_judged_once(world: World, shell: Shell) -> None:
    world.cli("gate", "approve", "reviewed", "--session", "s1")
    assert shell.run("git commit -qam x", shown="git commit -qam x").returncode == 0
    assert world.events(kinds=("gates.held", "gates.passed")) == []


def test_hooks_of_others_are_called_and_put_back(world: World) -> None:
    world.cli("gate", "hooks", "off")
    folder = world.project / ".git" / "hooks"
    assert not (folder / "pre-push").exists()
    seen = world.root / "seen"
    own = folder / "reference-transaction"
    own.write_text(f'#!/bin/sh\necho "$1" >> {seen}\ncat >> {seen}\n')
    own.chmod(0o755)
    world.cli("gate", "hooks", "on")
    world.cli("gate", "hooks", "on")
    git(world.project, "commit", "-q", "--allow-empty", "-m", "by a person")
    told = seen.read_text()
    assert "prepared" in told and "committed" in told and "refs/heads/main" in told
    world.cli("gate", "hooks", "off")
    assert own.read_text().startswith("#!/bin/sh\necho")
    assert list(folder.glob("*before-holdfast")) == []


def test_a_moved_folder_of_hooks_is_told(world: World) -> None:
    git(world.project, "config", "core.hooksPath", ".husky")
    assert "git no longer asks Holdfast here" in " ".join(world.cli("gate", "status").split())
    world.cli("gate", "hooks", "on")
    assert "git no longer asks" not in world.cli("gate", "status")


def test_without_a_daemon_git_goes_on(world: World, shell: Shell) -> None:
    shell.agent.before("Bash", call="c1", command="./work.sh")
    world.kill()
    git(world.project, "commit", "-qam", "x")
    assert git(world.project, "log", "-1", "--format=%s").strip() == "x"
