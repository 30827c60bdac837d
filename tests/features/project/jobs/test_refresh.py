"""What a look finds beside git's status: TODO and FIXME that a branch adds, JUnit reports that the settings name."""

from pathlib import Path

import pytest

from holdfast.core.kinds.project_events import GitFacts
from holdfast.features.project.jobs import git_status, refresh
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
    return sorted([*refresh.find_in_difference(ask, found, *folders), *refresh.find_in_new_files(str(repo), found)])


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


JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="a" tests="4">
<testcase classname="t.A" name="ok"/><testcase classname="t.A" name="bad"><failure message="x">no</failure></testcase>
<testcase classname="t.A" name="broken"><error/></testcase><testcase classname="t.A" name="left"><skipped/></testcase>
</testsuite></testsuites>"""


def test_junit_reports(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/r.xml").write_text(JUNIT)
    (run,) = refresh.read_reports(str(tmp_path), ["out/*.xml"], {})
    assert (run.passed, run.failed, run.skipped) == (1, 2, 1)
    assert run.failures == ["t.A::bad", "t.A::broken"]
    assert refresh.read_reports(str(tmp_path), ["out/*.xml"], {run.name: run.written}) == [], (
        "the same report is no news"
    )


@pytest.mark.parametrize(
    "text", ["", "<a>", "<html></html>", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>']
)
def test_a_report_that_is_none_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.xml").write_text(text)
    found = refresh.read_reports(str(tmp_path), ["r.xml"], {})
    assert found == []


def test_reports_are_only_looked_for_below_the_project(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(JUNIT)
    inside = tmp_path / "inside"
    inside.mkdir()
    assert refresh.read_reports(str(inside), ["../r.xml", str(tmp_path / "r.xml")], {}) == []


def test_an_added_line_that_looks_like_a_header_is_none(repo: Path, run: Runner) -> None:
    """As git writes it: `++ x` added is `+++ x`, and a name with a space ends in a tab."""
    file = repo / "my notes.txt"
    file.write_text("one\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "notes")
    file.write_text("one\n++ b/other.txt\n++ counted\n# TODO here\n")
    assert todos(repo, run) == ["my notes.txt:4"]
