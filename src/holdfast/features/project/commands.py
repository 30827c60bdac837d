"""What people ask for: a fresh look, tasks of their own, the project's name, leases. Each is an event or nothing."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import delivery_key
from holdfast.core.ports import Reader
from holdfast.features.project import owners
from holdfast.features.project.collectors import resolving
from holdfast.features.project.collectors.watch import freed
from holdfast.features.project.gaps import PRIORITIES
from holdfast.features.project.model import LEASES, SECOND, activity_ref, empty, project_ref, said
from holdfast.features.project.resolve import safe_name
from holdfast.features.project.settings import DEFAULTS
from holdfast.features.project.tasks import with_tasks_of
from holdfast.features.project.views import answered

LONGEST_TTL_S = 7 * 86_400
DEFAULT_TTL_S = 300


def look(call: Call) -> CommandResult:
    """A fresh look now; the answer comes before it is over (see the view `project.looking`)."""
    return CommandResult((said("project.look_asked", _root(call), call.now),), {"asked": True})


def _root(call: Call) -> str:
    root = str(call.args.get("project") or call.project)
    if not root.startswith("/"):
        raise CommandRefused("there is no project here", fix="Run it inside a project's folder.")
    return root


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add_task(call: Call) -> CommandResult:
    text = " ".join(str(call.args.get("description") or "").split())[:500]
    priority = str(call.args.get("priority") or "P2").upper()
    if not text:
        raise CommandRefused("a task needs a description")
    if priority not in PRIORITIES:
        raise CommandRefused(f"{priority!r} is no priority", fix="Use P0, P1, P2 or P3.")
    key = delivery_key(call.now)
    done_when = [str(one)[:300] for one in call.args.get("done_when") or ()][:10]
    data = {
        "description": text,
        "priority": priority,
        "done_when": done_when,
        "why": str(call.args.get("why") or "")[:500],
    }
    root = _root(call)
    event = Event(key=key, kind="project.task_added", at=call.now, session=call.session, project=root, data=data)
    return CommandResult((event,), lambda reader: _own(reader, root, key))


def _own(reader: Reader, root: str, key: str) -> dict[str, Any]:
    tasks = (reader.state(project_ref(root)) or empty(root))["tasks"]
    found = next((one for one in tasks if one["key"] == key), None)
    return {"id": found["id"], "description": found["description"]} if found else {"id": "", "description": ""}


def finish_task(call: Call) -> CommandResult:
    root, wanted = _root(call), str(call.args.get("id") or "")
    task = _open_task(call, root, wanted)
    if task["type"] != "own_task":
        raise CommandRefused(
            f"{wanted} is derived from what is true",
            fix=f"It closes by itself when: {'; '.join(task['done_when'])}. "
            f"If it is wrong: holdfast task dismiss {wanted} --reason WHY",
        )
    done = said("project.task_done", root, call.now, key=task["key"], id=wanted)
    return CommandResult((done,), {"id": wanted, "description": task["description"]})


def dismiss_task(call: Call) -> CommandResult:
    """Any task; it returns when what it was found on changed and it is found again."""
    root, wanted = _root(call), str(call.args.get("id") or "")
    reason = " ".join(str(call.args.get("reason") or "").split())[:300]
    if not reason:
        raise CommandRefused("a dismissal needs a reason", fix=f"holdfast task dismiss {wanted or 'ID'} --reason WHY")
    task = _open_task(call, root, wanted)
    said_of = {name: task[name] for name in ("type", "key", "basis", "id")}
    events = [said("project.task_dismissed", root, call.now, **said_of, reason=reason)]
    return CommandResult(tuple(events), {"id": wanted, "description": task["description"], "reason": reason})


def _open_task(call: Call, root: str, wanted: str) -> dict[str, Any]:
    doc = with_tasks_of(call.reader.state(project_ref(root)) or empty(root), call.now)
    task = next((one for one in doc["tasks"] if one["id"] == wanted), None)
    if task is None:
        raise CommandRefused(f"there is no open task {wanted!r}", fix="See: holdfast task list")
    found: dict[str, Any] = task
    return found


# ── resolution ───────────────────────────────────────────────────────────────────────────────────────────────────────


def resolve(call: Call) -> CommandResult:
    """Which project this is, by all signals of this moment; with `set` or `clear` a person's word."""
    root = _root(call)
    doc = call.reader.state(project_ref(root)) or empty(root)
    events: tuple[Event, ...] = ()
    override = str(call.args.get("override") or "")
    if call.args.get("set") or call.args.get("clear"):
        override = safe_name(str(call.args["set"])) if call.args.get("set") else ""
        events = (said("project.override_set", root, call.now, name=override),)
    remote, cwd = str(doc["git"].get("remote") or ""), str(call.args.get("cwd") or "")
    if call.args.get("clear"):
        return CommandResult(events, lambda reader: _resolved(reader, root, remote, call, "", cwd))
    return CommandResult(events, _resolved(call.reader, root, remote, call, override, cwd))


