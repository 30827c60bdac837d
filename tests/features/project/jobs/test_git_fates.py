"""Where uncommitted content went, in real repositories: times are never asked."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.core.kinds.project_events import GitFacts
from holdfast.features.project.jobs.git_fates import find_fates
from holdfast.features.project.jobs.git_status import GitQuestions, read_git_status
from tests.factories import NOON
from tests.features.project.jobs.conftest import Runner
from tests.kit import git


def look(repo: Path, run: Runner, before: GitFacts | None = None) -> GitFacts:
    return read_git_status(str(repo), run, before or GitFacts(), NOON)


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD").strip()


def fates_after(repo: Path, run: Runner, *acts: Callable[[], object], is_known: bool = True) -> dict[str, str]:
    """`is_known`: whether Holdfast saw that the commits were made here."""
    before, made = look(repo, run), [head(repo)]
    for act in acts:
        act()
        made.append(head(repo))
    commits = list(dict.fromkeys(made)) if is_known else []
    return find_fates(GitQuestions(str(repo), run), str(repo), before, look(repo, run, before), commits)


def write(repo: Path, **files: str) -> None:
    for name, text in files.items():
        (repo / f"{name}.py").write_text(text)


def test_only_a_commit_is_called_committed(repo: Path, run: Runner) -> None:
    write(repo, a="x = 22\n", b="kept\n", c="thrown away\n")
    os.utime(repo / "a.py", (1, 1))
    found = fates_after(
        repo, run,
        lambda: git(repo, "add", "b.py"),
        lambda: git(repo, "commit", "-qm", "b"),
        lambda: git(repo, "checkout", "-q", "--", "a.py"),
        lambda: git(repo, "clean", "-qf"),
    )  # fmt: skip
    assert found == {"a.py": "discarded", "b.py": "committed", "c.py": "discarded"}


@pytest.mark.parametrize("stash", [("stash", "-qu"), ("stash", "push", "-q", "--include-untracked", "-m", "later")])
def test_a_stash_has_changed_and_new_files(repo: Path, run: Runner, stash: tuple[str, ...]) -> None:
    write(repo, a="x = 22\n", b="new\n")
    assert fates_after(repo, run, lambda: git(repo, *stash)) == {"a.py": "stashed", "b.py": "stashed"}


def test_a_stash_after_a_commit_and_a_commit_after_a_stash(repo: Path, run: Runner) -> None:
    write(repo, a="x = 22\n", b="new\n")
    git(repo, "add", "b.py")
    found = fates_after(
        repo, run, lambda: git(repo, "commit", "-qm", "b"), lambda: git(repo, "stash", "-q"),
        lambda: git(repo, "commit", "-q", "--allow-empty", "-m", "none"),
    )  # fmt: skip
    assert found == {"a.py": "stashed", "b.py": "committed"}


def test_an_older_stash_of_the_same_file_is_not_where_other_content_went(repo: Path, run: Runner) -> None:
    write(repo, a="x = 2\n")
    git(repo, "stash", "-q")
    write(repo, a="x = 3\n")
    assert fates_after(repo, run, lambda: git(repo, "checkout", "-q", "--", ".")) == {"a.py": "discarded"}


def test_a_hard_reset_to_another_commit_discards(repo: Path, run: Runner) -> None:
    write(repo, a="x = 2\n")
    git(repo, "commit", "-qam", "two")
    write(repo, a="x = 3\n")
    found = fates_after(repo, run, lambda: git(repo, "reset", "-q", "--hard", "HEAD~1"), is_known=False)
    assert found == {"a.py": "discarded"}


def test_content_that_a_pull_brought_away_is_not_called_committed(repo: Path, run: Runner) -> None:
    """The head moved, by a commit that was not made here."""
    git(repo, "checkout", "-qb", "theirs")
    write(repo, a="x = 7\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "-")
    write(repo, a="x = 3\n")
    acts = lambda: git(repo, "checkout", "-q", "--", "."), lambda: git(repo, "merge", "-q", "--ff-only", "theirs")
    assert fates_after(repo, run, *acts, is_known=False) == {"a.py": "discarded"}


def test_work_that_went_on_before_its_commit_is_committed(repo: Path, run: Runner) -> None:
    write(repo, a="x = 2\n")
    acts = lambda: write(repo, a="x = 3\n"), lambda: git(repo, "commit", "-qam", "three")
    assert fates_after(repo, run, *acts) == {"a.py": "committed"}


def test_a_commit_on_another_branch_is_one(repo: Path, run: Runner) -> None:
    write(repo, a="x = 2\n")
    acts = [lambda: git(repo, "checkout", "-qb", "side"), lambda: git(repo, "commit", "-qam", "two")]
    assert fates_after(repo, run, *acts, lambda: git(repo, "checkout", "-q", "-")) == {"a.py": "committed"}


def test_deletions(repo: Path, run: Runner) -> None:
    (repo / "a.py").unlink()
    assert fates_after(repo, run, lambda: git(repo, "checkout", "-q", "--", ".")) == {"a.py": "discarded"}
    (repo / "a.py").unlink()
    assert fates_after(repo, run, lambda: git(repo, "commit", "-qam", "gone")) == {"a.py": "committed"}


def test_moved_in_the_worktree_and_moved_with_the_commit(repo: Path, run: Runner) -> None:
    write(repo, new="n = 1\n")
    assert fates_after(repo, run, lambda: (repo / "new.py").rename(repo / "文.py")) == {"new.py": "moved"}
    acts = (
        lambda: (repo / "文.py").rename(repo / "there.py"),
        lambda: git(repo, "add", "-A"), lambda: git(repo, "commit", "-qm", "n"),
    )  # fmt: skip
    assert fates_after(repo, run, *acts, is_known=False) == {"文.py": "moved"}


def test_a_file_that_is_only_out_of_the_list_went_nowhere(repo: Path, run: Runner) -> None:
    write(repo, z="z = 1\n")
    before = look(repo, run)
    for n in range(120):
        write(repo, **{f"m{n:03}": "m\n"})
    now = look(repo, run, before)
    assert (now.count, "z.py" in {file.path for file in now.files}) == (121, False)
    assert find_fates(GitQuestions(str(repo), run), str(repo), before, now, []) == {}


def test_what_is_written_again_with_the_same_content_is_no_newer(repo: Path, run: Runner) -> None:
    write(repo, a="x = 22\n")
    before = look(repo, run)
    os.utime(repo / "a.py", (1, 1))
    assert look(repo, run, before).files == before.files
    write(repo, a="x = 23\n")
    assert look(repo, run, before).files != before.files


def test_names_that_git_would_read_as_something_else(repo: Path, run: Runner) -> None:
    names = ("-dash", "with space", ":(top)x", "new\nline", "a:b")
    for name in names:
        (repo / f"{name}.py").write_text(name)
    found = fates_after(repo, run, lambda: git(repo, "add", "-A"), lambda: git(repo, "commit", "-qm", "odd"))
    assert found == dict.fromkeys((f"{name}.py" for name in names if "\n" not in name), "committed")
