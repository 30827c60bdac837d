"""From events to documents: which of them an event touches, and what each kind changes."""

# Pure, as every reducer is.

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import convert
from msgspec.structs import asdict, replace

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
    RuleChecked,
    TaskAdded,
    TaskDismissed,
    TaskDone,
    TimePassed,
    TurnSummed,
)
from holdfast.core.ports import Doc, Ref
from holdfast.features.project.document.adoption import describe_adoption
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
    # Checked here, because every document that is named is loaded.
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
    return REDUCERS[ref.kind](doc, event, ref)


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


def _with_entry(entries: Mapping[str, Any], name: str, value: Any, most: int) -> dict[str, Any]:
    """As the last one; the oldest go."""
    return _last_entries({**_without_entry(entries, name), name: value}, most)


# ── what was seen ────────────────────────────────────────────────────────────────────────────────────────────────────


def _apply_observed(doc: Project, event: Event) -> Project:
    """Sections that are there replace what was known; `junit` holds test runs."""
    data: ProjectObserved = event.data
    facts = {name: value for name in data.facts.__struct_fields__ if (value := getattr(data.facts, name)) is not None}
    reports = facts.pop("junit", ())
    looked = {**doc.looked, **{name: event.at for name in facts if name in SECTIONS}}
    after = replace(doc, **facts, looked=looked, sums={**doc.sums, **data.sums}, fates=data.fates)
    for report in reports:
        run = CheckRun(
            kind=CheckKind.TEST.value, runner=report.name, suite=report.name, command=report.name,
            branch=after.git.current_branch or "", verdict=(Verdict.FAILED if report.failed else Verdict.PASSED).value,
            passed=report.passed, failed=report.failed, skipped=report.skipped, failures=report.failures,
            why="the report says so", at=report.written,
        )  # fmt: skip
        after = _with_run(after, run)
    return after


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
    rules = _with_entry(doc.own_rules, data.name, RuleOutcome(data.ok, data.exit_code, data.rule), MAX_RULES)
    # Rules that the settings no longer name are dropped.
    return replace(doc, own_rules={name: rule for name, rule in rules.items() if not data.names or name in data.names})


# ── what a person said ───────────────────────────────────────────────────────────────────────────────────────────────


def _task_added(doc: Project, event: Event) -> Project:
    task = convert({**asdict(event.data), "key": event.key}, OwnTask)
    return replace(doc, own_tasks=[*doc.own_tasks, task][-MAX_OWN_TASKS:])


def _task_done(doc: Project, event: Event) -> Project:
    return replace(doc, own_tasks=[task for task in doc.own_tasks if task.key != event.data.key])


def _task_dismissed(doc: Project, event: Event) -> Project:
    data: TaskDismissed = event.data
    dismissal = Dismissal(data.basis, data.reason[:300], event.at)
    identity = task_identity(data.type, data.key)
    return replace(doc, dismissed=_with_entry(doc.dismissed, identity, dismissal, MAX_DISMISSED))


def _document_adopted(doc: Project, event: Event) -> Project:
    """Its lines of history go behind what is known here; the newest line says what became of it."""
    data: DocumentAdopted = event.data
    lines = [HistoryLine(timestamp=one.at, section=one.section, summary=one.summary) for one in data.history]
    after = replace(doc, history=[*doc.history, *lines][:MAX_HISTORY], focus=data.focus or doc.focus)
    return with_line(after, event.at, 0, HistoryLine(section="TASKS", summary=describe_adoption(data)))


def _lease_changed(doc: Project, event: Event) -> Project:
    data: LeaseChanged = event.data
    locks = _with_entry(doc.locks, data.name, data.lock, MAX_LOCKS + 1)
    if len(locks) > MAX_LOCKS:
        # A lock that nobody holds goes first.
        del locks[next((name for name, lock in locks.items() if not lock.is_held), next(iter(locks)))]
    after = replace(doc, locks=locks)
    line = HistoryLine(section=f"RESOURCE_LOCKS.{data.name}", summary=data.freed)
    return with_line(after, event.at, 0, line) if data.freed else after


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


