"""Test state, validation and tasks come from `check.finished` alone, and say no more than was seen."""

from typing import Any

import msgspec
import pytest

from tests.factories import NOON
from tests.features.project.stage import ROOT, Stage

BROKEN = "broken_tests"


def changed(stage: Stage, *paths: str, **facts: Any) -> None:
    files = [{"path": path, "code": ".M", "modified": NOON, "changed": NOON, "size": 1} for path in paths]
    stage.git(status="dirty", branch="main", head="c1", count=len(files), files=files, **facts)


def unvalidated(stage: Stage) -> set[str]:
    files = stage.document["CURRENT_STATE"]["git"]["uncommitted_files"]["files"]
    return {file["path"] for file in files if not file["validated"]}


# ── failing and passing ──────────────────────────────────────────────────────────────────────────────────────────────


def test_one_task_for_each_failing_suite_and_folder(stage: Stage) -> None:
    stage.check("failed", folder="services/a", failed=2)
    stage.check("failed", folder="services/b", failed=1)
    stage.check("failed", "jest", folder="services/a", failed=3)
    assert sorted(stage.tasks(BROKEN)) == [
        "1 test failing in services/b",
        "2 tests failing in services/a",
        "3 tests failing in services/a",
    ]


def test_another_folders_pass_heals_nothing(stage: Stage) -> None:
    stage.check("failed", folder="services/a", failed=2)
    stage.check("passed", folder="services/b", passed=9)
    stage.check("passed", "jest", folder="services/a", passed=9)
    stage.check("passed", folder="services/ab", passed=9)
    assert stage.tasks(BROKEN) == ["2 tests failing in services/a"]
    stage.check("passed", folder="services", passed=9)
    assert stage.tasks(BROKEN) == []


def test_an_entry_point_stands_for_the_tools_of_its_own_folder_only(stage: Stage) -> None:
    stage.check("failed", "make", why="exit status 2")
    stage.check("passed", passed=3)
    assert stage.tasks(BROKEN) == [], "make test failed, then pytest passed in the same folder"
    stage.check("failed", folder="services/a", failed=1)
    stage.check("passed", "make", passed=3)
    assert stage.tasks(BROKEN), "nobody knows whether make at the top runs the tests of services/a"


def test_a_narrow_run_does_not_rewrite_the_counts_of_a_wide_one(stage: Stage) -> None:
    stage.check("failed", failed=127, passed=800)
    stage.check("failed", failed=5, selection="part", operands=["tests/test_a.py"])
    assert stage.tasks(BROKEN) == ["127 tests failing"]
    stage.check("passed", passed=5, selection="part", operands=["tests/test_a.py"])
    assert stage.tasks(BROKEN) == ["127 tests failing"], "which 127 failed is not known by name"
    assert stage.document["CURRENT_STATE"]["tests"]["failed"] == 127


def test_a_narrow_pass_after_a_wide_one_keeps_the_counts(stage: Stage) -> None:
    stage.check("passed", passed=800, skipped=2)
    stage.check("passed", passed=5, selection="part", operands=["tests/test_a.py"])
    tests = stage.document["CURRENT_STATE"]["tests"]
    assert (tests["status"], tests["passed"], tests["skipped"], tests["total"]) == ("passing", 800, 2, 802)


@pytest.mark.parametrize(
    ("operands", "closes"),
    [
        (["tests/test_a.py"], True),
        (["tests"], True),
        (["tests/test_a.py::test_x"], True),
        (["tests/test_b.py"], False),
        (["tests/test_a"], False),
        (["tests/test_a.py", "-k"], False),
    ],
)
def test_a_part_run_closes_when_its_operands_cover_what_failed(stage: Stage, operands: list[str], closes: bool) -> None:
    stage.check("failed", failed=1, passed=9, failures=["tests/test_a.py::test_x[1]"])
    stage.check("passed", passed=1, selection="part", operands=operands)
    assert (stage.tasks(BROKEN) == []) == closes


def test_a_part_that_failed_is_closed_by_itself_and_by_what_is_around_it(stage: Stage) -> None:
    part = {"selection": "part", "operands": ["tests/test_a.py", "-k"], "command": "pytest tests/test_a.py -k x"}
    stage.check("failed", failed=1, **part)
    stage.check("passed", passed=1, **part)
    assert stage.tasks(BROKEN) == []
    stage.check("failed", failed=1, selection="part", operands=["tests/test_a.py::test_x"])
    stage.check("failed", failed=1, selection="part", operands=["tests/test_b.py"])
    assert stage.tasks(BROKEN) == ["2 tests failing"], "two parts of one suite are one task"
    stage.check("passed", passed=4, selection="part", operands=["tests/test_a.py"])
    assert stage.tasks(BROKEN) == ["1 test failing"]


