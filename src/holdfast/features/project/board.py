"""All projects at once, and the moments at which the document of one changed: for whoever looks at the whole."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery, StateQuery
from holdfast.features.project import tests_now
from holdfast.features.project.document import project_name
from holdfast.features.project.gaps import PRIORITIES
from holdfast.features.project.model import PROJECT, number, plural
from holdfast.features.project.tasks import settled

MOST_PROJECTS = 50
MOST_MOMENTS = 300
LATELY = 200_000
"""Events: a project nobody has touched for longer has its moments elsewhere (`holdfast state --at`)."""


def projects(call: Call) -> dict[str, Any]:
    """The latest first: where each stands, in one line."""
    limit = max(1, min(int(call.args.get("limit") or MOST_PROJECTS), 200))
    found = call.reader.states(StateQuery(kind=PROJECT, limit=limit))
    return {"projects": [_row(settled(doc, call.now)) for _, doc in found if doc["git"]], "now": call.now}


def _row(doc: Doc) -> dict[str, Any]:
    git, tests = doc["git"], tests_now.of(doc)
    counts = {name: sum(one["priority"] == name for one in doc["tasks"]) for name in PRIORITIES}
    return {
        "root": doc["project"], "name": project_name(doc), "branch": git.get("branch") or "",
        "status": git.get("status") or "unknown", "files": number(git.get("count")), "tests": tests["status"],
        "open": len(doc["tasks"]), "priorities": counts, "at": doc["at"],
    }  # fmt: skip


def moments(call: Call) -> dict[str, Any]:
    """When the document changed and by what, the oldest first; the newest so many."""
    limit = max(1, min(int(call.args.get("limit") or MOST_MOMENTS), MOST_MOMENTS))
    root = str(call.args.get("project") or call.project)
    after = max(0, call.reader.head() - LATELY)
    page = call.reader.events(EventQuery(project=root, kinds=tuple(SAID), limit=limit, newest=True, after=after))
    shown = [{"seq": e.seq, "at": e.at, "kind": _kind(e), "what": SAID[e.kind](e.data)} for e in page]
    return {"root": root, "moments": sorted(shown, key=lambda one: one["seq"]), "now": call.now}


def _kind(event: Event) -> str:
    """look, passed, failed, commit or word: what a time line marks it with."""
    if event.kind == "project.tests_ran":
        return "passed" if event.data.get("ok") else "failed"
    if event.kind == "uat.ended":
        return "passed" if event.data.get("outcome") == "passed" else "failed"
    if event.kind == "project.commit_seen":
        return "commit"
    return "look" if event.kind in ("project.observed", "project.time_passed", "project.checked") else "word"


def _observed(data: Mapping[str, Any]) -> str:
    facts = data.get("facts") or {}
    git = facts.get("git") or {}
    if not git:
        return f"looked at: {', '.join(facts) or 'nothing new'}"
    return f"{git.get('branch') or 'no branch'}, {plural(number(git.get('count')), 'changed file')}"


def _tests(data: Mapping[str, Any]) -> str:
    return (
        f"tests passed: {data.get('passed', 0)}" if data.get("ok") else f"tests failed: {data.get('failed') or 'some'}"
    )


SAID: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "project.observed": _observed,
    "project.tests_ran": _tests,
    "project.validated": lambda data: f"validated by {data.get('command')}",
    "project.commit_seen": lambda _: "a commit",
    "project.checked": lambda data: f"check {data.get('name')}",
    "project.time_passed": lambda _: "time went by",
    "project.task_added": lambda data: f"task added: {data.get('description')}",
    "project.task_done": lambda data: f"{data.get('id')} is done",
    "project.override_set": lambda data: f"this is {data.get('name') or 'no longer named by hand'}",
    "project.lease_changed": lambda data: f"lease {data.get('name')}",
    "uat.ended": lambda data: f"UAT {data.get('scenario')}: {data.get('outcome')}",
}
