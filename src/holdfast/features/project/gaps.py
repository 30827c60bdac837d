"""The table of gap rules: each looks at a project's facts and says what is missing. Pure; time is an argument."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

import msgspec

from holdfast.core.checks import Verdict
from holdfast.core.kinds.project_events import AreaRules, ChangedFile
from holdfast.core.times import DAY, HOUR, MINUTE
from holdfast.features.project.document.text import count_with_noun, iso_time
from holdfast.features.project.state import CheckRun, Project, task_identity
from holdfast.features.project.state.check_results import (
    area_of,
    check_runs,
    count_failed,
    failing_suites,
    unvalidated_files,
)

PRIORITIES = ("P0", "P1", "P2", "P3")
DEFAULT_PRIORITY = "P2"
NAMED = 5
"""So many files are named in a description or a criterion; the rest is counted."""
# Hours until unpushed and uncommitted work counts as a gap, unless the settings say otherwise.
UNPUSHED_HOURS, UNCOMMITTED_HOURS = 24, 4


class Gap(msgspec.Struct, kw_only=True, frozen=True):
    """Something that should be true and is not. `key` tells two gaps of one type apart; it lasts as the gap does."""

    type: str
    key: str = ""
    priority: str
    description: str
    why: str
    done_when: tuple[str, ...]
    method: str
    blocking: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    complexity: str = "low"
    minutes: int = 5
    confidence: float = 0.8
    basis: str = ""
    """What it was found on, e.g. the fingerprint of the content: a task that was dismissed returns when this changes."""
    seen_at: int = 0
    """When it was seen; 0 for what the next look at git shows again."""

    @property
    def identity(self) -> str:
        return task_identity(self.type, self.key)


Rule = Callable[[Project, int], Iterator[Gap]]


def open_gaps(doc: Project, at: int) -> list[Gap]:
    """All gaps of this moment, the most pressing first, without those that are switched off or dismissed."""
    # Rules run in order and sorting is stable: gaps of one priority keep the order of the table.
    gaps = [gap for rule in RULES for gap in rule(doc, at) if gap.type not in doc.rules.off]
    not_dismissed = [gap for gap in gaps if not _is_dismissed(doc, gap)]
    placed = [msgspec.structs.replace(g, priority=doc.rules.priorities.get(g.type, g.priority)) for g in not_dismissed]
    return sorted(placed, key=lambda gap: PRIORITIES.index(gap.priority))


def _is_dismissed(doc: Project, gap: Gap) -> bool:
    dismissal = doc.dismissed.get(gap.identity)
    # A dismissal holds for what the gap was found on; with another basis it is a new one.
    return dismissal is not None and dismissal.basis == gap.basis


def _parts_digest(*parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


def _state_of(files: Iterable[ChangedFile]) -> list[tuple[str, int]]:
    return [(file.path, file.last_change) for file in files]


def join_names(paths: Iterable[str]) -> str:
    listed = list(paths)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def format_duration(ms: int) -> str:
    if ms >= 2 * DAY:
        return f"{ms // DAY} days"
    return f"{ms // HOUR} hours" if ms >= 2 * HOUR else f"{max(1, ms // MINUTE)} minutes"


# ── P0: nothing else can continue ───────────────────────────────────────────────────────────────────────────────────────


def broken_tests(doc: Project, _at: int) -> Iterator[Gap]:
    """One for each failing suite and folder."""
    for (folder, suite, branch), runs in failing_suites(check_runs(doc)).items():
        yield _broken_suite(f"{folder}:{suite}@{branch}", runs)


def _broken_suite(key: str, runs: list[CheckRun]) -> Gap:
    failed, last = count_failed(runs), max(runs, key=lambda run: run.at)
    failures = list(dict.fromkeys(name for run in runs for name in run.failures))
    counted = any(run.failed or run.failures for run in runs)
    where = f" in {last.dir}" if last.dir != "." else ""
    failed_names = f" ({join_names(failures)})" if failures else ""
    commit = f", on commit {last.commit[:12]} or changes on top of it" if last.commit else ""
    return Gap(
        type="broken_tests",
        key=key,
        priority="P0",
        description=f"{count_with_noun(failed, 'test')} failing{where}" if counted else f"Tests failing{where}",
        why=f"`{last.command or last.runner}` failed at {iso_time(last.at)}{commit}: {last.why or 'it failed'}{failed_names}.",
        done_when=(f"A run of {last.place} that includes what failed passes",),
        method="test_run",
        blocking=("commit", "push"),
        capabilities=("test_execution", "code_editing"),
        resources=tuple(f"test:{name}" for name in failures[:NAMED]),
        complexity="medium",
        minutes=15 * min(failed, 8),
        confidence=0.5,
        basis=_basis_of(runs),
        seen_at=last.at,
    )


def _basis_of(runs: list[CheckRun]) -> str:
    """The content that failed. Where it is not known, the run itself: the next failure is another one."""
    return _parts_digest(*(run.content or run.at for run in runs))


def unfinished_merge(doc: Project, _at: int) -> Iterator[Gap]:
    git = doc.git
    doing, conflicts = git.doing, git.conflicts
    if not doing and not conflicts:
        return
    what = count_with_noun(len(conflicts), "conflict") if conflicts else f"a {doing} in progress"
    yield Gap(
        type="merge_conflict" if conflicts else "operation_in_progress",
        key=doing,
        priority="P0",
        description=f"{what.capitalize()} in the {doing or 'working tree'}" if conflicts else f"{what.capitalize()}",
        why=f"Git stopped in the middle of a {doing or 'merge'}"
        + (f"; both sides changed {join_names(conflicts)}." if conflicts else "."),
        done_when=("No file has a conflict", f"The {doing or 'merge'} is finished or given up"),
        method="git_status_check",
        blocking=("commit", "push", "switch_branch"),
        capabilities=("conflict_resolution", "git"),
        resources=("lock:git_repository", *(f"filesystem:{path}" for path in conflicts[:NAMED])),
        complexity="high" if len(conflicts) > 3 else "medium",
        minutes=10 + 5 * min(len(conflicts), 20),
        confidence=0.5,
        basis=_parts_digest(doing, conflicts, git.head),
    )


# ── P1: urgent ───────────────────────────────────────────────────────────────────────────────────────────────────────


def unvalidated_changes(doc: Project, _at: int) -> Iterator[Gap]:
    """One gap for each area that has changes nothing proved, and one for all other files together."""
    areas = doc.rules.areas
    by_area: dict[str, list[ChangedFile]] = {}
    for file in unvalidated_files(doc):
        by_area.setdefault(area_of(file.path, areas), []).append(file)
    # Git's list is cut, its count is not: the rest is counted with the files of no area.
    unlisted = max(0, doc.git.count - len(doc.git.files))
    for area, files in by_area.items():
        yield _unvalidated_gap(area, areas.get(area) or AreaRules(), files, unlisted if not area else 0)


def _unvalidated_gap(area: str, rules: AreaRules, files: list[ChangedFile], unlisted: int) -> Gap:
    paths = [file.path for file in files]
    count, noun = len(paths) + unlisted, rules.noun or "files"
    noun = noun.removesuffix("s") if count == 1 else noun
    folders = dict.fromkeys(p.rpartition("/")[0] + "/" for p in paths if "/" in p)
    resources = [f"filesystem:{folder}" for folder in folders][:NAMED] or [f"filesystem:{p}" for p in paths[:NAMED]]
    usual = "Tests of their folder, or a checker of their file types, pass after the last change"
    return Gap(
        type="unvalidated_changes",
        key=area,
        priority="P1",
        description=f"{count} uncommitted {noun} {'needs' if count == 1 else 'need'} validation",
        why=f"No check that covers them passed since their last change: {join_names(paths)}.",
        done_when=tuple(rules.done_when or (usual,)),
        method="git_status_check",
        blocking=tuple(rules.blocks or ("commit",)),
        capabilities=tuple(rules.capabilities or ("test_execution",)),
        resources=(*resources, *(f"lock:{name}" for name in rules.locks)),
        complexity="low" if count <= 10 else "medium",
        minutes=5 if count <= 10 else 15,
        confidence=0.9 if rules.validate else 0.7,
        basis=_parts_digest(_state_of(files)),
    )


def unpushed_commits(doc: Project, at: int) -> Iterator[Gap]:
    git, limit = doc.git, doc.rules.unpushed_hours or UNPUSHED_HOURS
    # Measured from the oldest commit that was not pushed.
    if not git.ahead or not git.unpushed_since or at - git.unpushed_since < limit * HOUR:
        return
    yield Gap(
        type="unpushed_commits",
        priority="P1",
        description=f"{count_with_noun(git.ahead, 'commit')} not pushed for {format_duration(at - git.unpushed_since)}",
        why=f"The oldest commit that {git.upstream or 'the upstream'} lacks is older than {limit} hours.",
        done_when=("The branch is not ahead of its upstream",),
        method="git_status_check",
        capabilities=("git",),
        resources=("lock:git_repository",),
        minutes=2,
        confidence=0.9,
        basis=git.head,
    )


def out_of_sync(doc: Project, _at: int) -> Iterator[Gap]:
    for name, tree in doc.trees.items():
        if tree.in_sync is not False:
            continue
        yield Gap(
            type="tree_out_of_sync",
            key=name,
            priority="P1",
            description=f"{name} is not in sync with {tree.source}",
            why=f"The content differs: {join_names(tree.differing)}." if tree.differing else "The content differs.",
            done_when=(f"Every file of {tree.source} has the same content in {name}",),
            method="tree_comparison",
            blocking=("deploy",),
            capabilities=("deployment",),
            resources=(f"filesystem:{tree.path}", f"lock:{name}"),
            minutes=5,
            confidence=0.8,
            basis=_parts_digest(tree.differing, tree.modified),
            seen_at=doc.looked.get("trees", 0),
        )


def unsatisfied_gates(doc: Project, _at: int) -> Iterator[Gap]:
    waiting = doc.others.gates
    if waiting:
        yield Gap(
            type="unsatisfied_gates",
            priority="P1",
            description=f"{count_with_noun(len(waiting), 'requirement')} not satisfied: {join_names(waiting)}",
            why="A gate refused, and what it asks for has not been done since.",
            done_when=tuple(f"{name} is satisfied" for name in list(waiting)[:NAMED]),
            method="gate_refusal",
            blocking=tuple(sorted({gate.blocks for gate in waiting.values() if gate.blocks})),
            capabilities=("review",),
            minutes=10,
            confidence=0.6,
            basis=_parts_digest(sorted(waiting)),
        )


def uat_failures(doc: Project, _at: int) -> Iterator[Gap]:
    failed = doc.others.uat_failed
    if failed:
        yield Gap(
            type="uat_failures",
            priority="P1",
            description=f"{count_with_noun(len(failed), 'UAT scenario')} failed: {join_names(failed)}",
            why="The last run of each ended in a failure.",
            done_when=tuple(f"{name} passes" for name in list(failed)[:NAMED]),
            method="uat_report",
            blocking=("release",),
            capabilities=("acceptance_testing",),
            complexity="medium",
            minutes=20 * min(len(failed), 6),
            confidence=0.5,
            basis=_parts_digest(failed),
            seen_at=max(failed.values()),
        )


def stuck_leases(doc: Project, at: int) -> Iterator[Gap]:
    for name, lock in doc.locks.items():
        if lock.pid and lock.until and at > lock.until:
            yield Gap(
                type="stuck_lease",
                key=name,
                priority="P1",
                description=f"{name} is held by process {lock.pid} beyond its time",
                why=f"It was to be free {format_duration(at - lock.until)} ago, "
                "and its owner has not asked for more time.",
                done_when=(f"{name} is released, or its owner renews it",),
                method="lease_check",
                blocking=(f"lock:{name}",),
                resources=(f"lock:{name}",),
                minutes=2,
                confidence=0.7,
                basis=_parts_digest(lock.token, lock.until),
            )


def own_rules(doc: Project, _at: int) -> Iterator[Gap]:
    """Gap rules of the user's own: a command and the exit code it should have."""
    for name, outcome in doc.own_rules.items():
        rule = outcome.rule
        if outcome.ok is False:
            yield Gap(
                type="own_rule",
                key=name,
                priority=_valid_priority(rule.priority),
                description=rule.description or f"The check {name} does not hold",
                why=f"`{rule.command}` ended with {outcome.exit_code}, not {rule.exit_code}.",
                done_when=tuple(rule.done_when or (f"`{rule.command}` ends as it should",)),
                method="own_rule",
                blocking=tuple(rule.blocks),
                minutes=rule.minutes or 10,
                confidence=0.5,
                basis=_parts_digest(rule, outcome.exit_code),
            )


