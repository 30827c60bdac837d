"""Tasks are gaps with a number that stays while the gap lasts; the last twenty changes are history."""

from collections.abc import Callable, Iterator

import msgspec

from holdfast.core.kinds.project_events import GitFacts
from holdfast.features.project.document.text import count_with_noun
from holdfast.features.project.gaps import open_gaps
from holdfast.features.project.state import MAX_HISTORY, HistoryLine, Project, Task
from holdfast.features.project.state.check_results import area_of, check_runs, summarise_tests, unvalidated_files

# The last significant changes of a project, in words. All of them are in the log; the document keeps twenty.

MAX_SUMMARY = 300


def with_line(doc: Project, at: int, pid: int, line: HistoryLine) -> Project:
    """Newest first, as in the documented example."""
    summary = " ".join(line.summary.split())[:MAX_SUMMARY]
    entry = msgspec.structs.replace(line, timestamp=at, summary=summary, process=pid)
    return msgspec.structs.replace(doc, history=[entry, *doc.history][:MAX_HISTORY])


def with_changes(before: Project, after: Project, at: int, pid: int) -> Project:
    """Lines for whatever of the facts changed in a way a person would mention."""
    for section, summary in (*_git_lines(before, after), *_test_lines(before, after), *_other_lines(before, after)):
        after = with_line(after, at, pid, HistoryLine(section=f"CURRENT_STATE.{section}", summary=summary))
    return after


Lines = Iterator[tuple[str, str]]


def _git_lines(before: Project, after: Project) -> Lines:
    old, new = before.git, after.git
    # The very same object: the event was not about git.
    if new is old or not new.was_read:
        return
    if not old.was_read:
        yield "git", f"First look: {new.branch or 'no branch'}, {count_with_noun(new.count, 'uncommitted file')}"
        return
    if new.branch != old.branch:
        yield "git.branch", f"Now on {new.branch or 'no branch'} (was {old.branch or 'no branch'})"
    yield from _commit_lines(old, new)
    if new.doing != old.doing:
        yield "git.status", f"Began a {new.doing}" if new.doing else f"The {old.doing} is over"
    yield from _uncommitted_lines(old, new, _file_noun(after))


def _commit_lines(old: GitFacts, new: GitFacts) -> Lines:
    # A new commit explains a smaller number ahead; only without one was something pushed.
    if new.head and new.head != old.head:
        yield "git.last_commit", f"{new.head[:12]} {new.last.subject if new.last else ''}"
    elif new.ahead < old.ahead:
        yield "git.commits_ahead", f"Pushed: {new.ahead} ahead (was {old.ahead})"


def _file_noun(doc: Project) -> str:
    """What all changed files are called, where they are all of one area."""
    areas = doc.rules.areas
    area_names = {area_of(file.path, areas) for file in doc.git.files}
    area = areas.get(area_names.pop()) if len(area_names) == 1 else None
    return area.noun or "files" if area else "files"


def _uncommitted_lines(old: GitFacts, new: GitFacts, noun: str) -> Lines:
    if new.count > old.count:
        one, many = f"new uncommitted {noun.removesuffix('s')}", f"new uncommitted {noun}"
        what = count_with_noun(new.count - old.count, one, many)
        yield "git.uncommitted_files", f"Added {what}" + (f" ({new.count} in all)" if old.count else "")
    elif new.count < old.count:
        what = count_with_noun(old.count - new.count, "file")
        yield "git.uncommitted_files", f"{what} no longer uncommitted ({new.count} left)"


def _test_lines(before: Project, after: Project) -> Lines:
    # The very same list: no check was added.
    if before.results is after.results:
        return
    old, new = (summarise_tests(check_runs(doc)) for doc in (before, after))
    if (old.status, old.failed) == (new.status, new.failed):
        return
    if new.status == "passing":
        yield "tests", "Tests passing" + (f", {new.passed} of {new.total}" if new.total else "")
    elif new.status == "failing":
        yield "tests", f"{count_with_noun(new.failed, 'test')} failing"


