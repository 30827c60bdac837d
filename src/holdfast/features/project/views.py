"""What people and tools may ask about a project. Everything is read; nothing is decided here."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery
from holdfast.core.replay import document_at
from holdfast.features.project import board, differences, formats, owners, schema
from holdfast.features.project.document import document, task
from holdfast.features.project.files import text
from holdfast.features.project.model import LEASES, empty, project_ref
from holdfast.features.project.tasks import SECTIONS, with_tasks_of
from holdfast.features.project.times import moment

NOT_KNOWN = "Nothing is known of this project yet."
LOOK = "Look at it with: holdfast state refresh"


def state(call: Call) -> dict[str, Any]:
    """The document of now, or as it was at a moment (`at`: a time, or the number of an event)."""
    if call.args.get("at"):
        doc, now = then(call, str(call.args["at"]))
        if not doc["at"]:
            raise CommandRefused(f"nothing was known of this project at {call.args['at']}")
    else:
        doc, now = known(call), call.now
        doc = with_tasks_of(doc, now)
    found = document(doc, now)
    return {"document": found, "text": text(found), "root": doc["project"], "open": len(doc["tasks"])}


def known(call: Call) -> Doc:
    root = str(call.args.get("project") or call.project)
    return call.reader.state(project_ref(root)) or empty(root)


def then(call: Call, when: str) -> tuple[Doc, int]:
    """The document as the log had it then, and when that was."""
    from holdfast.features.project import FEATURE

    root = str(call.args.get("project") or call.project)
    seq, at = _event_at(call, when)
    doc = document_at(FEATURE, call.reader, project_ref(root), seq)
    return doc or empty(root), at


def _event_at(call: Call, when: str) -> tuple[int, int]:
    if when.isdecimal():
        event = call.reader.event(int(when))
        if not event:
            raise CommandRefused(f"there is no event {when}")
        return event.seq, event.at
    at = moment(when, call.now)
    page = call.reader.events(EventQuery(until=at, newest=True, limit=1))
    return (page[-1].seq if page else 0), at


def diff(call: Call) -> dict[str, Any]:
    """What differs between two moments: dotted path, before, after."""
    (old, old_at), (new, new_at) = (_moment(call, name) for name in ("a", "b"))
    found = list(differences.between(document(old, old_at), document(new, new_at)))
    return {"a": old_at, "b": new_at, "differences": found}


def _moment(call: Call, name: str) -> tuple[Doc, int]:
    when = str(call.args.get(name) or "now")
    return (known(call), call.now) if when == "now" else then(call, when)


def tasks(call: Call) -> dict[str, Any]:
    """Open tasks, the most pressing first, each with why it is there and when it is done."""
    doc = with_tasks_of(known(call), call.now)
    return {
        "project": doc.get("name") or "",
        "root": doc["project"],
        "known": bool(doc["git"]),
        "tasks": [shown(one) for one in doc["tasks"]],
        "sections": SECTIONS,
    }


def shown(one: dict[str, Any]) -> dict[str, Any]:
    return {
        **task(one),
        "priority": one["priority"],
        "why": one["why"],
        "key": one["key"],
        "since": one["discovered_at"],
    }


def one_task(call: Call) -> dict[str, Any]:
    wanted = str(call.args.get("id") or "")
    found = next((one for one in tasks(call)["tasks"] if one["id"] == wanted), None)
    if found:
        return {**found, "open": True}
    line = next((line for line in known(call)["history"] if line.get("task_id") == wanted), None)
    if line:
        return {"id": wanted, "open": False, "summary": line["summary"], "done_at": line["timestamp"]}
    raise CommandRefused(f"there is no task {wanted!r}", fix="See: holdfast task list")


def next_task(call: Call) -> dict[str, Any]:
    listed = tasks(call)
    return {
        "task": listed["tasks"][0] if listed["tasks"] else None,
        "left": len(listed["tasks"]),
        "known": listed["known"],
    }


def looking(call: Call) -> dict[str, Any]:
    """Whether a look at this project is still to come, for those who wait for it."""
    root = str(call.args.get("project") or call.project)
    waiting = [job for job in call.reader.jobs(1000) if job["kind"] == "project.refresh" and job["dedupe"] == root]
    error = next((job["error"] for job in waiting if job["error"]), "")
    return {"waiting": sum(not job["dead"] for job in waiting), "error": error, "known": bool(known(call)["git"])}


def migrate(call: Call) -> dict[str, Any]:
    """An old state, read already, as v4. What is observed here now fills in what v3 never knew."""
    state, doc = call.args.get("state"), known(call)
    if not isinstance(state, dict):
        raise CommandRefused("a state is a mapping of sections")
    found = formats.as_v4(state)
    if doc["git"] and call.args.get("observe", True):
        found = differences.filled_in(found, document(doc, call.now))
    return {"document": found, "text": text(found)}


def published(_call: Call) -> dict[str, Any]:
    return schema.SCHEMA


def leases(call: Call) -> dict[str, Any]:
    """Every lease with its holders and those who wait, and whether they are alive."""
    table = call.reader.state(LEASES) or {"leases": {}}
    rows = [{"name": name, **_lease(lease, call.now)} for name, lease in sorted(table["leases"].items())]
    return {"leases": rows, "now": call.now}


def _lease(lease: dict[str, Any], now: int) -> dict[str, Any]:
    return {side: [_entry(entry, now) for entry in lease[side]] for side in ("holders", "waiters")}


def _entry(entry: dict[str, Any], now: int) -> dict[str, Any]:
    fields = ("pid", "mode", "at", "until", "why", "token", "project", "owner")
    return {**{name: entry[name] for name in fields}, "lost": owners.lost(entry, now), "late": now > entry["until"]}


def answer(call: Call) -> dict[str, Any]:
    """What became of a request for a lease: granted, waiting, busy, refused, or gone."""
    return answered(call.reader.state(LEASES), str(call.args.get("lease")), str(call.args.get("request")))


def answered(table: Doc | None, name: str, request: str) -> dict[str, Any]:
    table = table or {"leases": {}, "answers": []}
    lease = table["leases"].get(name) or {"holders": [], "waiters": []}
    for side, word in (("holders", "granted"), ("waiters", "waiting")):
        for place, entry in enumerate(lease[side]):
            if entry["request"] == request:
                held = lease["holders"][0] if side == "waiters" and lease["holders"] else entry
                return {"answer": word, "token": entry["token"], "until": held["until"], "place": place + 1, "why": ""}
    told = next((one for one in table["answers"] if one["request"] == request), None)
    if told and told["answer"] in ("busy", "refused"):
        return {**told, "wait_until": max((h["until"] for h in lease["holders"]), default=0)}
    return {"answer": "gone", "token": 0, "until": 0, "why": "the lease was freed or released"}


VIEWS = {
    "state": state,
    "diff": diff,
    "tasks": tasks,
    "task": one_task,
    "next": next_task,
    "looking": looking,
    "migrate": migrate,
    "schema": published,
    "leases": leases,
    "lease_answer": answer,
    "list": board.projects,
    "moments": board.moments,
}
