"""From events to documents: which of them an event touches, and what each kind changes. Pure, as every reducer is."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.core.checks import CheckKind, Verdict
from holdfast.core.event import Event
from holdfast.core.kinds import PROJECT_KINDS, SESSION_ENDS
from holdfast.core.kinds.check_events import CheckFinished, GitActed
from holdfast.core.kinds.gates_events import requirement_names
from holdfast.core.kinds.project_events import (
    AreaValidated,
    CommitSeen,
    DocumentAdopted,
    LeaseChanged,
    NotionPushed,
    OverrideSet,
    ProjectFacts,
    ProjectObserved,
    ReportRun,
    RuleChecked,
    TaskAdded,
    TaskDismissed,
    TaskDone,
    TimePassed,
    TurnSummed,
)
from holdfast.core.ports import Doc, Ref
from holdfast.features.project.document.old_formats import describe_adoption
from holdfast.features.project.origins import commits_of, reduce_commit
from holdfast.features.project.state import (
    ACTIVITY,
    ALL,
    COMMIT,
    GLOBAL,
    HABITS,
    LEASES,
    MAX_HISTORY,
    PROJECT,
    AreaProof,
    CheckRun,
    Dismissal,
    GlobalState,
    HistoryLine,
    KnownProject,
    OwnTask,
    Project,
    RuleOutcome,
    UatRun,
    WaitingGate,
    project_key,
    task_identity,
)
from holdfast.features.project.state.check_results import add_run, belongs_here, copy_to_branch, run_of_event
from holdfast.features.project.state.habits import concerns_activity, reduce_activity, reduce_habits
from holdfast.features.project.state.leases import LEASE_KINDS, reduce_leases
from holdfast.features.project.state.task_list import update_tasks, with_changes, with_line

# Bounds of each list in a project's document.
MAX_OWN_TASKS, MAX_RULES, MAX_LOCKS, MAX_DISMISSED, MAX_COMMITS, MAX_NAMES = 100, 50, 30, 100, 20, 30
MAX_PROJECTS, MAX_GLOBAL_LOCKS, MAX_SHARED_HABITS = 200, 200, 12
SECTIONS = ("git", "trees", "activity", "resolution", "usage", "patterns", "todos", "rules")
LEARNING_KINDS = frozenset((TurnSummed.KIND, CommitSeen.KIND))
GLOBAL_KINDS = frozenset((ProjectObserved.KIND, LeaseChanged.KIND))
REFUSALS = ("refused", "stop", "let_go")
FAILURES = ("failed", "failure", "error")


def keys(event: Event) -> Iterable[Ref]:
    kind = event.kind
    if kind in LEASE_KINDS:
        return (LEASES.ref(ALL),)
    if not event.project:
        return ()
    key = project_key(event.project)
    if kind in LEARNING_KINDS:
        return (HABITS.ref(key),)
    # Looked at here, because every document that is named is loaded.
    refs = [PROJECT.ref(key)] if kind in CHANGES and _concerns_project(event) else []
    if kind in GLOBAL_KINDS:
        refs.append(GLOBAL.ref(ALL))
    if kind == GitActed.KIND:
        refs += [COMMIT.ref(sha) for sha in commits_of(event)]
    if concerns_activity(event):
        refs.append(ACTIVITY.ref(key))
    return refs


def _concerns_project(event: Event) -> bool:
    """Most decisions have nothing to do with gates that wait."""
    return event.kind != "decision.made" or any(detail.get("gate") in REFUSALS for detail in event.data.details)


def stream(ref: Ref) -> Mapping[str, str]:
    """Everything a project's documents come from names the project. A key that was shortened names none."""
    own = ref.kind in (PROJECT.kind, ACTIVITY.kind, HABITS.kind) and ref.key.startswith("/") and "#" not in ref.key
    return {"project": ref.key} if own else {}


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == PROJECT.kind:
        return _reduce_project(doc, event)
    if ref.kind == ACTIVITY.kind:
        return reduce_activity(doc, event)
    if ref.kind == COMMIT.kind:
        return reduce_commit(doc, event, ref.key)
    if ref.kind == HABITS.kind:
        return reduce_habits(doc, event)
    return reduce_leases(doc, event) if ref.kind == LEASES.kind else _reduce_global(doc, event)


