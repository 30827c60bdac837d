"""Looks at real repositories: worktrees, detached heads, rebases, hostile configs, ten thousand files."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.core import git as git_words
from holdfast.core.kinds.project_events import GitFacts
from holdfast.features.project.jobs import git_status, refresh
from tests.factories import NOON
from tests.features.project.jobs.conftest import Runner
from tests.kit import git


def look(repo: Path, run: Runner, before: GitFacts | None = None) -> GitFacts:
    return git_status.read_git_status(str(repo), run, before or GitFacts(), NOON)


def test_a_clean_repository(repo: Path, run: Runner) -> None:
    found = look(repo, run)
    assert (found.status, found.branch, found.count, found.detached) == ("clean", "main", 0, False)
    assert found.last.subject == "first one"
    assert found.last.author == "Test <test@example.invalid>"
    assert abs(found.last.at - time.time() * 1000) < 600_000


def test_a_second_look_asks_one_question(repo: Path, run: Runner) -> None:
    found = look(repo, run)
    run.ran.clear()
    assert look(repo, run, found) == found
    assert len(run.ran) == 1


def test_changed_new_deleted_and_odd_files(repo: Path, run: Runner) -> None:
    (repo / "a.py").write_text("x = 22\n")
    (repo / "dir").mkdir()
    for name in ("new.py", "with space.txt", "neu\u00e9.md", "-dash", "new\nline"):
        (repo / "dir" / name).write_text("y")
    os.symlink("/etc/passwd", repo / "link")
    found = look(repo, run)
    files = {file.path: file for file in found.files}
    assert (found.status, found.count) == ("dirty", 7)
    assert (files["a.py"].code, files["a.py"].size) == (".M", 7)
    assert set(files) == {
        "a.py",
        "link",
        *(f"dir/{n}" for n in ("new.py", "with space.txt", "neu\u00e9.md", "-dash", "new\nline")),
    }
    assert found.untracked_sources == ["dir/new.py"]
    assert files["link"].size is None
    (repo / "a.py").unlink()
    gone = look(repo, run, found)
    assert {f.path: f.size for f in gone.files}["a.py"] is None


def test_a_file_of_ours_on_its_way_is_nobodys_change(repo: Path, run: Runner) -> None:
    (repo / "logs").mkdir()
    for name in (f"..gitignore.{os.getpid()}.partial", f".SESSION_STATE.md.{os.getpid()}.partial-77"):
        (repo / "logs" / name).write_text("*\n")
    found = look(repo, run)
    assert (found.status, found.count, found.files) == ("clean", 0, [])
    (repo / "logs" / "data.partial").write_text("mine")
    assert look(repo, run).count == 1


def test_names_that_are_no_text(repo: Path, run: Runner) -> None:
    with open(os.fsencode(repo) + b"/\xff\xfe.txt", "wb") as file:
        file.write(b"x")
    found = look(repo, run)
    assert found.count == 1
    assert found.files[0].size == 1
    found.files[0].path.encode()


def test_a_detached_head_and_no_commit_yet(repo: Path, run: Runner, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    found = look(repo, run)
    assert (found.branch, found.detached) == ("HEAD", True)
    young = tmp_path / "young"
    young.mkdir()
    git(young, "init", "-q")
    found = look(young, run)
    assert (found.branch, found.head, found.last) == ("main", "", None)


def test_a_worktree_has_its_own_state(repo: Path, run: Runner, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "b.py").write_text("y")
    found = look(tmp_path / "side", run)
    assert (found.branch, found.count, found.worktree) == ("side", 1, True)
    assert look(repo, run).count == 0


def test_ahead_behind_and_since_when(repo: Path, run: Runner, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repo), "clone")
    clone = tmp_path / "clone"
    (clone / "a.py").write_text("x = 2\n")
    git(clone, "commit", "-qam", "second", "--date", "2001-01-01T00:00:00")
    found = look(clone, run)
    assert (found.ahead, found.behind, found.upstream) == (1, 0, "origin/main")
    assert found.unpushed_since == found.last.at
    (repo / "b").write_text("b")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "theirs")
    git(clone, "fetch", "-q")
    assert look(clone, run, found).behind == 1


def test_a_merge_conflict_and_a_rebase(repo: Path, run: Runner) -> None:
    git(repo, "checkout", "-qb", "side")
    (repo / "a.py").write_text("side\n")
    git(repo, "commit", "-qam", "side")
    git(repo, "checkout", "-q", "main")
    (repo / "a.py").write_text("main\n")
    git(repo, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "-q", "side")
    found = look(repo, run)
    assert (found.doing, found.conflicts) == ("merge", ["a.py"])
    git(repo, "merge", "--abort")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "rebase", "-q", "side")
    found = look(repo, run)
    assert (found.doing, found.detached) == ("rebase", True)
    git(repo, "rebase", "--abort")
    assert look(repo, run).doing == ""


def test_no_repository_a_missing_folder_and_a_broken_one(tmp_path: Path, run: Runner) -> None:
    assert look(tmp_path, run).problem == "not a git repository"
    assert look(tmp_path / "none", run).problem == "the folder is gone"
    (tmp_path / ".git").mkdir()
    found = look(tmp_path, run)
    assert found.status == "unknown"
    assert "not a git repository" in found.problem
    (tmp_path / ".git").rmdir()
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert look(tmp_path, run).status == "unknown"


HOSTILE = {
    "core.fsmonitor": "{trap}",
    "core.hooksPath": "{hooks}",
    "core.pager": "{trap}",
    "core.sshCommand": "{trap}",
    "diff.external": "{trap}",
    "diff.evil.textconv": "{trap}",
    "filter.evil.clean": "{trap}",
    "filter.evil.smudge": "{trap}",
    "filter.evil.process": "{trap}",
    "filter.Other Name.clean": "{trap}",
    "filter.evil.required": "true",
    "gpg.program": "{trap}",
    "log.showSignature": "true",
    "core.editor": "{trap}",
    "core.askPass": "{trap}",
    "alias.status": "!{trap}",
    "remote.origin.url": "ext::{trap}",
    "remote.origin.promisor": "true",
    "extensions.partialClone": "origin",
    "protocol.ext.allow": "always",
    "interactive.diffFilter": "{trap}",
    "status.showUntrackedFiles": "no",
}


def test_a_hostile_config_runs_nothing(repo: Path, run: Runner, tmp_path: Path) -> None:
    """P9: fsmonitor, hooks, pager, filters, textconv, ssh, signatures: a mere look must not run any of them."""
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).write_text(trap.read_text())
        (hooks / name).chmod(0o755)
    (repo / ".gitattributes").write_text('*.py filter=evil diff=evil\n*.md filter="Other Name"\n')
    (repo / "b.md").write_text("one\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "attributes")
    for name, value in HOSTILE.items():
        git(repo, "config", name, value.format(trap=trap, hooks=hooks))
    for name in ("a.py", "b.md"):
        (repo / name).write_text("TODO changed\n")
        os.utime(repo / name, (1, 1))
    found = look(repo, run)
    assert (found.status, found.count) == ("dirty", 2), found
    assert list(
        refresh.find_in_difference(git_status.GitQuestions(str(repo), run), found, repo / ".git", repo / ".git")
    )
    assert not sprung.exists()
    # The trap does work where nothing guards against it, so its silence above means something.
    subprocess.run(["git", "status"], cwd=repo, capture_output=True, check=False)
    assert sprung.exists()


def test_a_repository_that_includes_its_hostility(repo: Path, run: Runner, tmp_path: Path) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    (repo / ".git" / "more").write_text(f'[filter "evil"]\n\tclean = {trap}\n')
    git(repo, "config", "include.path", "more")
    (repo / ".gitattributes").write_text("*.py filter=evil\n")
    (repo / "a.py").write_text("x = 3\n")
    os.utime(repo / "a.py", (1, 1))
    assert look(repo, run).count == 2
    assert not sprung.exists()


def test_ten_thousand_uncommitted_files(repo: Path, run: Runner) -> None:
    folder = repo / "many"
    folder.mkdir()
    for n in range(10_000):
        (folder / f"{n}.txt").touch()
    found = look(repo, run)
    assert (found.count, len(found.files), found.cut) == (10_000, 100, False)


def test_an_answer_that_was_cut_off_is_no_lie() -> None:
    found = git_words.parse_status(b"# branch.oid abc\0# branch.head main\x001 .M N... 1 2 3 a b x\0? whole\0? hal")
    assert [c.path for c in found.changes] == ["x", "whole"]
    assert found.cut


@pytest.mark.parametrize(
    "rubbish", [b"", b"\0\0\0", b"1 \0", b"2 x\0", b"u\0", b"# branch.ab x y\0", bytes(range(256))]
)
def test_rubbish_from_git_is_survived(rubbish: bytes) -> None:
    git_words.parse_status(rubbish)
    git_words.parse_commit(rubbish)
    git_words.parse_commits(rubbish)
    git_words.own_filters(rubbish)


def test_a_staged_rename_is_one_change(repo: Path, run: Runner) -> None:
    git(repo, "mv", "a.py", "b.py")
    found = look(repo, run)
    assert [(f.path, f.code) for f in found.files] == [("b.py", "R.")]


def test_a_submodule_with_changes_of_its_own_is_a_change(repo: Path, run: Runner, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    (library / "c.py").write_text("c = 1\n")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "library")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor/library")
    git(repo, "commit", "-qm", "add the library")
    assert look(repo, run).status == "clean"
    (repo / "vendor/library/c.py").write_text("c = 2\n")
    found = look(repo, run)
    assert (found.status, [(f.path, f.code) for f in found.files]) == ("dirty", [("vendor/library", ".M")])
