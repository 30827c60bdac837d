"""All projects at once, and the moments at which the document of one changed: for whoever looks at the whole."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery, StateQuery
from holdfast.features.project.check_results import summarise_tests
from holdfast.features.project.document import project_name
from holdfast.features.project.gaps import PRIORITIES
from holdfast.features.project.model import PROJECT, number, plural
from holdfast.features.project.tasks import with_tasks_of
from holdfast.features.project.validation import check_runs

MOST_PROJECTS = 50
MOST_MOMENTS = 300
LATELY = 200_000
"""Events: a project nobody has touched for longer has its moments elsewhere (`holdfast state --at`)."""


def projects(call: Call) -> dict[str, Any]:
    """The latest first: where each stands, in one line."""
    limit = max(1, min(int(call.args.get("limit") or MOST_PROJECTS), 200))
    found = call.reader.states(StateQuery(kind=PROJECT, limit=limit))
    return {"projects": [_row(with_tasks_of(doc, call.now)) for _, doc in found if doc["git"]], "now": call.now}


def _row(doc: Doc) -> dict[str, Any]:
    git, tests = doc["git"], summarise_tests(check_runs(doc))
    counts = {name: sum(one["priority"] == name for one in doc["tasks"]) for name in PRIORITIES}
    return {
        "root": doc["project"], "name": project_name(doc), "branch": git.get("branch") or "",
        "status": git.get("status") or "unknown", "files": number(git.get("count")), "tests": tests.status,
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
    if event.kind == "check.finished":
        return event.data.verdict if event.data.verdict in ("passed", "failed") else "look"
    if event.kind == "uat.ended":
        return "passed" if event.data.get("outcome") == "passed" else "failed"
    if event.kind == "git.acted":
        return "commit" if event.data.verb == "commit" else "look"
    return "look" if event.kind in ("project.observed", "project.time_passed", "project.checked") else "word"


def _observed(data: Mapping[str, Any]) -> str:
    facts = data.get("facts") or {}
    git = facts.get("git") or {}
    if not git:
        return f"looked at: {', '.join(facts) or 'nothing new'}"
    return f"{git.get('branch') or 'no branch'}, {plural(number(git.get('count')), 'changed file')}"


def _check(data: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{data.get(name)} {name}" for name in ("passed", "failed") if data.get(name))
    where = f" in {data.get('dir')}" if data.get("dir") not in (None, ".") else ""
    verdict = str(data.get("verdict")).replace("_", " ")
    return f"{data.get('runner')}{where} {verdict}" + (f" ({counts})" if counts else "")


SAID: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "project.observed": _observed,
    "check.finished": _check,
    "git.acted": lambda data: f"git {data.get('verb')}",
    "project.validated": lambda data: f"validated by {data.get('command')}",
    "project.checked": lambda data: f"check {data.get('name')}",
    "project.time_passed": lambda _: "time went by",
    "project.task_added": lambda data: f"task added: {data.get('description')}",
    "project.task_dismissed": lambda data: f"{data.get('id')} was dismissed: {data.get('reason')}",
    "project.task_done": lambda data: f"{data.get('id')} is done",
    "project.override_set": lambda data: f"this is {data.get('name') or 'no longer named by hand'}",
    "project.lease_changed": lambda data: f"lease {data.get('name')}",
    "uat.ended": lambda data: f"UAT {data.get('scenario')}: {data.get('outcome')}",
}
