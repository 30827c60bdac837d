"""What people and tools may ask about a project."""

# Everything is read; nothing is decided here.

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.core.checks import Verdict
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds.check_events import CheckFinished, GitActed
from holdfast.core.kinds.project_events import ProjectObserved
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.replay import document_at
from holdfast.core.times import parse_moment
from holdfast.features.project.document import old_formats, schema
from holdfast.features.project.document.adoption import describe_adoption
from holdfast.features.project.document.text import count_with_noun
from holdfast.features.project.document.v4 import project_document, task_fields
from holdfast.features.project.files import document_text
from holdfast.features.project.gaps import PRIORITIES
from holdfast.features.project.jobs.refresh import load_project
from holdfast.features.project.looking import Looked, look_now, recorded_state
from holdfast.features.project.origins import show_origin
from holdfast.features.project.state import (
    ALL,
    LEASES,
    PROJECT,
    Lease,
    LeaseEntry,
    LeaseTable,
    Project,
    Task,
    project_ref,
)
from holdfast.features.project.state.check_results import check_runs, summarise_tests
from holdfast.features.project.state.leases import why_lost
from holdfast.features.project.state.task_list import SECTIONS, tasks_at

Fields = dict[str, Any]


def _project_root(call: Call) -> str:
    return str(call.args.get("project") or call.project)


def _asked_project(call: Call) -> Looked:
    """`recorded`: without a look, for lists of many projects."""
    root = _project_root(call)
    return recorded_state(call, root) if call.args.get("recorded") else look_now(call, root)


# ── the document ─────────────────────────────────────────────────────────────────────────────────────────────────────


def show_state(call: Call) -> Fields:
    """The document of now, or as it was at a moment (`at`: a time, or the number of an event)."""
    if call.args.get("at"):
        doc, now = _document_then(call, str(call.args["at"]))
        if not doc.at:
            raise CommandRefused(f"nothing was known of this project at {call.args['at']}")
        looked = Looked(doc, doc.looked.get("git", 0), is_current=False)
    else:
        looked, now = _asked_project(call), call.now
    document = project_document(looked.doc, now)
    more = {"root": looked.doc.project, "open": len(looked.doc.tasks), **looked.fields()}
    return {"document": document, "text": document_text(document), **more}


def _document_then(call: Call, when: str) -> tuple[Project, int]:
    """The document as the log had it then, and when that was."""
    from holdfast.features.project import FEATURE

    root = _project_root(call)
    seq, at = _event_at(call, when)
    doc: Project | None = document_at(FEATURE, call.reader, project_ref(root), seq)
    return doc or Project(project=root), at


def _event_at(call: Call, when: str) -> tuple[int, int]:
    # A number is an event, everything else a time.
    if when.isdecimal():
        event = call.reader.event(int(when))
        if not event:
            raise CommandRefused(f"there is no event {when}")
        return event.seq, event.at
    at = parse_moment(when, call.now)
    page = call.reader.events(EventQuery(until=at, newest=True, limit=1))
    return (page[-1].seq if page else 0), at


def diff_states(call: Call) -> Fields:
    """What differs between two moments: dotted path, before, after."""
    (old, old_at), (new, new_at) = (_state_at(call, name) for name in ("a", "b"))
    differences = list(schema.document_differences(project_document(old, old_at), project_document(new, new_at)))
    return {"a": old_at, "b": new_at, "differences": differences}


def _state_at(call: Call, name: str) -> tuple[Project, int]:
    when = str(call.args.get(name) or "now")
    return (_asked_project(call).doc, call.now) if when == "now" else _document_then(call, when)


def migrate_state(call: Call) -> Fields:
    """An old state, read already, as v4. What is observed here now fills in what v3 never knew."""
    state, doc = call.args.get("state"), _asked_project(call).doc
    if not isinstance(state, dict):
        raise CommandRefused("a state is a mapping of sections")
    document = old_formats.as_v4(state)
    if doc.git.was_read and call.args.get("observe", True):
        document = schema.filled_in(document, project_document(doc, call.now))
    return {"document": document, "text": document_text(document)}


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_tasks(call: Call) -> Fields:
    """Open tasks, the most pressing first, each with why it is there and when it is done."""
    looked = _asked_project(call)
    doc = looked.doc
    return {
        "project": doc.name,
        "root": doc.project,
        "known": doc.git.was_read,
        "tasks": [_shown_task(one) for one in doc.tasks],
        "sections": SECTIONS,
        **looked.fields(),
    }


