"""Git acts taken from what git shows before and after."""

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.core.git_state import git_changes, read_git_state, read_new_log, read_ref_logs
from tests.core.test_fingerprint import git, root, run

__all__ = ["root"]


def acts(folder: Path, *command: str, check: bool = True) -> list[str]:
    before = read_git_state(run, str(folder), os.environ)
    done = subprocess.run(["bash", "-c", " ".join(command)], cwd=folder, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    after = read_git_state(run, str(folder), os.environ)
    changes = git_changes(before, after, read_new_log(str(folder), before), read_ref_logs(str(folder), before, after))
    return [change.verb for change in changes]


G = "git -c user.name=a -c user.email=a@b.c -c commit.gpgsign=false"


@pytest.fixture
def repo(root: Path) -> Path:
    git(root, "branch", "feature")
    return root


def test_each_verb_is_seen_whatever_the_command_was_called(repo: Path) -> None:
    assert acts(repo, "git status") == []
    assert acts(repo, f"echo x >> README.md; {G} commit -qam x") == ["commit"]
    assert acts(repo, f"{G} -c alias.z=commit z -q --allow-empty -m y") == ["commit"]
    assert acts(repo, f"{G} commit -q -m nothing", check=False) == []
    assert acts(repo, "git checkout -q feature") == ["checkout"]
    assert acts(repo, "git merge -q main") == ["merge"]
    assert acts(repo, "git reset -q --hard HEAD~1") == ["reset"]
    assert acts(repo, "git tag v1") == ["tag"]
    assert acts(repo, "git branch topic") == ["branch"]
    assert "stash" in acts(repo, f"echo y >> README.md; {G} stash -q")
    assert acts(repo, "echo new > new.txt; git add new.txt") == ["add"]


def test_push_and_fetch_are_told_apart(repo: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    git(repo, "remote", "add", "origin", str(remote))
    assert acts(repo, "git push -q origin main") == ["push"]
    assert acts(repo, "git push -q origin main") == []
    other = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "-b", "main", str(remote), str(other)], check=True)
    git(other, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(other, "push", "-q")
    assert acts(repo, "git fetch -q origin") == ["fetch"]


def test_no_repository_gives_no_acts(tmp_path: Path) -> None:
    state = read_git_state(run, str(tmp_path), os.environ)
    assert not state.known and git_changes(state, state) == []


def test_an_operation_in_progress_is_shown(repo: Path) -> None:
    git(repo, "checkout", "-q", "feature")
    (repo / "README.md").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "main")
    (repo / "README.md").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    acts(repo, f"{G} merge feature", check=False)
    assert read_git_state(run, str(repo), os.environ).operation == "merge"
