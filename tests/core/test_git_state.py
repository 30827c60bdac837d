"""What git's own files say, without asking git."""

import subprocess
from pathlib import Path

import pytest

from holdfast.core.git_state import last_verb, log_changes, operation_in, read_from, read_refs
from tests.core.test_fingerprint import git, root

__all__ = ["root"]


@pytest.fixture
def repo(root: Path) -> Path:
    git(root, "branch", "feature")
    return root


def reflog(repo: Path) -> bytes:
    return read_from(str(repo / ".git" / "logs" / "HEAD"), 0)


def test_the_acts_of_a_reflog_and_where_each_ends(repo: Path) -> None:
    before = len(reflog(repo))
    git(repo, "commit", "-q", "--allow-empty", "-m", "one: two")
    git(repo, "checkout", "-q", "feature")
    git(repo, "merge", "-q", "main")
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    log = reflog(repo)
    changes = log_changes(log[before:])
    assert [change.verb for _, change in changes] == ["commit", "checkout", "merge", "reset"]
    assert changes[0][1].detail == "one: two"
    assert changes[0][1].new == changes[1][1].old
    assert before + changes[-1][0] == len(log)
    assert last_verb(str(repo / ".git")) == "reset"


def test_a_rebase_is_named_whatever_its_step() -> None:
    lines = b"".join(
        b"1a 2b a <a@b> 1 +0\t%s\n" % message for message in (b"rebase -i (pick): x", b"rebase (finish): y")
    )
    assert [change.verb for _, change in log_changes(lines)] == ["rebase", "rebase"]


def test_an_operation_in_progress_is_shown(repo: Path) -> None:
    assert operation_in(str(repo / ".git")) == ""
    for branch, text in (("feature", "theirs"), ("main", "ours")):
        git(repo, "checkout", "-q", branch)
        (repo / "README.md").write_text(text)
        git(repo, "commit", "-qam", text)
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "feature")
    assert operation_in(str(repo / ".git")) == "merge"


def test_branches_are_read_loose_and_packed(repo: Path) -> None:
    folder, branches = str(repo / ".git"), ("main", "feature", "missing")
    loose = read_refs(folder, branches)
    assert loose.keys() == {"main", "feature"}
    git(repo, "pack-refs", "--all")
    assert read_refs(folder, branches) == loose
    assert read_refs("", branches) == {}


def test_a_pattern_stands_for_every_branch_it_matches(repo: Path) -> None:
    folder = str(repo / ".git")
    for name in ("release/1", "release/2/hotfix", "releases"):
        git(repo, "branch", name)
    assert read_refs(folder, ("release/*", "missing/*")).keys() == {"release/1", "release/2/hotfix"}
    git(repo, "pack-refs", "--all")
    git(repo, "branch", "release/3")
    assert read_refs(folder, ("main", "release/*")).keys() == {"main", "release/1", "release/2/hotfix", "release/3"}
    assert read_refs(folder, ("*",)).keys() >= {"main", "feature", "releases", "release/3"}


def test_a_pattern_leads_nowhere_else_and_reads_a_bounded_number(repo: Path) -> None:
    heads = repo / ".git" / "refs" / "heads"
    (repo / "outside").mkdir()
    (repo / "outside" / "x").write_text("a" * 40)
    (heads / "linked").symlink_to(repo / "outside")
    globs = (f"{repo}/outside/*", "../../../outside/*", "linked/*")
    assert read_refs(str(repo / ".git"), globs) == {}
    (heads / "many").mkdir()
    for number in range(150):
        (heads / "many" / str(number)).write_text("a" * 40)
    assert len(read_refs(str(repo / ".git"), ("many/*",))) == 100


def test_files_that_are_not_there_say_nothing(tmp_path: Path) -> None:
    assert (read_from(str(tmp_path / "HEAD"), 0), last_verb(str(tmp_path)), operation_in(str(tmp_path))) == (
        b"",
        "",
        "",
    )