def _reduce_project(doc: Project | None, event: Event) -> Project | None:
    before = doc or Project(project=event.project)
    after = CHANGES[event.kind](before, event)
    # The very same object: nothing changed.
    if after is before:
        return doc
    pid = event.data.get("pid") or 0
    after = update_tasks(before, with_changes(before, after, event.at, pid), event.at, pid)
    return replace(after, at=event.at, status=after.git.status or "unknown")


def _last_entries(entries: Mapping[str, Any], most: int) -> dict[str, Any]:
    return dict(list(entries.items())[-most:])


def _without_entry(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if key != name}


# ── what was seen ────────────────────────────────────────────────────────────────────────────────────────────────────


def _apply_observed(doc: Project, event: Event) -> Project:
    """Sections that are there replace what was known; `junit` holds test runs, `name` and `folder` are kept."""
    data: ProjectObserved = event.data
    facts = data.facts
    sections = {name: value for name in SECTIONS if (value := getattr(facts, name)) is not None}
    looked = {**doc.looked, **dict.fromkeys(sections, event.at)}
    after = replace(doc, **sections, looked=looked, sums={**doc.sums, **data.sums})
    for report in facts.junit or ():
        after = _with_run(after, _run_of_report(report, after.git.current_branch or ""))
    return replace(
        after,
        name=doc.name if facts.name is None else facts.name,
        folder=doc.folder if facts.folder is None else facts.folder,
    )


def _run_of_report(report: ReportRun, branch: str) -> CheckRun:
    verdict = Verdict.FAILED if report.failed else Verdict.PASSED
    return CheckRun(
        kind=CheckKind.TEST.value, runner=report.name, suite=report.name, command=report.name, branch=branch,
        verdict=verdict.value, passed=report.passed, failed=report.failed, skipped=report.skipped,
        failures=report.failures, why="the report says so", at=report.written,
    )  # fmt: skip


def _check_finished(doc: Project, event: Event) -> Project:
    check: CheckFinished = event.data
    return _with_run(doc, run_of_event(event)) if belongs_here(event) and not check.imported else doc


def _with_run(doc: Project, run: CheckRun) -> Project:
    after = add_run(doc.results, run)
    return doc if after is doc.results else replace(doc, results=after)


def _git_acted(doc: Project, event: Event) -> Project:
    """Which heads are commits, and which branch was made from which: the next look shows the rest."""
    act: GitActed = event.data
    # Another worktree of the repository is another project.
    if act.worktree and act.worktree.rstrip("/") != event.project.rstrip("/"):
        return doc
    after = doc
    if act.verb == "commit":
        heads = dict.fromkeys([*doc.commits, *(act.commits or [act.after.head])])
        after = replace(doc, commits=[head for head in heads if head][-MAX_COMMITS:])
    # The same commit under another branch: the branch was made from it.
    if act.before.branch != act.after.branch and act.before.head == act.after.head and act.after.branch:
        after = replace(after, results=copy_to_branch(doc.results, act.before.branch, act.after.branch, event.at))
    return after


def _area_validated(doc: Project, event: Event) -> Project:
    data: AreaValidated = event.data
    proof = AreaProof(data.since or event.at, data.command[:200])
    return replace(doc, area_proofs=_last_entries({**doc.area_proofs, **dict.fromkeys(data.what, proof)}, MAX_RULES))


def _rule_checked(doc: Project, event: Event) -> Project:
    data: RuleChecked = event.data
    rules = {**_without_entry(doc.own_rules, data.name), data.name: RuleOutcome(data.ok, data.exit_code, data.rule)}
    # Rules that the settings no longer name are dropped.
    current_names = set(data.names or rules)
    return replace(
        doc, own_rules=_last_entries({name: rule for name, rule in rules.items() if name in current_names}, MAX_RULES)
    )


def _time_passed(doc: Project, _event: Event) -> Project:
    """A new document with the same facts: the tasks are made anew at the event's time."""
    return replace(doc)


# ── what a person said ───────────────────────────────────────────────────────────────────────────────────────────────


def _task_added(doc: Project, event: Event) -> Project:
    data: TaskAdded = event.data
    task = OwnTask(
        key=event.key, description=data.description, priority=data.priority, done_when=data.done_when, why=data.why,
        blocks=data.blocks, minutes=data.minutes,
    )  # fmt: skip
    return replace(doc, own_tasks=[*doc.own_tasks, task][-MAX_OWN_TASKS:])


