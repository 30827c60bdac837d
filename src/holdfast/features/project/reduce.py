"""From events to documents: a table of what each kind of event changes. Pure, as every reducer is."""

from collections.abc import Callable, Iterable

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.check_events import GitActed
from holdfast.core.ports import Doc, Ref
from holdfast.features.project import activity, elsewhere, everywhere, habits, leases
from holdfast.features.project.check_results import CheckRun, add_run, belongs_here, copy_to_branch, run_of_event
from holdfast.features.project.gaps import task_identity
from holdfast.features.project.history import with_changes, with_line
from holdfast.features.project.model import (
    ACTIVITY,
    EVERYWHERE,
    HABITS,
    LEASES,
    PROJECT,
    activity_ref,
    empty,
    habits_ref,
    number,
    project_ref,
)  # fmt: skip
from holdfast.features.project.tasks import settled
from holdfast.features.project.validation import current_branch

MOST_OWN_TASKS, MOST_CHECKS, MOST_LOCKS, MOST_DISMISSED, MOST_COMMITS = 100, 50, 30, 100, 20
FACTS = frozenset(("git", "trees", "activity", "resolution", "tokens", "patterns", "todos", "rules", "notion"))
LEARNING = frozenset(("project.turn_summed", "project.commit_seen"))


def keys(event: Event) -> Iterable[Ref]:
    kind = event.kind
    if kind in leases.TABLE:
        return (LEASES,)
    if not event.project:
        return ()
    if kind in LEARNING:
        return (habits_ref(event.project),)
    if kind in everywhere.HEARS:
        return (project_ref(event.project), EVERYWHERE)
    if kind in activity.CHECKED:
        return (project_ref(event.project), activity_ref(event.project))
    if kind in CHANGES:
        return (project_ref(event.project),)
    found = (project_ref(event.project),) if elsewhere.concerns(event) else ()
    return (*found, activity_ref(event.project)) if activity.touches(event) else found


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == PROJECT:
        return _project(doc, event)
    if ref.kind == ACTIVITY:
        return activity.reduce(doc, event)
    if ref.kind == HABITS:
        return habits.reduce(doc, event)
    return leases.reduce(doc, event) if ref == LEASES else everywhere.reduce(doc, event)


def _project(doc: Doc | None, event: Event) -> Doc | None:
    before = doc or empty(event.project)
    change = CHANGES.get(event.kind) or elsewhere.changed
    after = change(before, event)
    if after is before:
        return doc
    pid = number(event.get("pid"))
    after = settled(before, with_changes(before, after, event.at, pid), event.at, pid)
    return {**after, "at": event.at, "status": after["git"].get("status") or "unknown"}


def _observed(doc: Doc, event: Event) -> Doc:
    """Sections that are named replace what was known; `junit` is a test run, `name` and `folder` are ours to keep."""
    facts = event.get("facts") or {}
    after = {**doc, **{name: facts[name] for name in FACTS if name in facts}}
    for run in msgspec.convert(facts.get("junit") or [], list[CheckRun]):
        after = _with_run(after, msgspec.structs.replace(run, branch=current_branch(after) or ""))
    sums = {**(doc.get("sums") or {}), **(event.get("sums") or {})}
    return after | {name: facts[name] for name in ("name", "folder") if name in facts} | {"sums": sums}


def _check_finished(doc: Doc, event: Event) -> Doc:
    return _with_run(doc, run_of_event(event)) if belongs_here(event) else doc


def _with_run(doc: Doc, run: CheckRun) -> Doc:
    before = msgspec.convert(doc["results"], list[CheckRun])
    after = add_run(before, run)
    return doc if after is before else {**doc, "results": msgspec.to_builtins(after)}


