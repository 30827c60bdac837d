"""Commands: a fresh look, the user's own tasks, the project's name, leases."""

from typing import Any

from msgspec.structs import asdict, replace

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event, own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import delivery_key
from holdfast.core.kinds.project_events import (
    LeaseAsked,
    LeaseFreed,
    LeaseKept,
    LeaseReleased,
    LookAsked,
    OverrideSet,
    TaskAdded,
    TaskDismissed,
    TaskDone,
)
from holdfast.core.ports import Reader
from holdfast.core.times import SECOND
from holdfast.features.project.document.v4 import resolution_fields
from holdfast.features.project.gaps import PRIORITIES
from holdfast.features.project.jobs.refresh import load_project
from holdfast.features.project.jobs.resolution import resolve_project, safe_name
from holdfast.features.project.settings import DEFAULTS
from holdfast.features.project.state import ACTIVITY, ALL, LEASES, Lease, Task, project_key
from holdfast.features.project.state.leases import Owner, free_lost, owner_of, start_time
from holdfast.features.project.state.task_list import tasks_at
from holdfast.features.project.views import find_answer

MAX_TTL_S = 7 * 86_400
DEFAULT_TTL_S = 300


def request_look(call: Call) -> CommandResult:
    """A fresh look now; the answer comes before it is over (see the view `project.looking`). `quick`: at git only."""
    request = LookAsked(quick=bool(call.args.get("quick")))
    return CommandResult((own_event(request, call.now, project=_project_root(call)),), {"asked": True})


def _project_root(call: Call) -> str:
    root = str(call.args.get("project") or call.project)
    if not root.startswith("/"):
        raise CommandRefused("there is no project here", fix="Run it inside a project's folder.")
    return root


def _one_line(value: object, longest: int) -> str:
    return " ".join(str(value or "").split())[:longest]


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add_task(call: Call) -> CommandResult:
    text = _one_line(call.args.get("description"), 500)
    priority = str(call.args.get("priority") or "P2").upper()
    if not text:
        raise CommandRefused("a task needs a description")
    if priority not in PRIORITIES:
        raise CommandRefused(f"{priority!r} is no priority", fix="Use P0, P1, P2 or P3.")
    done_when = [str(one)[:300] for one in call.args.get("done_when") or ()][:10]
    why = str(call.args.get("why") or "")[:500]
    root = _project_root(call)
    added = TaskAdded(description=text, priority=priority, done_when=done_when, why=why)
    event = own_event(added, call.now, session=call.session, project=root)
    # The task's number is known only after the event has been applied.
    return CommandResult((event,), lambda reader: _added_task(reader, root, event.key))


def _added_task(reader: Reader, root: str, key: str) -> dict[str, str]:
    task = next((one for one in load_project(reader, root).tasks if one.key == key), None)
    return {"id": task.id, "description": task.description} if task else {"id": "", "description": ""}


def finish_task(call: Call) -> CommandResult:
    root = _project_root(call)
    task = _open_task(call, root)
    if task.type != "own_task":
        raise CommandRefused(
            f"{task.id} is derived from the project's state",
            fix=f"It closes by itself when: {'; '.join(task.done_when)}. "
            f"If it is wrong: holdfast task dismiss {task.id} --reason WHY",
        )
    done = own_event(TaskDone(key=task.key, id=task.id), call.now, project=root)
    return CommandResult((done,), {"id": task.id, "description": task.description})


def dismiss_task(call: Call) -> CommandResult:
    """Any task; it returns when what it was found on changed and it is found again."""
    root, reason = _project_root(call), _one_line(call.args.get("reason"), 300)
    if not reason:
        raise CommandRefused("a dismissal needs a reason", fix="holdfast task dismiss ID --reason WHY")
    task = _open_task(call, root)
    dismissed = TaskDismissed(id=task.id, type=task.type, key=task.key, basis=task.basis, reason=reason)
    event = own_event(dismissed, call.now, session=call.session, project=root)
    return CommandResult((event,), {"id": task.id, "description": task.description, "reason": reason})


def _open_task(call: Call, root: str) -> Task:
    task_id = str(call.args.get("id") or "")
    doc = tasks_at(load_project(call.reader, root), call.now)
    task = next((one for one in doc.tasks if one.id == task_id), None)
    if task is None:
        raise CommandRefused(f"there is no open task {task_id!r}", fix="See: holdfast task list")
    return task


# ── resolution ───────────────────────────────────────────────────────────────────────────────────────────────────────


def resolve_asked_project(call: Call) -> CommandResult:
    """Which project this is, by all signals of this moment; with `set` or `clear` a person's word."""
    root = _project_root(call)
    events: tuple[Event, ...] = ()
    override = str(call.args.get("override") or "")
    if call.args.get("set") or call.args.get("clear"):
        override = safe_name(str(call.args["set"])) if call.args.get("set") else ""
        events = (own_event(OverrideSet(name=override), call.now, project=root),)
    if call.args.get("clear"):
        return CommandResult(events, lambda reader: _resolved_fields(reader, root, call, ""))
    return CommandResult(events, _resolved_fields(call.reader, root, call, override))


