"""The gap rules: each looks at a project's facts and yields what is missing."""

# Pure; time is an argument.

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import msgspec

from holdfast.core.checks import Verdict
from holdfast.core.data_files import load_data
from holdfast.core.kinds.project_events import AreaRules, ChangedFile, CheckRule
from holdfast.core.times import DAY, HOUR, MINUTE
from holdfast.features.project.document.text import count_with_noun, iso_time
from holdfast.features.project.state import CheckRun, Gap, OwnTask, Project
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
"""Descriptions and criteria name at most this many files; the rest is counted."""
# Hours until unpushed and uncommitted work counts as a gap, unless the settings say otherwise.
UNPUSHED_HOURS, UNCOMMITTED_HOURS = 24, 4

Rule = Callable[[Project, int], Iterator[Gap]]


class GapTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type of gap as `gaps.toml` has it."""

    priority: str = DEFAULT_PRIORITY
    method: str
    description: str = ""
    why: str
    done_when: list[str] = []
    blocking: list[str] = []
    capabilities: list[str] = []
    resources: list[str] = []
    complexity: str = "low"
    minutes: int = 5
    confidence: float = 0.8


@cache
def gap_texts() -> dict[str, GapTexts]:
    return load_data(__file__, "gaps", dict[str, GapTexts])


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


def _gap(type_: str, facts: dict[str, Any], **fields: Any) -> Gap:
    """The texts of `gaps.toml` with the facts put in; a field that is given and not empty replaces the table's."""
    filled = {name: _fill(value, facts) for name, value in msgspec.structs.asdict(gap_texts()[type_]).items()}
    return Gap(**{"type": type_, **filled, **{name: value for name, value in fields.items() if value}})


