"""Derived events, context for agents, and jobs of a project."""

# Pure.

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from holdfast.core.decision import Decision, context_decision, deny_decision
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.kinds import SESSION_ENDS, HookPayload
from holdfast.core.kinds.agent_events import SessionStarted
from holdfast.core.kinds.check_events import CheckFinished, GitActed, GitNoticed
from holdfast.core.kinds.project_events import (
    AreaValidated,
    CommitSeen,
    DocumentAdopted,
    LeaseChanged,
    LeaseFreed,
    LeasePayload,
    LookAsked,
    OverrideSet,
    ProjectObserved,
    TaskAdded,
    TaskDismissed,
    TaskDone,
    TurnSummed,
)
from holdfast.core.times import MINUTE, SECOND
from holdfast.features.project.events import REDUCED_KINDS
from holdfast.features.project.settings import DEFAULTS, ProjectSettings
from holdfast.features.project.state import (
    ACTIVITY,
    ALL,
    LEASES,
    PROJECT,
    Activity,
    Project,
    Task,
    TurnWork,
    habits,
    project_key,
)
from holdfast.features.project.state.check_results import proven_areas
from holdfast.features.project.state.leases import LEASE_KINDS, lock_of

COMMAND_ENDS = frozenset(("tool.finished", "tool.exit_read"))
"""The last comes from the feature sessions, with the time when the command ended."""
LOOKED_AT_SOON = frozenset(
    ("turn.ended", "session.started", "prompt.submitted", CheckFinished.KIND, GitActed.KIND, GitNoticed.KIND)
)
SAID_BY_A_PERSON = frozenset(
    (DocumentAdopted.KIND, TaskAdded.KIND, TaskDone.KIND, TaskDismissed.KIND, OverrideSet.KIND)
)
SUBSCRIBED_KINDS = (
    REDUCED_KINDS | LEASE_KINDS | habits.SUBSCRIBED_KINDS | COMMAND_ENDS | LOOKED_AT_SOON | {"tool.started"}
)
MOST_EDITORS = 3
# Characters of a session's id; ids that are ordered by time are alike in their first eight.
SHOWN_ID = 13
MAX_CONCERNED = 8
"""Projects that one change of a lease is copied to."""

# ── derive ───────────────────────────────────────────────────────────────────────────────────────────────────────────


DERIVED_FROM = LEASE_KINDS | COMMAND_ENDS | {"turn.ended"}


def derive(state: State, event: Event, settings: ProjectSettings | None) -> Iterator[Event]:
    kind = event.kind
    if kind in LEASE_KINDS:
        yield from _lease_changed(state, event)
    elif kind in COMMAND_ENDS and event.data.get("action") == "shell":
        yield from _area_validated(event, settings or DEFAULTS)
    elif kind == "turn.ended":
        yield from _turn_over(state, event)


def _area_validated(event: Event, settings: ProjectSettings) -> Iterator[Event]:
    patterns = settings.proofs()
    if not patterns:
        return
    data = event.data
    command, output, error = (str(data.get(name) or "") for name in ("command", "output", "error"))
    if areas := proven_areas(command, data.get("exit_code"), output, error, patterns):
        since = event.at - int(data.get("ms") or 0)
        proof = AreaValidated(what=areas, command=command[:200], since=since, pid=data.get("pid") or 0)
        yield derived_event(event, proof)


def _turn_over(state: State, event: Event) -> Iterator[Event]:
    """What the turn changed, ran and committed. With the turn: what is derived from a derived event is not heard."""
    doing = _project_activity(state, event)
    if doing is None:
        return
    turn = doing.sessions[event.session].turn if event.session in doing.sessions else TurnWork()
    if turn.over == event.seq and turn.areas:
        yield derived_event(event, TurnSummed(areas=turn.areas, commands=turn.commands))
    for commit in doing.commits:
        if commit.over == event.seq:
            seen = CommitSeen(commands=commit.commands, first_edit=commit.first_edit, committed_at=commit.at)
            yield derived_event(event, seen)


def _project_activity(state: State, event: Event) -> Activity | None:
    return ACTIVITY.get(state, project_key(event.project)) if event.project else None