def _task_done(doc: Project, event: Event) -> Project:
    data: TaskDone = event.data
    return replace(doc, own_tasks=[task for task in doc.own_tasks if task.key != data.key])


def _task_dismissed(doc: Project, event: Event) -> Project:
    data: TaskDismissed = event.data
    identity = task_identity(data.type, data.key)
    dismissal = Dismissal(data.basis, data.reason[:300], event.at)
    return replace(
        doc, dismissed=_last_entries({**_without_entry(doc.dismissed, identity), identity: dismissal}, MAX_DISMISSED)
    )


def _document_adopted(doc: Project, event: Event) -> Project:
    """Its lines of history go behind what is known here; the newest line says what became of it."""
    data: DocumentAdopted = event.data
    lines = [HistoryLine(timestamp=one.at, section=one.section, summary=one.summary) for one in data.history]
    after = replace(doc, history=[*doc.history, *lines][:MAX_HISTORY], focus=data.focus or doc.focus)
    return with_line(after, event.at, 0, HistoryLine(section="TASKS", summary=describe_adoption(data)))


def _override_set(doc: Project, event: Event) -> Project:
    data: OverrideSet = event.data
    return replace(doc, override=data.name)


def _notion_pushed(doc: Project, event: Event) -> Project:
    data: NotionPushed = event.data
    return replace(doc, notion=data.state)


def _lease_changed(doc: Project, event: Event) -> Project:
    data: LeaseChanged = event.data
    locks = {**_without_entry(doc.locks, data.name), data.name: data.lock}
    if len(locks) > MAX_LOCKS:
        # A lock that nobody holds goes first.
        del locks[next((name for name, lock in locks.items() if not lock.is_held), next(iter(locks)))]
    after = replace(doc, locks=locks)
    if data.freed:
        line = HistoryLine(section=f"RESOURCE_LOCKS.{data.name}", summary=data.freed)
        return with_line(after, event.at, 0, line)
    return after


# ── what other features report ───────────────────────────────────────────────────────────────────────────────────────


def _with_others(doc: Project, **changes: Any) -> Project:
    others = replace(doc.others, **changes)
    return doc if others == doc.others else replace(doc, others=others)


def _gate_refused(doc: Project, event: Event) -> Project:
    waiting = dict(doc.others.gates)
    for detail in event.data.details:
        how = detail.get("gate")
        for name in requirement_names(detail.get("requirements") or ()) if how in REFUSALS else ():
            blocks = event.tool if how == "refused" else "end_of_turn"
            waiting[name] = WaitingGate(blocks, event.session, how == "let_go")
    return _with_others(doc, gates=_last_entries(waiting, MAX_NAMES))


def _gate_satisfied(doc: Project, event: Event) -> Project:
    done = set(requirement_names(event.get("requirements") or ()))
    return _with_others(doc, gates={k: v for k, v in doc.others.gates.items() if k not in done})


def _prompt_submitted(doc: Project, event: Event) -> Project:
    """A prompt after a refused end of turn: the turn did end, so what was asked for was done."""
    left = {
        name: gate
        for name, gate in doc.others.gates.items()
        if gate.session != event.session or gate.blocks != "end_of_turn" or gate.let_go
    }
    return _with_others(doc, gates=left)


def _session_over(doc: Project, event: Event) -> Project:
    """What a session that is gone did not satisfy is nobody's task."""
    return _with_others(doc, gates={k: v for k, v in doc.others.gates.items() if v.session != event.session})


def _uat_began(doc: Project, event: Event) -> Project:
    name = str((event.get("plan") or {}).get("name") or event.get("scenario") or "")[:100]
    runs = {**doc.others.uat_runs, str(event.get("uat")): UatRun(name, [])}
    return _with_others(doc, uat_runs=_last_entries(runs, MAX_NAMES))


def _uat_step(doc: Project, event: Event) -> Project:
    """What each step looked like last: one that failed may be tried again and pass."""
    key = str(event.get("uat"))
    run = doc.others.uat_runs.get(key)
    verdict = event.get("status") or event.get("result")
    failed = event.get("ok") is False or (isinstance(verdict, str) and verdict in FAILURES)
    step = str(event.get("step") or event.get("description") or "")[:100]
    if run is None or (step in run.failed_steps) == failed:
        return doc
    steps = [*run.failed_steps, step][-MAX_NAMES:] if failed else [one for one in run.failed_steps if one != step]
    return _with_others(doc, uat_runs={**doc.others.uat_runs, key: UatRun(run.name, steps)})


