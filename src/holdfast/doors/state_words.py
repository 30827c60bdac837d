"""The state of a project in sentences, and what changed in it since yesterday."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_CHANGES = 8
NAMES = {
    "CURRENT_STATE.git.branch": "branch", "CURRENT_STATE.git.last_commit.message": "last commit",
    "CURRENT_STATE.tests.status": "tests", "WORK_CONTEXT.current_phase": "phase",
}  # fmt: skip
"""Changes that a person wants to read about; the others follow from them."""
TESTS = {"passing": "The tests pass", "failing": "The tests fail", "not_run": "No test run is known"}


def state_sentences(document: Mapping[str, Any], open_tasks: int) -> list[str]:
    """Where it is, what git says, what the tests say, what is to do."""
    return [_git_sentence(document["CURRENT_STATE"]["git"]), _tests_sentence(document["CURRENT_STATE"]["tests"]),
            _task_sentence(document, open_tasks), _activity_sentence(document)]  # fmt: skip


def _git_sentence(git: Mapping[str, Any]) -> str:
    if not git.get("branch"):
        return "Its git state is not known."
    count = git["uncommitted_files"]["count"]
    changed = (
        "nothing is uncommitted" if not count else f"{count} {'file is' if count == 1 else 'files are'} uncommitted"
    )
    sides = [f"{git[f'commits_{side}']} {side}" for side in ("ahead", "behind") if git.get(f"commits_{side}")]
    return f"On branch {git['branch']}, {changed}{f' ({chr(44).join(sides)} of its remote)' if sides else ''}."


def _tests_sentence(tests: Mapping[str, Any]) -> str:
    said = TESTS.get(str(tests.get("status")), "What the tests say is not known")
    if not tests.get("total"):
        return f"{said}."
    failed = f", {tests['failed']} failed" if tests.get("failed") else ""
    return f"{said}: {tests['passed']} passed{failed}."


def _task_sentence(document: Mapping[str, Any], open_tasks: int) -> str:
    first = next((task for part in document.get("TASKS", {}).values() for task in part), None)
    if not first:
        return "Nothing needs doing."
    number = "One task is" if open_tasks == 1 else f"{open_tasks} tasks are"
    return f"{number} open; first: {str(first['description']).rstrip('.')}."


def _activity_sentence(document: Mapping[str, Any]) -> str:
    activity = document.get("WORK_CONTEXT", {}).get("current_activity", {})
    if activity.get("status") != "in_progress":
        return "Nothing is going on in it now."
    return f"Work is going on: {str(activity.get('type', '')).replace('_', ' ')}."


def change_sentences(differences: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(_changes(differences))[:MOST_CHANGES]


def _changes(differences: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in differences:
        before, after = _brief(one["before"]), _brief(one["after"])
        if one["path"] in NAMES:
            yield f"{NAMES[one['path']]}: {before} → {after}"
        elif one["path"].startswith("TASKS") and one["before"] is None:
            yield f"New task: {after}"
        elif one["path"].startswith("TASKS") and one["after"] is None:
            yield f"Task done: {before}"


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("description") or value.get("message") or value.get("hash") or "changed")
    return "nothing" if value in (None, "") else str(value).replace("_", " ")
