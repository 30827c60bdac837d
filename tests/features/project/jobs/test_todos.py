"""TODO and FIXME that a branch adds."""

from pathlib import Path

from holdfast.core.kinds.project_events import GitFacts
from holdfast.features.project.jobs import git_status
from holdfast.features.project.jobs import todos as todos_job
from tests.factories import NOON
from tests.features.project.jobs.conftest import Runner
from tests.kit import git


def look(repo: Path, run: Runner, before: GitFacts | None = None) -> GitFacts:
    return git_status.read_git_status(str(repo), run, before or GitFacts(), NOON)


def todos(repo: Path, run: Runner) -> list[str]:
    found = look(repo, run)
    ask = git_status.GitQuestions(str(repo), run)
    folders = git_status.git_folders(str(repo))
    assert folders
    return sorted([*todos_job.find_in_difference(ask, found, *folders), *todos_job.find_in_new_files(str(repo), found)])


def test_todos_this_branch_adds(repo: Path, run: Runner) -> None:
    (repo / "old.py").write_text("# TODO was there before\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "old")
    assert todos(repo, run) == []
    git(repo, "checkout", "-qb", "work")
    (repo / "a.py").write_text("x = 1\n# FIXME committed\n")
    git(repo, "commit", "-qam", "one")
    (repo / "old.py").write_text("# TODO was there before\ny = 1\n# TODO not committed\n")
    (repo / "new.py").write_text("z = 1\n# TODO untracked\n")
    assert todos(repo, run) == ["a.py:2", "new.py:2", "old.py:3"]
    (repo / "a.py").write_text("x = 1\n")
    assert todos(repo, run) == ["new.py:2", "old.py:3"], "what a later change takes out again does not count"