def own_tasks(doc: Project, _at: int) -> Iterator[Gap]:
    for task in doc.own_tasks:
        yield Gap(
            type="own_task",
            key=task.key,
            priority=_valid_priority(task.priority),
            description=task.description,
            why=task.why or "Somebody asked for it.",
            done_when=tuple(task.done_when or ("Somebody says that it is done",)),
            method="added_by_command",
            blocking=tuple(task.blocks),
            minutes=task.minutes or 30,
            confidence=0.3,
        )


def _valid_priority(priority: str) -> str:
    return priority if priority in PRIORITIES else DEFAULT_PRIORITY


# ── P2: maintenance ──────────────────────────────────────────────────────────────────────────────────────────────────


def tests_not_started(doc: Project, _at: int) -> Iterator[Gap]:
    for run in check_runs(doc):
        if run.verdict == Verdict.DID_NOT_RUN:
            yield Gap(
                type="tests_not_started",
                key=f"{run.dir}:{run.suite}@{run.branch}",
                priority="P2",
                description=f"The tests could not be started: {run.place}, {run.why}"[:200],
                why=f"`{run.command or run.runner}` at {iso_time(run.at)}: {run.why}. Whether the tests pass is not known.",
                done_when=(f"{run.place} starts, whether its tests pass or fail",),
                method="test_run",
                capabilities=("test_execution",),
                minutes=10,
                confidence=0.5,
                basis=_basis_of([run]),
                seen_at=run.at,
            )


