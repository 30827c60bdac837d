"""The table of gap rules: each looks at a project's facts and says what is missing. Pure; time is an argument."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.core.checks import Verdict
from holdfast.core.ports import Doc
from holdfast.features.project.check_results import CheckRun, count_failed, failing_suites
from holdfast.features.project.model import DAY, HOUR, MINUTE, iso, number, plural
from holdfast.features.project.validation import area_of, check_runs, unvalidated

PRIORITIES = ("P0", "P1", "P2", "P3")
NAMED = 5
"""So many files are named in a description or a criterion; the rest is counted."""


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


Rule = Callable[[Doc, int], Iterator[Gap]]


def open_gaps(doc: Doc, at: int) -> list[Gap]:
    """All gaps of this moment, the most pressing first. What the settings switch off or reprioritise is heeded."""
    dismissed = doc["dismissed"]
    off, moved = set(_rules(doc).get("off") or ()), _rules(doc).get("priorities") or {}
    found = [gap for rule in RULES for gap in rule(doc, at) if gap.type not in off]
    found = [gap for gap in found if (dismissed.get(task_identity(gap.type, gap.key)) or {}).get("basis") != gap.basis]
    placed = [msgspec.structs.replace(g, priority=moved.get(g.type, g.priority)) for g in found]
    return sorted(placed, key=lambda gap: PRIORITIES.index(gap.priority))


def task_identity(type_: str, key: str) -> str:
    return f"{type_} {key}"


def _digest(*parts: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


def _changes(files: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [[file["path"], file.get("changed") or file.get("modified")] for file in files]


def _rules(doc: Doc) -> Mapping[str, Any]:
    return doc["rules"]


def names(paths: Iterable[str]) -> str:
    listed = list(paths)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def duration(ms: int) -> str:
    if ms >= 2 * DAY:
        return f"{ms // DAY} days"
    return f"{ms // HOUR} hours" if ms >= 2 * HOUR else f"{max(1, ms // MINUTE)} minutes"


# ── P0: nothing else can go on ───────────────────────────────────────────────────────────────────────────────────────


def broken_tests(doc: Doc, _at: int) -> Iterator[Gap]:
    """One for each failing suite and folder."""
    for (folder, suite, branch), runs in failing_suites(check_runs(doc)).items():
        yield _broken_suite(f"{folder}:{suite}@{branch}", runs)


def _broken_suite(key: str, runs: list[CheckRun]) -> Gap:
    failed, last = count_failed(runs), max(runs, key=lambda run: run.at)
    failures = list(dict.fromkeys(name for run in runs for name in run.failures))
    counted = any(run.failed or run.failures for run in runs)
    where = f" in {last.dir}" if last.dir != "." else ""
    told = f" ({names(failures)})" if failures else ""
    commit = f", on commit {last.commit[:12]} or changes on top of it" if last.commit else ""
    return Gap(
        type="broken_tests",
        key=key,
        priority="P0",
        description=f"{plural(failed, 'test')} failing{where}" if counted else f"Tests failing{where}",
        why=f"`{last.command or last.runner}` failed at {iso(last.at)}{commit}: {last.why or 'it failed'}{told}.",
        done_when=(f"A run of {last.place} that includes what failed passes",),
        method="test_run",
        blocking=("commit", "push"),
        capabilities=("test_execution", "code_editing"),
        resources=tuple(f"test:{name}" for name in failures[:NAMED]),
        complexity="medium",
        minutes=15 * min(failed, 8),
        confidence=0.5,
        basis=_basis_of(runs),
    )


def _basis_of(runs: list[CheckRun]) -> str:
    """The content that failed. Where it is not known, the run itself: the next failure is another one."""
    return _digest(*(run.content or run.at for run in runs))


def unfinished_merge(doc: Doc, _at: int) -> Iterator[Gap]:
    git = doc["git"]
    doing, conflicts = git.get("doing") or "", git.get("conflicts") or []
    if not doing and not conflicts:
        return
    what = plural(len(conflicts), "conflict") if conflicts else f"a {doing} in progress"
    yield Gap(
        type="merge_conflict" if conflicts else "operation_in_progress",
        key=doing,
        priority="P0",
        description=f"{what.capitalize()} in the {doing or 'working tree'}" if conflicts else f"{what.capitalize()}",
        why=f"Git stopped in the middle of a {doing or 'merge'}"
        + (f"; both sides changed {names(conflicts)}." if conflicts else "."),
        done_when=("No file has a conflict", f"The {doing or 'merge'} is finished or given up"),
        method="git_status_check",
        blocking=("commit", "push", "switch_branch"),
        capabilities=("conflict_resolution", "git"),
        resources=("lock:git_repository", *(f"filesystem:{path}" for path in conflicts[:NAMED])),
        complexity="high" if len(conflicts) > 3 else "medium",
        minutes=10 + 5 * min(len(conflicts), 20),
        confidence=0.5,
        basis=_digest(doing, conflicts, git.get("head")),
    )


# ── P1: urgent ───────────────────────────────────────────────────────────────────────────────────────────────────────


def unvalidated_changes(doc: Doc, _at: int) -> Iterator[Gap]:
    """One gap for each area that has changes nobody proved, and one for all other files together."""
    areas = _rules(doc).get("areas") or {}
    by_area: dict[str, list[Mapping[str, Any]]] = {}
    for file in unvalidated(doc):
        by_area.setdefault(area_of(file["path"], areas), []).append(file)
    beyond = max(0, number(doc["git"].get("count")) - len(doc["git"].get("files") or ()))
    for area, files in by_area.items():
        yield _unvalidated(area, areas.get(area) or {}, files, beyond if not area else 0)


def _unvalidated(area: str, said: Mapping[str, Any], files: list[Mapping[str, Any]], beyond: int) -> Gap:
    paths = [str(file["path"]) for file in files]
    count = len(paths) + beyond
    noun = str(said.get("noun") or "files")
    noun = noun.removesuffix("s") if count == 1 else noun
    folders = dict.fromkeys(p.rpartition("/")[0] + "/" for p in paths if "/" in p)
    resources = [f"filesystem:{folder}" for folder in folders][:NAMED] or [f"filesystem:{p}" for p in paths[:NAMED]]
    return Gap(
        type="unvalidated_changes",
        key=area,
        priority="P1",
        description=f"{count} uncommitted {noun} {'needs' if count == 1 else 'need'} validation",
        why=f"No check that covers them passed since their last change: {names(paths)}.",
        done_when=tuple(
            said.get("done_when")
            or ("Tests of their folder, or a checker of their file types, pass after the last change",)
        ),
        method="git_status_check",
        blocking=tuple(said.get("blocks") or ("commit",)),
        capabilities=tuple(said.get("capabilities") or ("test_execution",)),
        resources=(*resources, *(f"lock:{name}" for name in said.get("locks") or ())),
        complexity="low" if count <= 10 else "medium",
        minutes=5 if count <= 10 else 15,
        confidence=0.9 if said.get("validate") else 0.7,
        basis=_digest(_changes(files)),
    )


def unpushed_commits(doc: Doc, at: int) -> Iterator[Gap]:
    git = doc["git"]
    since, limit = number(git.get("unpushed_since")), number(_rules(doc).get("unpushed_hours")) or 24
    if not number(git.get("ahead")) or not since or at - since < limit * HOUR:
        return
    yield Gap(
        type="unpushed_commits",
        priority="P1",
        description=f"{plural(git['ahead'], 'commit')} not pushed for {duration(at - since)}",
        why=f"The oldest commit that {git.get('upstream') or 'the upstream'} lacks is older than {limit} hours.",
        done_when=("The branch is not ahead of its upstream",),
        method="git_status_check",
        capabilities=("git",),
        resources=("lock:git_repository",),
        minutes=2,
        confidence=0.9,
        basis=str(git.get("head") or ""),
    )


def out_of_sync(doc: Doc, _at: int) -> Iterator[Gap]:
    for name, tree in doc["trees"].items():
        if tree.get("in_sync") is not False:
            continue
        differing = tree.get("differing") or []
        yield Gap(
            type="tree_out_of_sync",
            key=name,
            priority="P1",
            description=f"{name} is not in sync with {tree.get('source')}",
            why=f"The content differs: {names(differing)}." if differing else "The content differs.",
            done_when=(f"Every file of {tree.get('source')} has the same content in {name}",),
            method="tree_comparison",
            blocking=("deploy",),
            capabilities=("deployment",),
            resources=(f"filesystem:{tree.get('path')}", f"lock:{name}"),
            minutes=5,
            confidence=0.8,
            basis=_digest(differing, tree.get("modified")),
        )


def unsatisfied_gates(doc: Doc, _at: int) -> Iterator[Gap]:
    waiting = doc["elsewhere"].get("gates") or {}
    if waiting:
        yield Gap(
            type="unsatisfied_gates",
            priority="P1",
            description=f"{plural(len(waiting), 'requirement')} not satisfied: {names(waiting)}",
            why="A gate refused, and what it asks for has not been done since.",
            done_when=tuple(f"{name} is satisfied" for name in list(waiting)[:NAMED]),
            method="gate_refusal",
            blocking=tuple(sorted({str(one.get("blocks")) for one in waiting.values() if one.get("blocks")})),
            capabilities=("review",),
            minutes=10,
            confidence=0.6,
            basis=_digest(sorted(waiting)),
        )


def uat_failures(doc: Doc, _at: int) -> Iterator[Gap]:
    failed = doc["elsewhere"].get("uat") or {}
    if failed:
        yield Gap(
            type="uat_failures",
            priority="P1",
            description=f"{plural(len(failed), 'UAT scenario')} failed: {names(failed)}",
            why="The last run of each ended in a failure.",
            done_when=tuple(f"{name} passes" for name in list(failed)[:NAMED]),
            method="uat_report",
            blocking=("release",),
            capabilities=("acceptance_testing",),
            complexity="medium",
            minutes=20 * min(len(failed), 6),
            confidence=0.5,
            basis=_digest(failed),
        )


def stuck_leases(doc: Doc, at: int) -> Iterator[Gap]:
    for name, lock in doc["locks"].items():
        until = number(lock.get("until"))
        if lock.get("pid") and until and at > until:
            yield Gap(
                type="stuck_lease",
                key=name,
                priority="P1",
                description=f"{name} is held by process {lock['pid']} beyond its time",
                why=f"It was to be free {duration(at - until)} ago, and its owner has not asked for more time.",
                done_when=(f"{name} is released, or its owner renews it",),
                method="lease_check",
                blocking=(f"lock:{name}",),
                resources=(f"lock:{name}",),
                minutes=2,
                confidence=0.7,
                basis=_digest(lock.get("token"), until),
            )


def own_rules(doc: Doc, _at: int) -> Iterator[Gap]:
    """Gap rules of the user's own: a command and the exit code it should have."""
    for name, check in doc["checks"].items():
        rule = check.get("rule") or {}
        if check.get("ok") is False:
            yield Gap(
                type="own_rule",
                key=name,
                priority=rule.get("priority") or "P2",
                description=str(rule.get("description") or f"The check {name} does not hold"),
                why=f"`{rule.get('command')}` ended with {check.get('exit_code')}, not {rule.get('exit_code') or 0}.",
                done_when=tuple(rule.get("done_when") or (f"`{rule.get('command')}` ends as it should",)),
                method="own_rule",
                blocking=tuple(rule.get("blocks") or ()),
                minutes=number(rule.get("minutes")) or 10,
                confidence=0.5,
                basis=_digest(rule, check.get("exit_code")),
            )