def _lease_changed(state: State, event: Event) -> Iterator[Event]:
    """Each project that has to do with it gets the lock into its own document."""
    data: LeasePayload = event.data
    table = LEASES.get(state, ALL)
    lease = table.leases.get(data.name) if table else None
    freed = data.why if isinstance(data, LeaseFreed) else ""
    changed = derived_event(event, LeaseChanged(name=data.name, lock=lock_of(lease), freed=freed))
    concerned = [event.project, *(entry.project for entry in lease.holders)] if lease else [event.project]
    # The same event for each project, so that each document sees it under its own key.
    for project in list(dict.fromkeys(p for p in concerned if p))[:MAX_CONCERNED]:
        yield replace(changed, project=project)


# ── decide ───────────────────────────────────────────────────────────────────────────────────────────────────────────


DECIDED_ON = frozenset(("session.started", "tool.started"))


def can_decide(kind: str, settings: ProjectSettings | None) -> bool:
    return kind == "session.started" or (kind == "tool.started" and (settings or DEFAULTS).edits != "off")


def refuses_edits(settings: ProjectSettings | None) -> bool:
    return (settings or DEFAULTS).edits == "deny"


def decide(state: State, event: Event, settings: ProjectSettings | None) -> Decision | None:
    settings = settings or DEFAULTS
    if isinstance(event.data, SessionStarted):
        return _tell_tasks(state, event, event.data, settings.told_tasks)
    return _warn_of_other_editor(state, event, settings) if event.data.action == "edit" else None


def _tell_tasks(state: State, event: Event, data: SessionStarted, most: int) -> Decision | None:
    """A session begins with the same list that everybody else reads, and with how old each line is."""
    doc = PROJECT.get(state, project_key(event.project)) if event.project and most else None
    if doc is None or not doc.tasks:
        return None
    # `content` is the worktree's fingerprint as the hook saw it.
    unchanged = is_unchanged(doc, data)
    changed = not unchanged and bool(data.content.get("") and doc.git.content)
    looked_at = event.at if unchanged else doc.looked.get("git", 0)
    # What git showed before somebody changed the files is known to be outdated.
    tasks = [task for task in doc.tasks if not (changed and task.method == LOOK_AT_GIT)]
    lines = [_task_line(task, looked_at, event.at, changed=changed) for task in tasks[:most]]
    head = "Open tasks of this project, derived from its state (holdfast task why ID says when one is done):"
    text = "\n".join([head, *lines, *_left_out(len(tasks) - most, len(doc.tasks) - len(tasks))])
    return context_decision("project", text, weight=60)


def _left_out(more: int, outdated: int) -> Iterator[str]:
    if more > 0:
        yield f"and {more} more: holdfast task list"
    if outdated:
        yield f"{outdated} about files and commits left out, because files changed since: holdfast task list"


FRESH = 10 * SECOND
LOOK_AT_GIT = "git_status_check"


def is_unchanged(doc: Project, data: HookPayload) -> bool:
    """Whether the worktree, as it was seen with this event, is what the last look at it found."""
    content = data.content.get("", "")
    head = data.git.head if data.git else ""
    branch = data.git.branch if data.git else data.branch
    same_place = branch == (doc.git.current_branch or "") and head in ("", doc.git.head)
    return bool(content) and content == doc.git.content and same_place


def _task_line(task: Task, looked_at: int, now: int, *, changed: bool) -> str:
    """What was not looked at just now says when it was."""
    seen_at = task.seen_at or (looked_at if task.method == LOOK_AT_GIT else now)
    old = [f"as of {clock_time(seen_at)}"] if seen_at and (now - seen_at > FRESH or (changed and task.seen_at)) else []
    old += ["files changed since"] if changed and task.seen_at else []
    return f"- {task.priority} {task.id}: {task.description}" + (f" ({', '.join(old)})" if old else "")


def clock_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%H:%M")


def _warn_of_other_editor(state: State, event: Event, settings: ProjectSettings) -> Decision | None:
    doing = _project_activity(state, event)
    for path in event.data.paths:
        others = habits.other_editors(doing, path, event.session, event.at, settings.edit_minutes * MINUTE)
        if others:
            return _editor_warning(path, others, event.at, settings.edits)
    return None


