"""The last significant changes of a project, in words. All of them are in the log; the document keeps twenty."""

from collections.abc import Callable, Iterator

import msgspec

from holdfast.core.kinds.project_events import GitFacts
from holdfast.features.project.document.text import plural
from holdfast.features.project.state import MAX_HISTORY, HistoryLine, Project, Task
from holdfast.features.project.tasks.check_results import summarise_tests
from holdfast.features.project.tasks.validation import area_of, check_runs, unvalidated_files

MAX_SUMMARY = 300


def with_line(doc: Project, at: int, pid: int, line: HistoryLine) -> Project:
    """Newest first, as in the documented example."""
    summary = " ".join(line.summary.split())[:MAX_SUMMARY]
    entry = msgspec.structs.replace(line, timestamp=at, summary=summary, process=pid)
    return msgspec.structs.replace(doc, history=[entry, *doc.history][:MAX_HISTORY])


def with_changes(before: Project, after: Project, at: int, pid: int) -> Project:
    """Lines for whatever of the facts changed in a way a person would mention."""
    for section, summary in (*_git(before, after), *_tests(before, after), *_others(before, after)):
        after = with_line(after, at, pid, HistoryLine(section=f"CURRENT_STATE.{section}", summary=summary))
    return after


Lines = Iterator[tuple[str, str]]


def _git(before: Project, after: Project) -> Lines:
    old, new = before.git, after.git
    if new is old or not new.seen:
        return
    if not old.seen:
        yield "git", f"First look: {new.branch or 'no branch'}, {plural(new.count, 'uncommitted file')}"
        return
    if new.branch != old.branch:
        yield "git.branch", f"Now on {new.branch or 'no branch'} (was {old.branch or 'no branch'})"
    if new.head and new.head != old.head:
        yield "git.last_commit", f"{new.head[:12]} {new.last.subject if new.last else ''}"
    elif new.ahead < old.ahead:
        yield "git.commits_ahead", f"Pushed: {new.ahead} ahead (was {old.ahead})"
    if new.doing != old.doing:
        yield "git.status", f"Began a {new.doing}" if new.doing else f"The {old.doing} is over"
    yield from _uncommitted(old, new, _noun(after))


def _noun(doc: Project) -> str:
    """What all changed files are called, where they are all of one area."""
    areas = doc.rules.areas
    found = {area_of(file.path, areas) for file in doc.git.files}
    area = areas.get(found.pop()) if len(found) == 1 else None
    return area.noun or "files" if area else "files"


def _uncommitted(old: GitFacts, new: GitFacts, noun: str) -> Lines:
    if new.count > old.count:
        one, many = f"new uncommitted {noun.removesuffix('s')}", f"new uncommitted {noun}"
        what = plural(new.count - old.count, one, many)
        yield "git.uncommitted_files", f"Added {what}" + (f" ({new.count} in all)" if old.count else "")
    elif new.count < old.count:
        what = plural(old.count - new.count, "file")
        yield "git.uncommitted_files", f"{what} no longer uncommitted ({new.count} left)"


def _tests(before: Project, after: Project) -> Lines:
    if before.results is after.results:
        return
    old, new = (summarise_tests(check_runs(doc)) for doc in (before, after))
    if (old.status, old.failed) == (new.status, new.failed):
        return
    if new.status == "passing":
        yield "tests", "Tests passing" + (f", {new.passed} of {new.total}" if new.total else "")
    elif new.status == "failing":
        yield "tests", f"{plural(new.failed, 'test')} failing"


def _others(before: Project, after: Project) -> Lines:
    for name, tree in after.trees.items():
        old = before.trees.get(name)
        if old and None not in (old.in_sync, tree.in_sync) and tree.in_sync != old.in_sync:
            yield f"filesystem.{name}", f"{name} is {'in sync again' if tree.in_sync else 'no longer in sync'}"
    was, now = before.notion.sync_status, after.notion.sync_status
    if now and now != was:
        yield "notion_workspace", f"Notion: {now}" + (f" (was {was})" if was else "")
    for mark in (80, 100):
        if _percent_spent(before) < mark <= _percent_spent(after):
            yield "token_budget", f"{mark} % of the token budget is used"


def _percent_spent(doc: Project) -> int:
    return doc.usage.used * 100 // doc.usage.limit if doc.usage.limit else 0


# ── how a task closed ────────────────────────────────────────────────────────────────────────────────────────────────


def closing_line(before: Project, after: Project, task: Task) -> HistoryLine | None:
    """What happened to it, in true words; None when it is only out of sight, e.g. on another branch."""
    dismissed = after.dismissed.get(task.identity)
    if dismissed and dismissed.basis == task.basis:
        summary = f"Dismissed: {task.description} ({dismissed.reason})"
        return HistoryLine(change_type="task_dismissed", task_id=task.id, summary=summary)
    summary = CLOSINGS.get(task.type, _done)(before, after, task)
    return HistoryLine(change_type="task_completed", task_id=task.id, summary=summary) if summary else None


def _done(_before: Project, _after: Project, task: Task) -> str:
    return f"Done: {task.description}"


def _tests_closed(before: Project, after: Project, task: Task) -> str:
    if before.git.branch != after.git.branch or before.results == after.results:
        return ""
    return f"Passing again: {_lower(task.description)} before"


def _start_closed(before: Project, after: Project, task: Task) -> str:
    return f"Started since: {_lower(task.description)}" if before.results != after.results else ""


def _validation_closed(before: Project, after: Project, task: Task) -> str:
    """Validated, committed without validation, or no longer changed: which of them, for the files it was about."""
    about = {file.path for file in unvalidated_files(before) if area_of(file.path, before.rules.areas) == task.key}
    left = {file.path for file in after.git.files}
    gone, validated = about - left, about & left
    if not gone:
        return f"Validated: {plural(len(validated), 'file')}" if validated else _done(before, after, task)
    how = _how_they_went(before, after)
    return f"{how}: {plural(len(gone), 'file')}" + (f"; validated: {len(validated)}" if validated else "")


def _how_they_went(before: Project, after: Project) -> str:
    """A commit is what git showed as one; another head alone may be a pull or another branch."""
    head = after.git.head
    if head and head in after.commits:
        return "Committed without validation"
    return "No longer changed" if before.git.head == head else "No longer uncommitted, without validation"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


CLOSINGS: dict[str, Callable[[Project, Project, Task], str]] = {
    "broken_tests": _tests_closed,
    "tests_not_started": _start_closed,
    "unvalidated_changes": _validation_closed,
}