def _resolved_fields(reader: Reader, root: str, call: Call, override: str) -> dict[str, Any]:
    remote, cwd = load_project(call.reader, root).git.remote, str(call.args.get("cwd") or "")
    resolution = resolve_project(reader, root, remote, call.settings or DEFAULTS, call.now, override, cwd)
    return {**resolution_fields(resolution), "root": root}


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def acquire_lease(call: Call) -> CommandResult:
    """`answer` granted, waiting (ask the view `project.lease_answer` again), busy, or refused."""
    name, request, owner = _lease_name(call), delivery_key(call.now), _lease_owner(call)
    lease_request = LeaseAsked(
        name=name,
        **asdict(owner),
        runs=bool(call.args.get("runs")),
        mode="shared" if call.args.get("shared") else "exclusive",
        ttl_ms=_ttl_ms(call),
        wait=bool(call.args.get("wait")),
        why=str(call.args.get("why") or "")[:200],
        within=[str(one) for one in call.args.get("within") or ()],
        request=request,
    )
    event = replace(own_event(lease_request, call.now, session=call.session, project=call.project), key=request)
    # What dead processes hold is freed first, so that it can be granted at once.
    freed = free_lost(LEASES.load(call.reader, ALL), call.now)
    shown = {"name": name, "request": request, "owner": owner.owner, "pid": owner.pid}
    return CommandResult((*freed, event), lambda reader: {**shown, **find_answer(reader, name, request)})


def _ttl_ms(call: Call) -> int:
    ttl = call.args.get("ttl") or DEFAULT_TTL_S
    if not isinstance(ttl, int | float) or not 0 < ttl <= MAX_TTL_S:
        raise CommandRefused(f"a lease lasts from 1 second to {MAX_TTL_S // 86_400} days")
    return int(ttl * SECOND)


def check_lease_request(call: Call) -> CommandResult:
    """Frees what dead owners hold, and answers how far a request is."""
    name, request = _lease_name(call), str(call.args.get("request"))
    events = tuple(free_lost(LEASES.load(call.reader, ALL), call.now))
    return CommandResult(events, lambda reader: find_answer(reader, name, request))


def renew_lease(call: Call) -> CommandResult:
    name, owner = _lease_name(call), str(call.args.get("owner"))
    if not any(entry.owner == owner for entry in _load_lease(call, name).holders):
        raise CommandRefused(f"{name} is not held by {owner} any more")
    event = own_event(LeaseKept(name=name, owner=owner), call.now, project=call.project)
    return CommandResult((event,), {"name": name})


def release_lease(call: Call) -> CommandResult:
    """The asker's lease; with `force` everybody's."""
    name = _lease_name(call)
    lease = _load_lease(call, name)
    if call.args.get("force"):
        freed = [
            (LeaseFreed(name=name, owner=one.owner, why=f"{name} was taken from process {one.pid} by a person"), one)
            for one in lease.holders
        ]
        events = tuple(own_event(payload, call.now, project=one.project) for payload, one in freed)
        return CommandResult(events, {"name": name, "released": len(events)})
    owner = str(call.args.get("owner") or _lease_owner(call).owner)
    mine = next((entry for entry in (*lease.holders, *lease.waiters) if entry.owner == owner), None)
    if mine is None:
        held = ", ".join(str(entry.pid) for entry in lease.holders)
        holder = f"process {held} holds it" if held else "nobody holds it"
        raise CommandRefused(f"{name} is not yours to release: {holder}", fix="With --force it is taken away.")
    released = own_event(LeaseReleased(name=name, owner=owner), call.now, project=mine.project)
    return CommandResult((released,), {"name": name, "released": 1})


def _load_lease(call: Call, name: str) -> Lease:
    table = LEASES.load(call.reader, ALL)
    return table.leases.get(name, Lease()) if table else Lease()


def _lease_name(call: Call) -> str:
    name = str(call.args.get("lease") or "").strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise CommandRefused("a lease needs a name of at most 100 printable characters")
    return name


def _lease_owner(call: Call) -> Owner:
    """The process named; else the agent of the asking session, which outlives the shell it runs a command in."""
    pid = call.args.get("pid")
    if not call.args.get("exactly"):
        doing = ACTIVITY.load(call.reader, project_key(call.project))
        session = doing.sessions.get(call.session) if doing else None
        if session and session.pid and start_time(session.pid) is not None:
            pid = session.pid
    owner = owner_of(pid) if isinstance(pid, int) else None
    if owner is None:
        raise CommandRefused(f"process {pid} does not run", fix="Name one that does with --pid.")
    return owner


COMMANDS = {
    "look": request_look,
    "add_task": add_task,
    "finish_task": finish_task,
    "dismiss_task": dismiss_task,
    "resolve": resolve_asked_project,
    "acquire": acquire_lease,
    "tend": check_lease_request,
    "keep": renew_lease,
    "release": release_lease,
}