def test_a_narrow_failure_takes_back_that_everything_passes(stage: Stage) -> None:
    changed(stage, "src/a.py")
    stage.check("passed", passed=800)
    assert unvalidated(stage) == set()
    stage.check("failed", failed=1, selection="part", operands=["tests/test_a.py"])
    assert stage.document["CURRENT_STATE"]["tests"]["status"] == "failing"
    assert unvalidated(stage) == {"src/a.py"}


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "unknown", "why": "the exit status is tail's"},
        {"verdict": "did_not_run", "why": "--version runs no check"},
        {"verdict": "did_not_run", "why": "it was not reached"},
    ],
)
def test_what_is_unknown_or_was_never_meant_to_run_changes_nothing(stage: Stage, fields: dict[str, str]) -> None:
    stage.check("failed", failed=2)
    before = stage.doc.tasks
    stage.check(**fields)
    assert stage.doc.tasks == before


def test_tests_that_could_not_be_started_are_a_task_of_their_own(stage: Stage) -> None:
    stage.check("did_not_run", why="exit status 4", could_not_start=True)
    assert stage.tasks("tests_not_started") == ["The tests could not be started: pytest, exit status 4"]
    assert stage.gaps()["tests_not_started"].priority == "P2"
    assert stage.tasks(BROKEN) == [], "nothing is known to fail"
    assert stage.document["CURRENT_STATE"]["tests"]["status"] == "not_run"
    stage.check("failed", failed=1)
    assert stage.tasks("tests_not_started") == []
    assert stage.tasks(BROKEN) == ["1 test failing"]


# ── worktrees and branches ───────────────────────────────────────────────────────────────────────────────────────────


def test_failures_of_another_worktree_or_outside_do_not_show(stage: Stage) -> None:
    stage.check("failed", failed=1, worktree="/home/ada/engine-side")
    stage.check("failed", failed=1, folder="/tmp/x")
    assert stage.doc.tasks == []


def test_failures_of_another_branch_show_there_and_only_there(stage: Stage) -> None:
    stage.git(branch="main", head="c1")
    stage.check("failed", failed=1, commit="c1")
    stage.git(branch="other", head="c9")
    assert stage.tasks(BROKEN) == []
    assert not any("assing" in line for line in stage.history()), "nobody fixed it"
    stage.check("passed", passed=3, branch="other", commit="c9")
    stage.git(branch="main", head="c1")
    assert stage.tasks(BROKEN) == ["1 test failing"]
    stage.git(branch="HEAD", detached=True, head="c1")
    assert stage.tasks(BROKEN) == []


def test_a_new_branch_has_what_is_known_of_the_one_it_was_made_from(stage: Stage) -> None:
    stage.git(branch="main", head="c1")
    stage.check("failed", failed=1, commit="c1")
    before, after = {"head": "c1", "branch": "main"}, {"head": "c1", "branch": "fix"}
    stage.say("git.acted", verb="checkout", worktree=ROOT, before=before, after=after)
    stage.git(branch="fix", head="c1")
    assert stage.tasks(BROKEN) == ["1 test failing"]
    stage.check("passed", passed=1, branch="fix")
    assert stage.tasks(BROKEN) == []


def switch(stage: Stage, old: str, new: str) -> None:
    before, after = {"head": "c1", "branch": old}, {"head": "c1", "branch": new}
    stage.say("git.acted", verb="checkout", worktree=ROOT, before=before, after=after)
    stage.git(branch=new, head="c1")


def test_a_failure_on_a_branch_does_not_come_along_to_one_that_was_there(stage: Stage) -> None:
    stage.git(branch="main", head="c1")
    stage.check("passed", passed=1)
    switch(stage, "main", "topic")
    stage.check("failed", failed=1, branch="topic")
    switch(stage, "topic", "main")
    assert stage.tasks(BROKEN) == []
    switch(stage, "main", "topic")
    assert stage.tasks(BROKEN) == ["1 test failing"]


def test_a_part_by_another_command_closes_when_it_names_the_same_files(stage: Stage) -> None:
    """Mocha names tests without their file; what was asked for tells that it is included."""
    stage.check("failed", "mocha", failed=1, operands=["test/a.js"], command="npm test", failures=["cart adds"])
    part = {"selection": "part", "operands": ["test/a.js"], "command": "mocha -R dot test/a.js"}
    stage.check("passed", "mocha", passed=3, **part)
    assert stage.tasks(BROKEN) == []


def test_the_same_content_passed_on_another_branch(stage: Stage) -> None:
    stage.check("failed", failed=1, content="f1")
    stage.check("passed", passed=1, branch="fix", content="f1")
    assert stage.tasks(BROKEN) == []