def _shown_task(task: Task) -> Fields:
    more = {"priority": task.priority, "why": task.why, "key": task.key, "since": task.discovered_at}
    return {**task_fields(task), **more, "seen_at": task.seen_at}


def show_task(call: Call) -> Fields:
    task_id = str(call.args.get("id") or "")
    looked = _asked_project(call)
    doc = looked.doc
    if task := next((one for one in doc.tasks if one.id == task_id), None):
        return {**_shown_task(task), "open": True, **looked.fields()}
    if line := next((line for line in doc.history if line.task_id == task_id), None):
        return {"id": task_id, "open": False, "summary": line.summary, "done_at": line.timestamp, **looked.fields()}
    raise CommandRefused(f"there is no task {task_id!r}", fix="See: holdfast task list")


def next_task(call: Call) -> Fields:
    listed = list_tasks(call)
    tasks = listed["tasks"]
    more = {"left": len(tasks), **{name: listed[name] for name in ("known", "looked_at", "current", "news")}}
    return {"task": tasks[0] if tasks else None, **more}


def look_progress(call: Call) -> Fields:
    """Whether a look at this project is still to come, for those who wait for it."""
    root = _project_root(call)
    # Jobs of a project are deduplicated by its folder.
    waiting = [job for job in call.reader.jobs(1000) if job["kind"] == "project.refresh" and job["dedupe"] == root]
    error = next((job["error"] for job in waiting if job["error"]), "")
    return {
        "waiting": sum(not job["dead"] for job in waiting),
        "error": error,
        "known": load_project(call.reader, root).git.was_read,
    }


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_leases(call: Call) -> Fields:
    """Every lease with its holders and those who wait, and whether they are alive."""
    table = LEASES.load(call.reader, ALL) or LeaseTable()
    rows = [
        {
            "name": name,
            "holders": [_entry_fields(entry, call.now) for entry in lease.holders],
            "waiters": [_entry_fields(entry, call.now) for entry in lease.waiters],
        }
        for name, lease in sorted(table.leases.items())
    ]
    return {"leases": rows, "now": call.now}


def _entry_fields(entry: LeaseEntry, now: int) -> Fields:
    names = ("pid", "mode", "at", "until", "why", "token", "project", "owner")
    return {name: getattr(entry, name) for name in names} | {"lost": why_lost(entry, now), "late": now > entry.until}


def find_answer(reader: Reader, name: str, request: str) -> Fields:
    table = LEASES.load(reader, ALL) or LeaseTable()
    lease = table.leases.get(name, Lease())
    if held := _find_position(lease.holders, request):
        position, entry = held
        return {"answer": "granted", "token": entry.token, "until": entry.until, "place": position, "why": ""}
    # Shown to whoever waits: when it may become free.
    free_at = max((holder.until for holder in lease.holders), default=0)
    if waiting := _find_position(lease.waiters, request):
        position, entry = waiting
        until = lease.holders[0].until if lease.holders else entry.until
        return {"answer": "waiting", "token": entry.token, "until": until, "place": position, "why": ""}
    answer = next((one for one in table.answers if one.request == request), None)
    if answer and answer.answer in ("busy", "refused"):
        return {**msgspec.structs.asdict(answer), "wait_until": free_at}
    return {"answer": "gone", "token": 0, "until": 0, "why": "the lease was freed or released"}


def _find_position(entries: Iterable[LeaseEntry], request: str) -> tuple[int, LeaseEntry] | None:
    return next(((n, entry) for n, entry in enumerate(entries, 1) if entry.request == request), None)


# ── all projects, and the moments of one ─────────────────────────────────────────────────────────────────────────────

MAX_PROJECTS = 50
MAX_MOMENTS = 300
RECENT_EVENTS = 200_000
"""A project nobody has touched for longer has its moments further back (`holdfast state --at`)."""


