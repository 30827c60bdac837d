"""The last significant changes of a project, in words. All of them are in the log; the document keeps twenty."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.core.ports import Doc
from holdfast.features.project.check_results import summarise_tests
from holdfast.features.project.model import HISTORY, number, plural
from holdfast.features.project.validation import area_of, check_runs, unvalidated

Line = Mapping[str, Any]
LONGEST_SUMMARY = 300


def with_line(doc: Doc, at: int, pid: int, line: Line) -> Doc:
    """Newest first, as in the seed's example."""
    summary = " ".join(str(line["summary"]).split())[:LONGEST_SUMMARY]
    entry = {"timestamp": at, **line, "summary": summary}
    if pid:
        entry["changed_by_process"] = pid
    return {**doc, "history": [entry, *doc["history"]][:HISTORY]}


def with_changes(before: Doc, after: Doc, at: int, pid: int) -> Doc:
    """Lines for whatever of the facts changed in a way a person would mention."""
    for section, summary in (*_git(before, after), *_tests(before, after), *_others(before, after)):
        line = {"change_type": "state_update", "section": f"CURRENT_STATE.{section}", "summary": summary}
        after = with_line(after, at, pid, line)
    return after


def _git(before: Doc, after: Doc) -> Iterator[tuple[str, str]]:
    old, new = before["git"], after["git"]
    if new is old or not new:
        return
    if not old:
        yield (
            "git",
            f"First look: {new.get('branch') or 'no branch'}, {plural(number(new.get('count')), 'uncommitted file')}",
        )
        return
    if new.get("branch") != old.get("branch"):
        yield "git.branch", f"Now on {new.get('branch') or 'no branch'} (was {old.get('branch') or 'no branch'})"
    head, last = new.get("head"), new.get("last") or {}
    if head and head != old.get("head"):
        yield "git.last_commit", f"{head[:12]} {last.get('subject', '')}"
    elif number(new.get("ahead")) < number(old.get("ahead")):
        yield "git.commits_ahead", f"Pushed: {new.get('ahead')} ahead (was {old.get('ahead')})"
    if new.get("doing") != old.get("doing"):
        yield "git.status", f"Began a {new['doing']}" if new.get("doing") else f"The {old.get('doing')} is over"
    yield from _uncommitted(old, new, _noun(after))


def _noun(doc: Doc) -> str:
    """What all changed files are called, where they are all of one area."""
    areas = doc["rules"].get("areas") or {}
    found = {area_of(file["path"], areas) for file in doc["git"].get("files") or ()}
    return str((areas.get(found.pop()) or {}).get("noun") or "files") if len(found) == 1 else "files"


def _uncommitted(old: Mapping[str, Any], new: Mapping[str, Any], noun: str) -> Iterator[tuple[str, str]]:
    had, has = number(old.get("count")), number(new.get("count"))
    if has > had:
        one, many = f"new uncommitted {noun.removesuffix('s')}", f"new uncommitted {noun}"
        what = plural(has - had, one, many)
        yield "git.uncommitted_files", f"Added {what}" + (f" ({has} in all)" if had else "")
    elif has < had:
        yield "git.uncommitted_files", f"{plural(had - has, 'file')} no longer uncommitted ({has} left)"


def _tests(before: Doc, after: Doc) -> Iterator[tuple[str, str]]:
    if before["results"] is after["results"]:
        return
    old, new = (summarise_tests(check_runs(doc)) for doc in (before, after))
    if (old.status, old.failed) == (new.status, new.failed):
        return
    if new.status == "passing":
        yield "tests", "Tests passing" + (f", {new.passed} of {new.total}" if new.total else "")
    elif new.status == "failing":
        yield "tests", f"{plural(new.failed, 'test')} failing"


def _others(before: Doc, after: Doc) -> Iterator[tuple[str, str]]:
    for name, tree in after["trees"].items():
        had = (before["trees"].get(name) or {}).get("in_sync")
        if had is not None and tree.get("in_sync") is not None and tree["in_sync"] != had:
            yield f"filesystem.{name}", f"{name} is {'in sync again' if tree['in_sync'] else 'no longer in sync'}"
    old, new = before["notion"].get("sync_status"), after["notion"].get("sync_status")
    if new and new != old:
        yield "notion_workspace", f"Notion: {new}" + (f" (was {old})" if old else "")
    spent, had_spent = (_percent_spent(doc) for doc in (after, before))
    for mark in (80, 100):
        if had_spent < mark <= spent:
            yield "token_budget", f"{mark} % of the token budget is used"


def _percent_spent(doc: Doc) -> int:
    limit = number(doc["tokens"].get("limit"))
    return number(doc["tokens"].get("used")) * 100 // limit if limit else 0


# ── how a task closed ────────────────────────────────────────────────────────────────────────────────────────────────


def closing_line(before: Doc, after: Doc, task: Mapping[str, Any]) -> dict[str, Any] | None:
    """What happened to it, in true words; None when it is only out of sight, e.g. on another branch."""
    dismissed = after["dismissed"].get(f"{task['type']} {task['key']}")
    if dismissed and dismissed["basis"] == task["basis"]:
        summary = f"Dismissed: {task['description']} ({dismissed['reason']})"
        return {"change_type": "task_dismissed", "task_id": task["id"], "summary": summary}
    summary = CLOSINGS.get(task["type"], _done)(before, after, task)
    return {"change_type": "task_completed", "task_id": task["id"], "summary": summary} if summary else None


def _done(_before: Doc, _after: Doc, task: Mapping[str, Any]) -> str:
    return f"Done: {task['description']}"


def _tests_closed(before: Doc, after: Doc, task: Mapping[str, Any]) -> str:
    if before["git"].get("branch") != after["git"].get("branch"):
        return ""
    return f"Passing again: {_lower(task['description'])} before" if before["results"] != after["results"] else ""


def _start_closed(before: Doc, after: Doc, task: Mapping[str, Any]) -> str:
    return f"Started since: {_lower(task['description'])}" if before["results"] != after["results"] else ""


def _validation_closed(before: Doc, after: Doc, task: Mapping[str, Any]) -> str:
    """Validated, committed without validation, or no longer changed: which of them, for the files it was about."""
    areas = before["rules"].get("areas") or {}
    about = {str(file["path"]) for file in unvalidated(before) if area_of(str(file["path"]), areas) == task["key"]}
    left = {str(file["path"]) for file in after["git"].get("files") or ()}
    gone, validated = about - left, about & left
    if not gone:
        return f"Validated: {plural(len(validated), 'file')}" if validated else _done(before, after, task)
    how = _how_they_went(before, after)
    return f"{how}: {plural(len(gone), 'file')}" + (f"; validated: {len(validated)}" if validated else "")


def _how_they_went(before: Doc, after: Doc) -> str:
    """A commit is what git showed as one; another head alone may be a pull or another branch."""
    head = after["git"].get("head")
    if head and head in after.get("commits", ()):
        return "Committed without validation"
    return "No longer changed" if before["git"].get("head") == head else "No longer uncommitted, without validation"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


CLOSINGS = {
    "broken_tests": _tests_closed,
    "tests_not_started": _start_closed,
    "unvalidated_changes": _validation_closed,
}