def _uat_ended(doc: Project, event: Event) -> Project:
    """The event's own word on the outcome goes before what its steps looked like."""
    runs = dict(doc.others.uat_runs)
    run = runs.pop(str(event.get("uat")), UatRun("", []))
    name = str(event.get("scenario") or run.name)[:100]
    outcome = str(event.get("outcome") or event.get("result") or "")
    failed = outcome in FAILURES if outcome else bool(run.failed_steps)
    other_failed = _without_entry(doc.others.uat_failed, name)
    scenarios = {**other_failed, name: event.at} if name and failed else other_failed
    return _with_others(doc, uat_runs=runs, uat_failed=_last_entries(scenarios, MAX_NAMES))


def _apply_index_run(doc: Project, event: Event) -> Project:
    status = str(event.get("status"))
    if status in ("completed", "unchanged"):
        return _with_others(doc, index_problem="")
    if status in ("failed", "timeout", "killed"):
        return _with_others(doc, index_problem=f"The last run {status}: {event.get('reason')}"[:200])
    return doc


CHANGES: dict[str, Callable[[Project, Event], Project]] = {
    ProjectObserved.KIND: _apply_observed,
    CheckFinished.KIND: _check_finished,
    GitActed.KIND: _git_acted,
    AreaValidated.KIND: _area_validated,
    RuleChecked.KIND: _rule_checked,
    TimePassed.KIND: _time_passed,
    TaskAdded.KIND: _task_added,
    TaskDone.KIND: _task_done,
    TaskDismissed.KIND: _task_dismissed,
    DocumentAdopted.KIND: _document_adopted,
    OverrideSet.KIND: _override_set,
    NotionPushed.KIND: _notion_pushed,
    LeaseChanged.KIND: _lease_changed,
    "decision.made": _gate_refused,
    "gates.satisfied": _gate_satisfied,
    "gates.approved": _gate_satisfied,
    "prompt.submitted": _prompt_submitted,
    **dict.fromkeys(SESSION_ENDS, _session_over),
    "uat.started": _uat_began,
    "uat.step": _uat_step,
    "uat.asserted": _uat_step,
    "uat.call_ended": _uat_step,
    "uat.ended": _uat_ended,
    "reindex.finished": _apply_index_run,
}
REDUCED_KINDS = frozenset((*CHANGES, *PROJECT_KINDS))


# ── what holds across projects ───────────────────────────────────────────────────────────────────────────────────────


def _reduce_global(doc: GlobalState | None, event: Event) -> GlobalState:
    before = doc or GlobalState()
    if isinstance(event.data, LeaseChanged):
        return _global_lock(before, event, event.data)
    project = before.projects.get(event.project) or KnownProject()
    seen = _known_project(project, event.data.facts)
    if seen == project:
        return before
    projects = {**_without_entry(before.projects, event.project), event.project: seen}
    return replace(before, projects=_last_entries(projects, MAX_PROJECTS), at=event.at)


def _known_project(project: KnownProject, facts: ProjectFacts) -> KnownProject:
    """Only what matters to other projects: most of what a project reports changes nothing here."""
    # Habits that several projects share would be counted again otherwise.
    own = project.habits if facts.patterns is None else [habit for habit in facts.patterns if not habit.projects]
    return KnownProject(
        name=project.name if facts.name is None else facts.name,
        folder=project.folder if facts.folder is None else facts.folder,
        status=project.status if facts.git is None else facts.git.status,
        habits=own[:MAX_SHARED_HABITS],
    )


def _global_lock(doc: GlobalState, event: Event, data: LeaseChanged) -> GlobalState:
    current_lock = doc.locks.get(data.name)
    if current_lock == data.lock or (current_lock is None and not data.lock.is_held):
        return doc
    locks = {**_without_entry(doc.locks, data.name), **({data.name: data.lock} if data.lock.is_held else {})}
    return replace(doc, locks=_last_entries(locks, MAX_GLOBAL_LOCKS), at=event.at)