def _git_acted(doc: Doc, event: Event) -> Doc:
    """Which heads are commits, and which branch was made from which: the next look shows the rest."""
    act: GitActed = event.data
    if act.worktree and act.worktree.rstrip("/") != event.project.rstrip("/"):
        return doc
    after = doc
    if act.verb == "commit":
        heads = [*doc.get("commits", ()), *(act.commits or [act.after.head])]
        after = {**doc, "commits": [head for head in dict.fromkeys(heads) if head][-MOST_COMMITS:]}
    if act.before.branch != act.after.branch and act.before.head == act.after.head and act.after.branch:
        runs = copy_to_branch(msgspec.convert(doc["results"], list[CheckRun]), act.before.branch, act.after.branch)
        after = {**after, "results": msgspec.to_builtins(runs)}
    return after


def _validated(doc: Doc, event: Event) -> Doc:
    for name in event.get("what") or ():
        doc = _proven(doc, str(name), event)
    return doc


def _proven(doc: Doc, name: str, event: Event) -> Doc:
    proof = {"since": number(event.get("since")) or event.at, "command": str(event.get("command") or "")[:200]}
    proofs = {**{k: v for k, v in doc["validations"].items() if k != name}, name: proof}
    return {**doc, "validations": dict(list(proofs.items())[-MOST_CHECKS:])}


def _checked(doc: Doc, event: Event) -> Doc:
    name = str(event.get("name"))
    told = {field: event.get(field) for field in ("ok", "exit_code", "rule")}
    checks = {**{k: v for k, v in doc["checks"].items() if k != name}, name: told}
    wanted = set(event.get("names") or checks)
    kept = {k: v for k, v in checks.items() if k in wanted}
    return {**doc, "checks": dict(list(kept.items())[-MOST_CHECKS:])}


def _time_passed(doc: Doc, _event: Event) -> Doc:
    """A new document with the same facts: the tasks are made anew at the event's time."""
    return dict(doc)


def _task_added(doc: Doc, event: Event) -> Doc:
    fields = ("description", "priority", "done_when", "why", "blocks", "minutes")
    task = {"key": event.key, **{name: event.data[name] for name in fields if event.data.get(name)}}
    return {**doc, "own": [*doc["own"], task][-MOST_OWN_TASKS:]}


def _task_dismissed(doc: Doc, event: Event) -> Doc:
    identity = task_identity(str(event.get("type") or ""), str(event.get("key") or ""))
    said = {"basis": str(event.get("basis") or ""), "reason": str(event.get("reason") or "")[:300], "at": event.at}
    others = {name: one for name, one in doc["dismissed"].items() if name != identity}
    return {**doc, "dismissed": dict(list({**others, identity: said}.items())[-MOST_DISMISSED:])}


def _task_done(doc: Doc, event: Event) -> Doc:
    return {**doc, "own": [task for task in doc["own"] if task["key"] != event.get("key")]}


def _override_set(doc: Doc, event: Event) -> Doc:
    return {**doc, "override": str(event.get("name") or "")}


def _notion_pushed(doc: Doc, event: Event) -> Doc:
    return {**doc, "notion": dict(event.get("state") or {})}


def _lease_changed(doc: Doc, event: Event) -> Doc:
    name, lock = str(event.get("name")), dict(event.get("lock") or {})
    locks = {**{k: v for k, v in doc["locks"].items() if k != name}, name: lock}
    if len(locks) > MOST_LOCKS:
        free = next((k for k, v in locks.items() if not v), next(iter(locks)))
        del locks[free]
    after = {**doc, "locks": locks}
    if why := event.get("freed"):
        line = {"change_type": "state_update", "section": f"RESOURCE_LOCKS.{name}", "summary": str(why)}
        return with_line(after, event.at, 0, line)
    return after


CHANGES: dict[str, Callable[[Doc, Event], Doc]] = {
    "project.observed": _observed,
    "check.finished": _check_finished,
    "git.acted": _git_acted,
    "project.validated": _validated,
    "project.checked": _checked,
    "project.time_passed": _time_passed,
    "project.task_added": _task_added,
    "project.task_done": _task_done,
    "project.task_dismissed": _task_dismissed,
    "project.override_set": _override_set,
    "project.notion_pushed": _notion_pushed,
    "project.lease_changed": _lease_changed,
}