def _editor_warning(path: str, others: Sequence[habits.OtherEditor], now: int, answer: str) -> Decision:
    who = "; ".join(_editor_text(one, now) for one in others[:MOST_EDITORS])
    more = f" and {len(others) - MOST_EDITORS} more" if len(others) > MOST_EDITORS else ""
    count = (
        "another session that is still open"
        if len(others) == 1
        else f"{len(others)} other sessions that are still open"
    )
    text = (
        f"{path} was edited by {count}: {who}{more}. "
        "Read the file again before changing it; to work undisturbed, hold a lease: holdfast lease run NAME -- COMMAND."
    )
    return deny_decision(text) if answer == "deny" else context_decision("project", text, weight=80)


def _editor_text(other: habits.OtherEditor, now: int) -> str:
    """`codex 01a1dde0, process 4711, 3 min ago, on “fix the login”`."""
    editor, minutes = other.editor, max(1, (now - other.at) // MINUTE)
    process = f"process {editor.pid}" if editor.pid else ""
    doing = f"on “{editor.doing}”" if editor.doing else ""
    name = f"{editor.agent} {other.session[:SHOWN_ID]}".strip()
    return ", ".join(filter(None, (name, process, f"{minutes} min ago", doing)))


# ── enqueue ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Milliseconds; jobs of a project are deduplicated, so events of one moment lead to one look.
SOON_MS = 200
SLOW_MS = 5_000
"""Trees and the branch's own differences may be large: they are looked at less often."""


REFRESHED_SOON = LOOKED_AT_SOON | SESSION_ENDS | SAID_BY_A_PERSON
ENQUEUED_FOR = REFRESHED_SOON | {LookAsked.KIND, ProjectObserved.KIND, "tool.finished"}


def enqueue(_state: State, event: Event, settings: ProjectSettings | None) -> Iterator[Job]:
    settings = settings or DEFAULTS
    # Jobs run in the project's folder: an event without one leads to none.
    if not event.project.startswith("/"):
        return
    if event.kind in REFRESHED_SOON:
        yield _look_job("project.refresh", event, SOON_MS)
        if event.kind in SAID_BY_A_PERSON:
            yield from _configured_looks(event, settings, trees=None, checks=None)
    elif isinstance(event.data, LookAsked):
        yield from _look_at_everything(event, settings)
    elif isinstance(event.data, ProjectObserved):
        yield from _look_further(event, event.data, settings)
    elif event.kind == "tool.finished" and event.data.action in ("edit", "shell"):
        yield _look_job("project.refresh", event, int(settings.refresh_s * 1000))
        if settings.trees:
            yield _look_job("project.trees", event, SLOW_MS)


def _look_at_everything(event: Event, settings: ProjectSettings) -> Iterator[Job]:
    yield _look_job("project.refresh", event, 0)
    if not event.data.quick:
        yield _look_job("project.scan", event, SOON_MS)
        yield from _configured_looks(event, settings, trees=0, checks=0)


def _look_further(event: Event, data: ProjectObserved, settings: ProjectSettings) -> Iterator[Job]:
    saw_git = data.facts.git is not None
    if saw_git:
        yield _look_job("project.scan", event, SLOW_MS)
    trees = SOON_MS if data.facts.rules is not None else None
    yield from _configured_looks(event, settings, trees=trees, checks=SLOW_MS if saw_git else None)


def _configured_looks(
    event: Event, settings: ProjectSettings, *, trees: int | None, checks: int | None
) -> Iterator[Job]:
    """Looks that the settings ask for, after so many milliseconds; None: not now."""
    if settings.checks and checks is not None:
        yield _look_job("project.checks", event, checks)
    if settings.trees and trees is not None:
        yield _look_job("project.trees", event, trees)
    if settings.notion.database:
        yield _look_job("project.notion", event, SLOW_MS)


def _look_job(kind: str, event: Event, delay: int) -> Job:
    payload = {"project": event.project, "pid": event.data.get("pid") or 0, "session": event.session}
    return Job(kind=kind, dedupe=event.project, run_at=event.at + delay, payload=payload)