def _other_lines(before: Project, after: Project) -> Lines:
    for name, tree in after.trees.items():
        was_in_sync = before.trees[name].in_sync if name in before.trees else None
        if {was_in_sync, tree.in_sync} == {True, False}:
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
    summary = CLOSINGS.get(task.type, _done_line)(before, after, task)
    return HistoryLine(change_type="task_completed", task_id=task.id, summary=summary) if summary else None


def _done_line(_before: Project, _after: Project, task: Task) -> str:
    return f"Done: {task.description}"


def _tests_closed(before: Project, after: Project, task: Task) -> str:
    # On another branch the failure is only out of sight.
    if before.git.branch != after.git.branch or before.results == after.results:
        return ""
    return f"Passing again: {_lower_first(task.description)} before"


def _validation_closed(before: Project, after: Project, task: Task) -> str:
    """Validated, committed without validation, or no longer changed: which of them, for the files it was about."""
    about = {file.path for file in unvalidated_files(before) if area_of(file.path, before.rules.areas) == task.key}
    left = {file.path for file in after.git.files}
    gone, validated = about - left, about & left
    if not gone:
        return f"Validated: {count_with_noun(len(validated), 'file')}" if validated else _done_line(before, after, task)
    ways = [*_how_they_went(after, gone), *([("validated", len(validated))] if validated else [])]
    (how, count), *more = ways
    return "; ".join([f"{how}: {count_with_noun(count, 'file')}", *(f"{_lower_first(name)}: {n}" for name, n in more)])


WAYS = {
    "committed": "Committed without validation",
    "stashed": "Stashed",
    "moved": "Moved",
    "discarded": "No longer changed",
}


def _how_they_went(after: Project, gone: set[str]) -> list[tuple[str, int]]:
    """By where the content was found."""
    fates = [after.fates.get(path, "discarded") for path in gone]
    return [(words, fates.count(fate)) for fate, words in WAYS.items() if fate in fates]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


CLOSINGS: dict[str, Callable[[Project, Project, Task], str]] = {
    "broken_tests": _tests_closed,
    "tests_not_started": lambda before, after, task: (
        f"Started since: {_lower_first(task.description)}" if before.results != after.results else ""
    ),
    "unvalidated_changes": _validation_closed,
}


# Tasks are gaps with a number: the number stays while the gap lasts, and the task closes when the gap does.

SECTIONS = {"P0": "P0_blockers", "P1": "P1_urgent", "P2": "P2_maintenance", "P3": "P3_improvements"}
# Tasks beyond this are left out; the most pressing come first.
MAX_TASKS = 200


def update_tasks(before: Project, doc: Project, at: int, pid: int = 0) -> Project:
    """The same facts with the tasks they mean at this moment, and a line of history for each that closed."""
    tasks, next_task = _numbered_tasks(doc, at)
    still_open = {task.identity for task in tasks}
    closed = [task for task in doc.tasks if task.identity not in still_open]
    if not closed and tasks == doc.tasks:
        return doc
    after = msgspec.structs.replace(doc, tasks=tasks, next_task=next_task)
    for task in closed:
        if line := closing_line(before, after, task):
            after = with_line(after, at, pid, line)
    return after


def _numbered_tasks(doc: Project, at: int) -> tuple[list[Task], int]:
    """(the open gaps with their numbers, the next number)"""
    known = {task.identity: task for task in doc.tasks}
    number, tasks = doc.next_task, []
    for gap in open_gaps(doc, at)[:MAX_TASKS]:
        task = known.get(gap.identity)
        id_, discovered_at = (task.id, task.discovered_at) if task else (f"task_{number:03}", at)
        tasks.append(Task(id=id_, discovered_at=discovered_at, **msgspec.structs.asdict(gap)))
        number += task is None
    return tasks, number


def tasks_at(doc: Project, at: int) -> Project:
    """For reading: the tasks as they are at this moment, where only time went by."""
    return update_tasks(doc, doc, at)


def is_due(doc: Project, now: int) -> bool:
    """Whether the passing of time alone opened or closed a gap since the tasks were last made."""
    return {gap.identity for gap in open_gaps(doc, now)[:MAX_TASKS]} != {task.identity for task in doc.tasks}


def by_section(tasks: list[Task]) -> dict[str, list[Task]]:
    return {name: [task for task in tasks if task.priority == level] for level, name in SECTIONS.items()}