def _without_gates(doc: Project, is_over: Callable[[str, WaitingGate], bool]) -> Project:
    return _with_others(doc, gates={name: gate for name, gate in doc.others.gates.items() if not is_over(name, gate)})


def _gate_satisfied(doc: Project, event: Event) -> Project:
    done = set(requirement_names(event.get("requirements") or ()))
    return _without_gates(doc, lambda name, _: name in done)


def _prompt_submitted(doc: Project, event: Event) -> Project:
    """A prompt after a refused end of turn: the turn did end, so what was asked for was done."""
    return _without_gates(
        doc, lambda _, gate: gate.session == event.session and gate.blocks == "end_of_turn" and not gate.let_go
    )


def _session_over(doc: Project, event: Event) -> Project:
    """What a session that is gone did not satisfy is nobody's task."""
    return _without_gates(doc, lambda _, gate: gate.session == event.session)


def _uat_began(doc: Project, event: Event) -> Project:
    name = str((event.get("plan") or {}).get("name") or event.get("scenario") or "")[:100]
    return _with_others(doc, uat_runs=_with_entry(doc.others.uat_runs, event.data.uat, UatRun(name, []), MAX_NAMES))


def _uat_step(doc: Project, event: Event) -> Project:
    """The latest result of each step: one that failed may be tried again and pass."""
    key = event.data.uat
    run = doc.others.uat_runs.get(key)
    failed = event.get("ok") is False or (event.get("status") or event.get("result")) in FAILURES
    step = str(event.get("step") or event.get("description") or "")[:100]
    if run is None or (step in run.failed_steps) == failed:
        return doc
    others = [one for one in run.failed_steps if one != step]
    steps = [*others, step][-MAX_NAMES:] if failed else others
    return _with_others(doc, uat_runs={**doc.others.uat_runs, key: UatRun(run.name, steps)})


def _uat_ended(doc: Project, event: Event) -> Project:
    """The event's own outcome goes before what its steps looked like."""
    run = doc.others.uat_runs.get(event.data.uat, UatRun("", []))
    name = str(event.get("scenario") or run.name)[:100]
    outcome = str(event.get("outcome") or event.get("result") or "")
    is_failed = outcome in FAILURES if outcome else bool(run.failed_steps)
    failed = _without_entry(doc.others.uat_failed, name)
    if name and is_failed:
        failed = _with_entry(failed, name, event.at, MAX_NAMES)
    return _with_others(doc, uat_runs=_without_entry(doc.others.uat_runs, event.data.uat), uat_failed=failed)


def _apply_index_run(doc: Project, event: Event) -> Project:
    status = event.get("status")
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
    # The same facts in a new document: the tasks are made again at the event's time.
    TimePassed.KIND: lambda doc, _: replace(doc),
    TaskAdded.KIND: _task_added,
    TaskDone.KIND: _task_done,
    TaskDismissed.KIND: _task_dismissed,
    DocumentAdopted.KIND: _document_adopted,
    OverrideSet.KIND: lambda doc, event: replace(doc, override=event.data.name),
    NotionPushed.KIND: lambda doc, event: replace(doc, notion=event.data.state),
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
    return replace(before, projects=_with_entry(before.projects, event.project, seen, MAX_PROJECTS), at=event.at)


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


REDUCERS: dict[str, Callable[[Any, Event, Ref], Doc | None]] = {
    PROJECT.kind: lambda doc, event, _: _reduce_project(doc, event),
    ACTIVITY.kind: lambda doc, event, _: reduce_activity(doc, event),
    COMMIT.kind: lambda doc, event, ref: reduce_commit(doc, event, ref.key),
    HABITS.kind: lambda doc, event, _: reduce_habits(doc, event),
    LEASES.kind: lambda doc, event, _: reduce_leases(doc, event),
    GLOBAL.kind: lambda doc, event, _: _reduce_global(doc, event),
}