# ── validation ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("check", "left"),
    [
        ({"runner": "shellcheck", "kind": "lint", "selection": "part", "operands": ["x.sh"]}, {"a/a.py", "b/b.js"}),
        ({"runner": "ruff", "kind": "lint"}, {"b/b.js", "x.sh"}),
        ({"runner": "ruff", "kind": "lint", "folder": "b"}, {"a/a.py", "b/b.js", "x.sh"}),
        ({"runner": "eslint", "kind": "lint"}, {"a/a.py", "x.sh"}),
        ({"runner": "prettier", "kind": "format"}, {"a/a.py", "b/b.js", "x.sh"}),
        ({"runner": "unheard-of", "kind": "lint"}, {"a/a.py", "b/b.js", "x.sh"}),
        ({"runner": "pytest", "folder": "a"}, {"b/b.js", "x.sh"}),
        ({"runner": "pytest"}, {"b/b.js"}),
        ({"runner": "make"}, set()),
        ({"runner": "pytest", "selection": "part", "operands": ["a"]}, {"b/b.js", "x.sh"}),
        ({"runner": "pytest", "selection": "part", "operands": ["a", "-k"]}, {"a/a.py", "b/b.js", "x.sh"}),
        ({"runner": "pytest", "branch": "other", "commit": "c9"}, {"a/a.py", "b/b.js", "x.sh"}),
    ],
)
def test_validated_covers_only_what_was_checked(stage: Stage, check: dict[str, Any], left: set[str]) -> None:
    changed(stage, "a/a.py", "b/b.js", "x.sh")
    stage.check("passed", **check)
    assert unvalidated(stage) == left


def test_a_file_that_was_moved_here_is_a_change(stage: Stage) -> None:
    """`mv` keeps the time of modification; the inode's own time tells."""
    stage.check("passed", passed=1)
    moved = {"path": "a.py", "code": ".M", "modified": NOON - 10_000, "changed": stage.now + 500, "size": 1}
    stage.git(status="dirty", branch="main", count=1, files=[moved])
    assert unvalidated(stage) == {"a.py"}


# ── history ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        ("committed", "Committed without validation: 2 files"),
        ("stashed", "Stashed: 2 files"),
        ("moved", "Moved: 2 files"),
        ("discarded", "No longer changed: 2 files"),
    ],
)
def test_a_closed_task_says_where_the_content_went(stage: Stage, fate: str, words: str) -> None:
    changed(stage, "a.py", "b.py")
    facts = {**msgspec.to_builtins(stage.doc.git), "status": "clean", "head": "c2", "count": 0, "files": []}
    stage.say("project.observed", facts={"git": facts}, fates=dict.fromkeys(("a.py", "b.py"), fate))
    assert words in stage.history()
    assert not any(line.startswith("Done") for line in stage.history())


def test_what_was_validated_or_thrown_away_is_called_so(stage: Stage) -> None:
    changed(stage, "a.py")
    stage.check("passed", passed=1)
    assert "Validated: 1 file" in stage.history()
    changed(stage, "a.py")
    stage.check("failed", failed=1)
    stage.git(branch="main", head="c1")
    assert "No longer changed: 1 file" in stage.history()


def test_the_same_content_stays_validated_whatever_its_times_say(stage: Stage) -> None:
    """A stash that is popped writes its files again."""
    changed(stage, "a.py", content="f1")
    stage.check("passed", passed=1, content="f1")
    later = {"path": "a.py", "code": ".M", "modified": stage.now + 500, "changed": stage.now + 500, "size": 1}
    stage.git(status="dirty", branch="main", head="c1", count=1, files=[later], content="f1")
    assert unvalidated(stage) == set()
    stage.git(status="dirty", branch="main", head="c1", count=1, files=[later], content="f2")
    assert unvalidated(stage) == {"a.py"}


# ── dismissal ────────────────────────────────────────────────────────────────────────────────────────────────────────


def dismiss(stage: Stage, type_: str, reason: str = "known") -> None:
    task = stage.gaps()[type_]
    stage.say("project.task_dismissed", type=task.type, key=task.key, basis=task.basis, id=task.id, reason=reason)


def test_a_dismissed_failure_returns_when_the_content_changed_and_it_fails_again(stage: Stage) -> None:
    stage.check("failed", failed=2, content="f1")
    dismiss(stage, BROKEN, "it needs the network")
    assert stage.tasks(BROKEN) == []
    assert stage.history()[0] == "Dismissed: 2 tests failing (it needs the network)"
    stage.check("failed", failed=2, content="f1")
    assert stage.tasks(BROKEN) == [], "the same content failed again"
    stage.check("failed", failed=2)
    assert stage.tasks(BROKEN) == [], "that the content changed is not known"
    stage.check("failed", failed=1, content="f2", selection="part", operands=["t.py"])
    assert stage.tasks(BROKEN) == ["2 tests failing"]


def test_a_dismissed_task_of_any_kind_stays_away_while_nothing_changes(stage: Stage) -> None:
    changed(stage, "a.py")
    dismiss(stage, "unvalidated_changes")
    changed(stage, "a.py", newest_change=NOON)
    assert stage.tasks("unvalidated_changes") == []
    changed(stage, "a.py", "b.py")
    assert stage.tasks("unvalidated_changes") == ["2 uncommitted files need validation"]


def test_a_session_that_left_is_over_here_too(stage: Stage) -> None:
    details = [{"gate": "refused", "requirements": [{"name": "plan"}]}]
    stage.say("decision.made", session="s-9", tool="Edit", verdict="deny", details=details, of_kind="tool.started")
    assert "unsatisfied_gates" in stage.gaps()
    stage.say("session.left", session="s-9")
    assert "unsatisfied_gates" not in stage.gaps()