def own_tasks(doc: Doc, _at: int) -> Iterator[Gap]:
    for task in doc["own"]:
        yield Gap(
            type="own_task",
            key=str(task["key"]),
            priority=task["priority"],
            description=task["description"],
            why=task.get("why") or "Somebody asked for it.",
            done_when=tuple(task.get("done_when") or ("Somebody says that it is done",)),
            method="added_by_command",
            blocking=tuple(task.get("blocks") or ()),
            minutes=number(task.get("minutes")) or 30,
            confidence=0.3,
        )


# ── P2: maintenance ──────────────────────────────────────────────────────────────────────────────────────────────────


def tests_not_started(doc: Doc, _at: int) -> Iterator[Gap]:
    for run in check_runs(doc):
        if run.verdict == Verdict.DID_NOT_RUN:
            yield Gap(
                type="tests_not_started",
                key=f"{run.dir}:{run.suite}@{run.branch}",
                priority="P2",
                description=f"The tests could not be started: {run.place}, {run.why}"[:200],
                why=f"`{run.command or run.runner}` at {iso(run.at)}: {run.why}. Whether the tests pass is not known.",
                done_when=(f"{run.place} starts, whether its tests pass or fail",),
                method="test_run",
                capabilities=("test_execution",),
                minutes=10,
                confidence=0.5,
                basis=_basis_of([run]),
            )


