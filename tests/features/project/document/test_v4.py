"""The version 4 document: what it says of itself, and what it never says."""

import re
from typing import Any

import msgspec
import pytest

from holdfast.core.kinds.project_events import Resolution
from holdfast.core.times import DAY, HOUR, MINUTE
from holdfast.features.project.document import work_context
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.files import document_text
from holdfast.features.project.state import Project
from tests.factories import NOON
from tests.features.project.stage import Stage


def test_no_agent_is_named() -> None:
    """S1-1, C6: what is true and what needs doing, by process ids; whoever did it is in the log."""
    text = document_text(project_document(Project(project="/p", at=NOON), NOON)).lower()
    assert not re.search(r"claude|codex|gemini|copilot|agent", text)


def test_its_metadata() -> None:
    """S1-2: the version, the time in UTC, and the project by its newest resolution, never the first one."""
    doc = Project(project="/p", at=NOON, resolution=Resolution(project="first"))
    found = project_document(doc, NOON)
    assert found["SCHEMA_VERSION"] == "4.0.0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["LAST_UPDATED"])
    assert found["PROJECT"] == "first"


def test_the_project_is_resolved_anew(stage: Stage) -> None:
    """S1-2: a later look that resolves it otherwise changes the name at once."""
    for name in ("engine", "brakes"):
        stage.observe(name=name, resolution={"project": name})
        assert stage.document["PROJECT"] == name


# Work context (S1-11): each rule with the evidence it goes by.

FILE = {"path": "src/a.py", "code": ".M", "modified": NOON - 10 * MINUTE, "size": 10}
FAILED = {"kind": "test", "runner": "pytest", "verdict": "failed", "at": NOON - HOUR, "passed": 2, "failed": 1}
PASSED = {**FAILED, "verdict": "passed", "began": NOON, "failed": 0}


def doc(modified: int = NOON - 10 * MINUTE, **changes: Any) -> Project:
    git = {"status": "dirty", "count": 1, "files": [{**FILE, "modified": modified}], "newest_change": modified}
    activity = {"began": modified, "last_edit": modified, "sessions": 1, "folders": ["src/"]}
    fields = {"project": "/home/u/engine", "git": git, "activity": activity, **changes}
    return msgspec.convert(fields, Project)


def explain(found: Project) -> dict[str, Any]:
    told = work_context.explain_uncommitted(found, NOON)
    assert told
    return told


def reason(found: Project) -> str:
    return str(explain(found)["reason"])


def test_recent_changes_are_work_in_progress() -> None:
    assert explain(doc()) == {
        "reason": "mid_refactor",
        "confidence": 0.8,
        "evidence": [
            "Files modified within last 2 hours",
            "User actively in engine directory",
            "No commit message drafted yet",
        ],
        "inferred_intent": "Changing 1 file in src/ before committing",
        "alternative_interpretations": [{"intent": "Forgot to commit", "confidence": 0.2}],
    }


def test_old_changes_were_forgotten_and_older_ones_more_surely() -> None:
    five_hours, two_days = (explain(doc(NOON - age)) for age in (5 * HOUR, 2 * DAY))
    assert five_hours["reason"] == two_days["reason"] == "forgotten"
    assert "Nothing was changed for more than a day" in two_days["evidence"]


def test_a_merge_explains_everything() -> None:
    found = doc()
    found.git.doing, found.git.conflicts = "merge", ["a.py"]
    told = explain(found)
    assert told["reason"] == "merge_in_progress"
    assert told["confidence"] > 0.85


def test_failing_tests_are_being_fixed() -> None:
    assert reason(doc(results=[FAILED])) == "fixing_tests"


def test_validated_changes_are_ready() -> None:
    assert reason(doc(results=[PASSED])) == "ready_to_commit"


def test_new_files_alone_are_an_alternative() -> None:
    found = doc()
    found.git.files[0].code = "??"
    told = explain(found)
    assert told["reason"] != "new_files"
    intents = [one["intent"] for one in told["alternative_interpretations"]]
    assert "Trying something new next to the existing code" in intents


def test_nothing_uncommitted_needs_no_reason() -> None:
    assert work_context.explain_uncommitted(doc(git={"count": 0}), NOON) is None


def test_shares_add_up() -> None:
    for age in (MINUTE, 3 * HOUR, 5 * HOUR, 3 * DAY):
        told = explain(doc(NOON - age, results=[FAILED]))
        total = told["confidence"] + sum(a["confidence"] for a in told["alternative_interpretations"])
        assert 0.85 <= total <= 1.02


CLEAN = {"status": "clean", "count": 0, "files": []}
PHASES = [
    ({"git": {**CLEAN}}, "idle"),
    ({"git": {**CLEAN, "ahead": 2}}, "ready_to_push"),
    ({"git": {}}, "unknown"),
    ({}, "building"),
    ({"results": [FAILED]}, "fixing_tests"),
    ({"results": [{**PASSED, "kind": "lint", "runner": "ruff"}]}, "ready_to_commit"),
    ({"git": {**CLEAN, "doing": "rebase"}}, "rebase_in_progress"),
    ({"rules": {"phase": "phase_5_active"}}, "phase_5_active"),
]


@pytest.mark.parametrize(("changes", "phase"), PHASES)
def test_phases(changes: dict[str, Any], phase: str) -> None:
    assert work_context.find_phase(doc(**changes), NOON) == phase


def test_a_paused_phase() -> None:
    assert work_context.find_phase(doc(NOON - 3 * HOUR), NOON) == "paused"


@pytest.mark.parametrize(
    ("places", "kind"),
    [
        (["src/api/"], "development"),
        (["tests/"], "testing"),
        (["docs/en/"], "documentation"),
        ([".github/"], "infrastructure"),
    ],
)
def test_activities(places: list[str], kind: str) -> None:
    found = doc(activity={"began": NOON, "last_edit": NOON, "folders": places})
    assert work_context.find_activity(found, NOON)["type"] == kind


def test_an_activity_pauses_and_ends() -> None:
    assert work_context.find_activity(doc(), NOON)["status"] == "in_progress"
    assert work_context.find_activity(doc(NOON - HOUR), NOON)["status"] == "paused"
    assert work_context.find_activity(doc(NOON - HOUR, git=CLEAN), NOON)["status"] == "done"
    assert work_context.find_activity(Project(project="/x"), NOON)["status"] == "idle"