def old_uncommitted_work(doc: Project, at: int) -> Iterator[Gap]:
    git, limit = doc.git, doc.rules.uncommitted_hours or UNCOMMITTED_HOURS
    if not git.count or not git.oldest_change or at - git.oldest_change < limit * HOUR:
        return
    yield Gap(
        type="old_uncommitted_work",
        priority="P2",
        description=f"{count_with_noun(git.count, 'file')} uncommitted for up to {format_duration(at - git.oldest_change)}",
        why=f"Work that is not committed after {limit} hours is easily lost or mixed up with the next task.",
        done_when=("The changes are committed, stashed or thrown away",),
        method="git_status_check",
        capabilities=("git",),
        resources=("lock:git_repository",),
        minutes=10,
        confidence=0.7,
        basis=_parts_digest(_state_of(git.files)),
    )


def stale_index(doc: Project, _at: int) -> Iterator[Gap]:
    if doc.others.index_problem:
        yield Gap(
            type="stale_index",
            priority="P2",
            description="The code index does not show the present code",
            why=doc.others.index_problem,
            done_when=("A run of the index ends well",),
            method="index_report",
            blocking=("search",),
            capabilities=("indexing",),
            minutes=5,
            confidence=0.8,
            basis=_parts_digest(doc.others.index_problem),
        )