def old_uncommitted_work(doc: Doc, at: int) -> Iterator[Gap]:
    git = doc["git"]
    oldest, limit = number(git.get("oldest_change")), number(_rules(doc).get("uncommitted_hours")) or 4
    if not number(git.get("count")) or not oldest or at - oldest < limit * HOUR:
        return
    yield Gap(
        type="old_uncommitted_work",
        priority="P2",
        description=f"{plural(git['count'], 'file')} uncommitted for up to {duration(at - oldest)}",
        why=f"Work that is not committed after {limit} hours is easily lost or mixed up with the next task.",
        done_when=("The changes are committed, stashed or thrown away",),
        method="git_status_check",
        capabilities=("git",),
        resources=("lock:git_repository",),
        minutes=10,
        confidence=0.7,
        basis=_digest(_changes(git.get("files") or ())),
    )


def stale_index(doc: Doc, _at: int) -> Iterator[Gap]:
    index = doc["elsewhere"].get("index") or {}
    if index.get("stale"):
        yield Gap(
            type="stale_index",
            priority="P2",
            description="The code index does not show the present code",
            why=str(index.get("why") or "The last run of the index did not end well."),
            done_when=("A run of the index ends well",),
            method="index_report",
            blocking=("search",),
            capabilities=("indexing",),
            minutes=5,
            confidence=0.8,
            basis=_digest(index),
        )


