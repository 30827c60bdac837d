"""What an event means for a project, as events of its own; who is warned; what is looked at because of it. Pure."""

from collections.abc import Iterator

import msgspec

from holdfast.core.decision import Decision, deny, tell
from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.ports import Doc
from holdfast.features.project import activity, leases
from holdfast.features.project.model import ACTIVITY, LEASES, MINUTE, PROJECT, following, project_ref
from holdfast.features.project.settings import DEFAULTS, ProjectSettings
from holdfast.features.project.validation import proven_areas

ENDS = frozenset(("tool.finished", "tool.exit_read"))
"""The last is told by the feature sessions, of the time when the command ended."""
MOST_CHANGED = 8
"""Projects told of one change of a lease."""

# ── follow ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def derive(state: State, event: Event, settings: ProjectSettings | None) -> Iterator[Event]:
    kind = event.kind
    if kind in leases.TABLE:
        yield from _lease_changed(state.get(LEASES.kind, LEASES.key), event)
    elif kind in ENDS and event.data.get("action") == "shell":
        yield from _area_proven(event, settings or DEFAULTS)
    elif kind == "git.acted":
        yield from _commit_seen(state, event)
    elif kind == "turn.ended":
        yield from _turn_summed(state, event)


def _area_proven(event: Event, settings: ProjectSettings) -> Iterator[Event]:
    patterns = settings.proofs()
    if patterns and (what := proven_areas(event, patterns)):
        since = event.at - int(event.data.ms or 0)
        yield following(event, "project.validated", what=what, command=event.data.command[:200], since=since)


def _commit_seen(state: State, event: Event) -> Iterator[Event]:
    commit = (_activity(state, event) or {}).get("commit") or {}
    if commit.get("seq") == event.seq:
        yield following(event, "project.commit_seen", commands=commit["commands"], first_edit=commit["first_edit"])


def _turn_summed(state: State, event: Event) -> Iterator[Event]:
    session = ((_activity(state, event) or {}).get("sessions") or {}).get(event.session) or {}
    turn = session.get("turn") or {}
    if turn.get("over") == event.seq and turn["areas"]:
        yield following(event, "project.turn_summed", areas=turn["areas"], commands=turn["ran"])


def _activity(state: State, event: Event) -> Doc | None:
    return state.get(ACTIVITY, activity_key(event)) if event.project else None


def activity_key(event: Event) -> str:
    return project_ref(event.project).key


def _lease_changed(table: Doc | None, event: Event) -> Iterator[Event]:
    """Each project that has to do with it gets the lock into its own document."""
    name = str(event.get("name") or "")
    lease = (table or leases.empty())["leases"].get(name) or {}
    lock = leases.lock(lease)
    concerned = [event.project, *(entry["project"] for entry in lease.get("holders") or ())]
    for project in list(dict.fromkeys(p for p in concerned if p))[:MOST_CHANGED]:
        freed = {"freed": str(event.get("why"))} if event.kind == "project.lease_freed" else {}
        changed = following(event, "project.lease_changed", name=name, lock=lock, **freed)
        yield msgspec.structs.replace(changed, project=project)


# ── decide ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def can_decide(kind: str, settings: ProjectSettings | None) -> bool:
    return kind == "session.started" or (kind == "tool.started" and (settings or DEFAULTS).edits != "off")


def decide(state: State, event: Event, settings: ProjectSettings | None) -> Decision | None:
    settings = settings or DEFAULTS
    if not can_decide(event.kind, settings):
        return None
    if event.kind == "session.started":
        return _what_needs_doing(state, event, settings.told_tasks)
    return _edited_elsewhere(state, event, settings) if event.data.get("action") == "edit" else None


def _what_needs_doing(state: State, event: Event, most: int) -> Decision | None:
    """A session begins with the same list that everybody else reads."""
    doc = state.get(PROJECT, project_ref(event.project).key) if event.project and most else None
    tasks = (doc or {}).get("tasks") or []
    if not tasks:
        return None
    lines = [f"- {task['priority']} {task['id']}: {task['description']}" for task in tasks[:most]]
    more = [f"and {len(tasks) - most} more: holdfast task list"] if len(tasks) > most else []
    head = "Open tasks of this project, derived from its state (holdfast task why ID says when one is done):"
    return tell("project", "\n".join([head, *lines, *more]), weight=60)


def _edited_elsewhere(state: State, event: Event, settings: ProjectSettings) -> Decision | None:
    doc = _activity(state, event)
    within = settings.edit_minutes * MINUTE
    for path in event.data.get("paths") or ():
        if found := activity.other_editor(doc, path, event.session, event.at, within):
            return _trampling(path, *found, event.at, settings.edits)
    return None


def _trampling(path: str, pid: int, at: int, now: int, what: str) -> Decision:
    minutes = max(1, (now - at) // MINUTE)
    who = f"process {pid}" if pid else "another session"
    text = (
        f"{path} was edited {minutes} min ago by another session that is still open ({who}). "
        "Read the file again before changing it; to work undisturbed, hold a lease: holdfast lease run NAME -- COMMAND."
    )
    return deny(text) if what == "deny" else tell("project", text, weight=80)


# ── enqueue ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SOON = frozenset(("turn.ended", "session.started", "session.ended", "prompt.submitted"))
SOON_MS = 200
SLOW_MS = 5_000
"""Trees and the branch's own differences may be large: they are looked at less often."""


def enqueue(_state: State, event: Event, settings: ProjectSettings | None) -> Iterator[Job]:
    settings = settings or DEFAULTS
    if not event.project.startswith("/"):
        return
    kind = event.kind
    if kind in SOON or kind in ("check.finished", "git.acted"):
        yield _look("project.refresh", event, SOON_MS)
    elif kind == "project.look_asked":
        yield from _everything(event, settings)
    elif kind == "tool.finished" and event.data.get("action") in ("edit", "shell"):
        yield _look("project.refresh", event, int(settings.refresh_s * 1000))
        if settings.trees:
            yield _look("project.trees", event, SLOW_MS)
    elif kind == "project.observed":
        yield from _after_a_look(event, settings)
    elif kind in ("project.task_added", "project.task_done", "project.task_dismissed", "project.override_set"):
        yield _look("project.refresh", event, SOON_MS)
        yield from _notion(event, settings)


def _everything(event: Event, settings: ProjectSettings) -> Iterator[Job]:
    yield _look("project.refresh", event, 0)
    yield _look("project.scan", event, SOON_MS)
    if settings.trees:
        yield _look("project.trees", event, 0)
    if settings.checks:
        yield _look("project.checks", event, 0)
    yield from _notion(event, settings)


def _after_a_look(event: Event, settings: ProjectSettings) -> Iterator[Job]:
    facts = event.get("facts") or {}
    if "git" in facts:
        yield _look("project.scan", event, SLOW_MS)
        if settings.checks:
            yield _look("project.checks", event, SLOW_MS)
    if settings.trees and "rules" in facts:
        yield _look("project.trees", event, SOON_MS)
    yield from _notion(event, settings)


def _notion(event: Event, settings: ProjectSettings) -> Iterator[Job]:
    if settings.notion.database:
        yield _look("project.notion", event, SLOW_MS)


def _look(kind: str, event: Event, delay: int) -> Job:
    payload = {"project": event.project, "pid": event.data.get("pid") or 0, "session": event.session}
    return Job(kind=kind, dedupe=event.project, run_at=event.at + delay, payload=payload)