# ── P3: improvements ─────────────────────────────────────────────────────────────────────────────────────────────────


def new_todos(doc: Project, _at: int) -> Iterator[Gap]:
    count, locations = doc.todos.count, doc.todos.places
    if count:
        yield Gap(
            type="todos_added",
            priority="P3",
            description=f"{count_with_noun(count, 'TODO or FIXME', 'TODOs or FIXMEs')} added on this branch",
            why=f"They are in {join_names(locations)}.",
            done_when=("The branch adds no TODO or FIXME",),
            method="branch_diff",
            capabilities=("code_editing",),
            resources=tuple(f"filesystem:{location.partition(':')[0]}" for location in locations[:NAMED]),
            complexity="medium",
            minutes=15 * min(count, 8),
            confidence=0.3,
            basis=_parts_digest(locations),
            seen_at=doc.looked.get("todos", 0),
        )


def untracked_sources(doc: Project, _at: int) -> Iterator[Gap]:
    paths = doc.git.untracked_sources
    if paths:
        yield Gap(
            type="untracked_sources",
            priority="P3",
            description=f"{count_with_noun(len(paths), 'untracked file')} like source code",
            why=f"Git does not know {join_names(paths)}; a commit would leave them out.",
            done_when=("Each of them is added or ignored",),
            method="git_status_check",
            capabilities=("git",),
            resources=tuple(f"filesystem:{path}" for path in paths[:NAMED]),
            minutes=3,
            confidence=0.8,
            basis=_parts_digest(paths),
        )


RULES: tuple[Rule, ...] = (
    broken_tests,
    unfinished_merge,
    unvalidated_changes,
    unpushed_commits,
    out_of_sync,
    unsatisfied_gates,
    uat_failures,
    stuck_leases,
    own_rules,
    own_tasks,
    tests_not_started,
    old_uncommitted_work,
    stale_index,
    new_todos,
    untracked_sources,
)