def list_projects(call: Call) -> Fields:
    """The latest first: the status of each in one line."""
    limit = max(1, min(int(call.args.get("limit") or MAX_PROJECTS), 200))
    projects = [doc for _, doc in PROJECT.list(call.reader, limit=limit)]
    return {
        "projects": [_project_row(tasks_at(doc, call.now)) for doc in projects if doc.git.was_read],
        "now": call.now,
    }


def _project_row(doc: Project) -> Fields:
    return {
        "root": doc.project,
        "name": doc.shown_name,
        "branch": doc.git.branch,
        "status": doc.git.status,
        "files": doc.git.count,
        "tests": summarise_tests(check_runs(doc)).status,
        "open": len(doc.tasks),
        "priorities": {name: sum(one.priority == name for one in doc.tasks) for name in PRIORITIES},
        "at": doc.at,
    }


def list_moments(call: Call) -> Fields:
    """When the document changed and by what, the oldest first; the newest so many."""
    limit = max(1, min(int(call.args.get("limit") or MAX_MOMENTS), MAX_MOMENTS))
    root = _project_root(call)
    # Further back the search would read the whole log of a large installation.
    after = max(0, call.reader.head() - RECENT_EVENTS)
    events = call.reader.events(EventQuery(project=root, kinds=tuple(MOMENTS), limit=limit, newest=True, after=after))
    moments = [
        {"seq": e.seq, "at": e.at, "kind": _moment_mark(e), "what": MOMENTS[e.kind](e.data)}
        for e in sorted(events, key=lambda event: event.seq)
    ]
    return {"root": root, "moments": moments, "now": call.now}


def _moment_mark(event: Event) -> str:
    """look, passed, failed, commit or word: what a time line marks it with."""
    data = event.data
    if isinstance(data, CheckFinished):
        return data.verdict if data.verdict in (Verdict.PASSED, Verdict.FAILED) else "look"
    if isinstance(data, GitActed):
        return "commit" if data.verb == "commit" else "look"
    if event.kind == "uat.ended":
        return "passed" if data.get("outcome") == "passed" else "failed"
    return "look" if event.kind in ("project.observed", "project.time_passed", "project.checked") else "word"


def _describe_look(data: ProjectObserved) -> str:
    git = data.facts.git
    if git is None:
        return f"looked at: {', '.join(data.facts) or 'nothing new'}"
    return f"{git.branch or 'no branch'}, {count_with_noun(git.count, 'changed file')}"


def _describe_check(data: CheckFinished) -> str:
    numbers = (("passed", data.passed), ("failed", data.failed))
    counts = ", ".join(f"{number} {name}" for name, number in numbers if number)
    where = f" in {data.dir}" if data.dir not in ("", ".") else ""
    return f"{data.runner}{where} {data.verdict.replace('_', ' ')}" + (f" ({counts})" if counts else "")


MOMENTS: dict[str, Callable[[Any], str]] = {
    "project.observed": _describe_look,
    "check.finished": _describe_check,
    "git.acted": lambda data: f"git {data.verb}",
    "project.validated": lambda data: f"validated by {data.command}",
    "project.checked": lambda data: f"check {data.name}",
    "project.time_passed": lambda _: "time went by",
    "project.task_added": lambda data: f"task added: {data.description}",
    "project.document_adopted": describe_adoption,
    "project.task_done": lambda data: f"{data.id} is done",
    "project.task_dismissed": lambda data: f"{data.id} was dismissed: {data.reason}",
    "project.override_set": lambda data: f"this is {data.name or 'no longer named by hand'}",
    "project.lease_changed": lambda data: f"lease {data.name}",
    "uat.ended": lambda data: f"UAT {data.get('scenario')}: {data.get('outcome')}",
}

VIEWS = {
    "state": show_state,
    "diff": diff_states,
    "tasks": list_tasks,
    "task": show_task,
    "next": next_task,
    "looking": look_progress,
    "migrate": migrate_state,
    "schema": lambda _: schema.SCHEMA,
    "origin": show_origin,
    "leases": list_leases,
    # What became of a request for a lease: granted, waiting, busy, refused, or gone.
    "lease_answer": lambda call: find_answer(call.reader, str(call.args.get("lease")), str(call.args.get("request"))),
    "list": list_projects,
    "moments": list_moments,
}