def _resolved(reader: Reader, root: str, remote: str, call: Call, override: str, cwd: str) -> dict[str, Any]:
    found = resolving.resolution(reader, root, remote, call.settings or DEFAULTS, call.now, override, cwd)
    return {**found, "root": root}


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def acquire(call: Call) -> CommandResult:
    """`answer` granted, waiting (ask the view `project.lease_answer` again), busy, or refused."""
    name, request = _lease_name(call), delivery_key(call.now)
    ttl = call.args.get("ttl") or DEFAULT_TTL_S
    if not isinstance(ttl, int | float) or not 0 < ttl <= LONGEST_TTL_S:
        raise CommandRefused(f"a lease lasts from 1 second to {LONGEST_TTL_S // 86_400} days")
    data = {
        **_owner(call),
        "name": name,
        "mode": "shared" if call.args.get("shared") else "exclusive",
        "ttl_ms": int(ttl * SECOND),
        "wait": bool(call.args.get("wait")),
        "why": str(call.args.get("why") or "")[:200],
        "within": [str(owner) for owner in call.args.get("within") or ()],
        "request": request,
    }
    asked = Event(
        key=request, kind="project.lease_asked", at=call.now, session=call.session, project=call.project, data=data
    )
    gone = tuple(freed(call.reader.state(LEASES), call.now))
    told = {"name": name, "request": request, "owner": data["owner"], "pid": data["pid"]}
    return CommandResult((*gone, asked), lambda reader: {**told, **answered(reader.state(LEASES), name, request)})


def tend(call: Call) -> CommandResult:
    """For whoever waits: frees what dead owners hold, and tells how the request stands."""
    name, request = _lease_name(call), str(call.args.get("request"))
    events = tuple(freed(call.reader.state(LEASES), call.now))
    return CommandResult(events, lambda reader: answered(reader.state(LEASES), name, request))


def keep(call: Call) -> CommandResult:
    name, owner = _lease_name(call), str(call.args.get("owner"))
    _must_hold(call, name, owner)
    return CommandResult((said("project.lease_kept", call.project, call.now, name=name, owner=owner),), {"name": name})


def release(call: Call) -> CommandResult:
    """One's own; with `force` whoever holds it."""
    name = _lease_name(call)
    lease = ((call.reader.state(LEASES) or {}).get("leases") or {}).get(name) or {"holders": [], "waiters": []}
    if call.args.get("force"):
        gone = [_gone(call, name, entry) for entry in lease["holders"]]
        return CommandResult(tuple(gone), {"name": name, "released": len(gone)})
    owner = str(call.args.get("owner") or _owner(call)["owner"])
    mine = [entry for entry in (*lease["holders"], *lease["waiters"]) if entry["owner"] == owner]
    if not mine:
        held = ", ".join(str(entry["pid"]) for entry in lease["holders"])
        holder = f"process {held} holds it" if held else "nobody holds it"
        raise CommandRefused(f"{name} is not yours to release: {holder}", fix="With --force it is taken away.")
    data = {"name": name, "owner": owner}
    return CommandResult(
        (said("project.lease_released", mine[0]["project"], call.now, **data),), {"name": name, "released": 1}
    )


def _gone(call: Call, name: str, entry: dict[str, Any]) -> Event:
    why = f"{name} was taken from process {entry['pid']} by a person"
    return said("project.lease_freed", entry["project"], call.now, name=name, owner=entry["owner"], why=why)


def _lease_name(call: Call) -> str:
    name = str(call.args.get("lease") or "").strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise CommandRefused("a lease needs a name of at most 100 printable characters")
    return name


def _owner(call: Call) -> dict[str, Any]:
    """The process named; else the agent of the asking session, which outlives the shell it runs a command in."""
    pid = call.args.get("pid")
    if not call.args.get("exactly"):
        doing = call.reader.state(activity_ref(call.project)) or {}
        session = (doing.get("sessions") or {}).get(call.session) or {}
        if session.get("pid") and owners.started(session["pid"]) is not None:
            pid = session["pid"]
    found = owners.owner_of(pid) if isinstance(pid, int) else None
    if found is None:
        raise CommandRefused(f"process {pid} does not run", fix="Name one that does with --pid.")
    return found


def _must_hold(call: Call, name: str, owner: str) -> None:
    lease = ((call.reader.state(LEASES) or {}).get("leases") or {}).get(name) or {"holders": []}
    if not any(entry["owner"] == owner for entry in lease["holders"]):
        raise CommandRefused(f"{name} is not held by {owner} any more")


COMMANDS = {
    "look": look,
    "add_task": add_task,
    "finish_task": finish_task,
    "dismiss_task": dismiss_task,
    "resolve": resolve,
    "acquire": acquire,
    "tend": tend,
    "keep": keep,
    "release": release,
}