# ── P3: improvements ─────────────────────────────────────────────────────────────────────────────────────────────────


def new_todos(doc: Doc, _at: int) -> Iterator[Gap]:
    todos = doc.get("todos") or {}
    count, places = number(todos.get("count")), todos.get("places") or []
    if count:
        yield Gap(
            type="todos_added",
            priority="P3",
            description=f"{plural(count, 'TODO or FIXME', 'TODOs or FIXMEs')} added on this branch",
            why=f"They are in {names(places)}.",
            done_when=("The branch adds no TODO or FIXME",),
            method="branch_diff",
            capabilities=("code_editing",),
            resources=tuple(f"filesystem:{place.partition(':')[0]}" for place in places[:NAMED]),
            complexity="medium",
            minutes=15 * min(count, 8),
            confidence=0.3,
            basis=_digest(places),
        )


def untracked_sources(doc: Doc, _at: int) -> Iterator[Gap]:
    found = doc["git"].get("untracked_sources") or []
    if found:
        yield Gap(
            type="untracked_sources",
            priority="P3",
            description=f"{plural(len(found), 'untracked file')} like source code",
            why=f"Git does not know {names(found)}; a commit would leave them out.",
            done_when=("Each of them is added or ignored",),
            method="git_status_check",
            capabilities=("git",),
            resources=tuple(f"filesystem:{path}" for path in found[:NAMED]),
            minutes=3,
            confidence=0.8,
            basis=_digest(found),
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