def _fill(value: Any, facts: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [text.format(**facts) for text in value]
    return value.format(**facts) if isinstance(value, str) else value


def _digest(*parts: object) -> str:
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


def _filesystem(paths: Iterable[str]) -> list[str]:
    return [f"filesystem:{path}" for path in paths][:NAMED]


# ── tests ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def broken_tests(doc: Project, _at: int) -> Iterator[Gap]:
    """One for each failing suite and folder."""
    for (folder, suite, branch), runs in failing_suites(check_runs(doc)).items():
        yield _broken_suite(f"{folder}:{suite}@{branch}", runs)


def _broken_suite(key: str, runs: list[CheckRun]) -> Gap:
    failed, last = count_failed(runs), max(runs, key=lambda run: run.at)
    failures = list(dict.fromkeys(chain.from_iterable(run.failures for run in runs)))
    is_counted = any(run.failed or run.failures for run in runs)
    facts = {
        **_run_facts(last),
        "failing": f"{count_with_noun(failed, 'test')} failing" if is_counted else "Tests failing",
        "where": f" in {last.dir}" if last.dir != "." else "",
        "commit": f", on commit {last.commit[:12]} or changes on top of it" if last.commit else "",
        "reason": last.why or "it failed",
        "names": f" ({join_names(failures)})" if failures else "",
    }
    resources = [f"test:{name}" for name in failures[:NAMED]]
    known = {"key": key, "basis": _basis_of(runs), "seen_at": last.at}
    return _gap("broken_tests", facts, resources=resources, minutes=15 * min(failed, 8), **known)


def tests_not_started(doc: Project, _at: int) -> Iterator[Gap]:
    for run in check_runs(doc):
        if run.verdict == Verdict.DID_NOT_RUN:
            known = {"key": f"{run.dir}:{run.suite}@{run.branch}", "basis": _basis_of([run]), "seen_at": run.at}
            gap = _gap("tests_not_started", {**_run_facts(run), "reason": run.why}, **known)
            yield msgspec.structs.replace(gap, description=gap.description[:200])


def _run_facts(run: CheckRun) -> dict[str, Any]:
    return {"command": run.command or run.runner, "at": iso_time(run.at), "place": run.place}


def _basis_of(runs: list[CheckRun]) -> str:
    """The content that failed. Where it is not known, the run itself: the next failure is another one."""
    return _digest(*(run.content or run.at for run in runs))


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def unfinished_merge(doc: Project, _at: int) -> Iterator[Gap]:
    git = doc.git
    doing, conflicts = git.doing, git.conflicts
    known = {"key": doing, "basis": _digest(doing, conflicts, git.head)}
    if conflicts:
        facts = {
            "conflicts": count_with_noun(len(conflicts), "conflict"),
            "where": doing or "working tree",
            "doing": doing or "merge",
            "names": join_names(conflicts),
        }
        resources = ["lock:git_repository", *_filesystem(conflicts)]
        complexity = "high" if len(conflicts) > 3 else "medium"
        minutes = 10 + 5 * min(len(conflicts), 20)
        yield _gap("merge_conflict", facts, resources=resources, complexity=complexity, minutes=minutes, **known)
    elif doing:
        yield _gap("operation_in_progress", {"doing": doing}, **known)


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
    one = count == 1
    facts = {
        "count": count,
        "noun": noun.removesuffix("s") if one else noun,
        "need": "needs" if one else "need",
        "names": join_names(paths),
    }
    folders = dict.fromkeys(f"{folder}/" for path in paths if (folder := path.rpartition("/")[0]))
    effort = {"complexity": "low", "minutes": 5} if count <= 10 else {"complexity": "medium", "minutes": 15}
    return _gap(
        "unvalidated_changes",
        facts,
        key=area,
        done_when=rules.done_when or _done_by_command(rules.validate),
        blocking=rules.blocks,
        capabilities=rules.capabilities,
        resources=[*_filesystem(folders or paths), *(f"lock:{name}" for name in rules.locks)],
        **effort,
        confidence=0.9 if rules.validate else 0.7,
        basis=_digest(_state_of(files)),
    )


def _done_by_command(globs: list[str]) -> list[str]:
    """An area that names its commands is closed by them and by no other check."""
    return [f"A command like {' or '.join(globs)} passes after the last change"] if globs else []


def unpushed_commits(doc: Project, at: int) -> Iterator[Gap]:
    git, limit = doc.git, doc.rules.unpushed_hours or UNPUSHED_HOURS
    # Measured from the oldest commit that was not pushed.
    if git.ahead and git.unpushed_since and at - git.unpushed_since >= limit * HOUR:
        since = format_duration(at - git.unpushed_since)
        facts = {"commits": count_with_noun(git.ahead, "commit"), "since": since, "limit": limit}
        yield _gap("unpushed_commits", {**facts, "upstream": git.upstream or "the upstream"}, basis=git.head)


def old_uncommitted_work(doc: Project, at: int) -> Iterator[Gap]:
    git, limit = doc.git, doc.rules.uncommitted_hours or UNCOMMITTED_HOURS
    if git.count and git.oldest_change and at - git.oldest_change >= limit * HOUR:
        since = format_duration(at - git.oldest_change)
        facts = {"files": count_with_noun(git.count, "file"), "since": since, "limit": limit}
        yield _gap("old_uncommitted_work", facts, basis=_digest(_state_of(git.files)))


def new_todos(doc: Project, _at: int) -> Iterator[Gap]:
    count, locations = doc.todos.count, doc.todos.places
    if count:
        facts = {"marks": count_with_noun(count, "TODO or FIXME", "TODOs or FIXMEs"), "names": join_names(locations)}
        resources = _filesystem(location.partition(":")[0] for location in locations)
        known = {"basis": _digest(locations), "seen_at": doc.looked.get("todos", 0)}
        yield _gap("todos_added", facts, resources=resources, minutes=15 * min(count, 8), **known)


def untracked_sources(doc: Project, _at: int) -> Iterator[Gap]:
    paths = doc.git.untracked_sources
    if paths:
        facts = {"files": count_with_noun(len(paths), "untracked file"), "names": join_names(paths)}
        yield _gap("untracked_sources", facts, resources=_filesystem(paths), basis=_digest(paths))


# ── everything else ──────────────────────────────────────────────────────────────────────────────────────────────────


def out_of_sync(doc: Project, _at: int) -> Iterator[Gap]:
    for name, tree in doc.trees.items():
        if tree.in_sync is False:
            names = f": {join_names(tree.differing)}" if tree.differing else ""
            facts = {"name": name, "source": tree.source, "path": tree.path, "names": names}
            basis = _digest(tree.differing, tree.modified)
            yield _gap("tree_out_of_sync", facts, key=name, basis=basis, seen_at=doc.looked.get("trees", 0))


def unsatisfied_gates(doc: Project, _at: int) -> Iterator[Gap]:
    waiting = doc.others.gates
    if waiting:
        facts = {"requirements": count_with_noun(len(waiting), "requirement"), "names": join_names(waiting)}
        done_when = [f"{name} is satisfied" for name in list(waiting)[:NAMED]]
        blocking = sorted({gate.blocks for gate in waiting.values() if gate.blocks})
        yield _gap("unsatisfied_gates", facts, done_when=done_when, blocking=blocking, basis=_digest(sorted(waiting)))


def uat_failures(doc: Project, _at: int) -> Iterator[Gap]:
    failed = doc.others.uat_failed
    if failed:
        facts = {"scenarios": count_with_noun(len(failed), "UAT scenario"), "names": join_names(failed)}
        done_when = [f"{name} passes" for name in list(failed)[:NAMED]]
        known = {"basis": _digest(failed), "seen_at": max(failed.values())}
        yield _gap("uat_failures", facts, done_when=done_when, minutes=20 * min(len(failed), 6), **known)


def stuck_leases(doc: Project, at: int) -> Iterator[Gap]:
    for name, lock in doc.locks.items():
        if lock.pid and lock.until and at > lock.until:
            facts = {"name": name, "pid": lock.pid, "ago": format_duration(at - lock.until)}
            yield _gap("stuck_lease", facts, key=name, basis=_digest(lock.token, lock.until))


def stale_index(doc: Project, _at: int) -> Iterator[Gap]:
    problem = doc.others.index_problem
    if problem:
        yield _gap("stale_index", {"problem": problem}, basis=_digest(problem))


def own_rules(doc: Project, _at: int) -> Iterator[Gap]:
    """Gap rules of the user's own: a command and the exit code it should have."""
    for name, outcome in doc.own_rules.items():
        rule = outcome.rule
        if outcome.ok is False:
            facts = {"name": name, "command": rule.command, "exit_code": outcome.exit_code, "wanted": rule.exit_code}
            known = {"key": name, "basis": _digest(rule, outcome.exit_code)}
            yield _gap("own_rule", facts, **_own_words(rule), **known)


def own_tasks(doc: Project, _at: int) -> Iterator[Gap]:
    for task in doc.own_tasks:
        yield _gap("own_task", {}, **_own_words(task), key=task.key, why=task.why)


def _own_words(one: CheckRule | OwnTask) -> dict[str, Any]:
    priority = one.priority if one.priority in PRIORITIES else DEFAULT_PRIORITY
    return {
        "priority": priority,
        "description": one.description,
        "done_when": one.done_when,
        "blocking": one.blocks,
        "minutes": one.minutes,
    }


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
