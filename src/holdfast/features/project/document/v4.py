"""The version 4 document of a project, and why the state is as it is: phase, activity, reasons that compete. No agent's name is in it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core.kinds.project_events import (
    ChangedFile,
    CommitFacts,
    HabitFacts,
    LeaseLock,
    NotionState,
    Resolution,
    Signal,
    TokenFacts,
    TreeFacts,
)
from holdfast.core.times import HOUR, MINUTE
from holdfast.features.project.document.text import count_with_noun, iso_time
from holdfast.features.project.state import SCHEMA_VERSION, CheckRun, GlobalState, HistoryLine, Project, Task
from holdfast.features.project.state.check_results import (
    area_of,
    check_runs,
    is_validated,
    summarise_tests,
    unvalidated_files,
)
from holdfast.features.project.state.habits import habit_confidence, shared_habits
from holdfast.features.project.state.task_list import by_section

# Why the state is as it is: phase, activity, and why files are uncommitted. Hypotheses gather evidence and compete.

RECENT = 2 * HOUR
AT_WORK = 30 * MINUTE
FORGOTTEN = 4 * HOUR
# Longer than any threshold that is compared with it.
NEVER = FORGOTTEN * 100
MAX_ALTERNATIVES = 3
MIN_SHARE = 0.05


class Hypothesis(msgspec.Struct, frozen=True):
    """`clues`: (weight, evidence) of what speaks for it. Without any it is not considered."""

    reason: str
    intent: str
    clues: tuple[tuple[float, str], ...]

    @property
    def weight(self) -> float:
        return sum(weight for weight, _ in self.clues)

    @property
    def evidence(self) -> list[str]:
        return [text for _, text in self.clues if text]


class CurrentActivity(msgspec.Struct, frozen=True):
    type: str = "none"
    started_at: int = 0
    status: str = "idle"


class Alternative(msgspec.Struct, frozen=True):
    intent: str
    confidence: float


class UncommittedContext(msgspec.Struct, frozen=True):
    """Why files are uncommitted. Confidence is the hypothesis' share of all the evidence."""

    reason: str
    confidence: float
    evidence: list[str]
    intent: str
    alternatives: list[Alternative]


class WorkContext(msgspec.Struct, frozen=True):
    phase: str
    activity: CurrentActivity
    uncommitted: UncommittedContext | None


def work_context(doc: Project, now: int) -> WorkContext:
    return WorkContext(find_phase(doc, now), find_activity(doc, now), explain_uncommitted(doc, now))


# ── phase and activity ───────────────────────────────────────────────────────────────────────────────────────────────


def find_phase(doc: Project, now: int) -> str:
    """The first that holds; the settings may name one."""
    git = doc.git
    if doc.rules.phase:
        return doc.rules.phase
    if git.doing:
        return f"{git.doing}_in_progress"
    if summarise_tests(check_runs(doc)).status == "failing":
        return "fixing_tests"
    if git.count:
        if not unvalidated_files(doc):
            return "ready_to_commit"
        return "building" if _quiet_for(doc, now) < RECENT else "paused"
    if git.ahead:
        return "ready_to_push"
    return doc.focus or ("idle" if git.was_read else "unknown")


FOLDERS = (
    (("test", "tests", "spec", "__tests__", "e2e"), "testing"),
    (("doc", "docs"), "documentation"),
    ((".github", ".ci", "ci", "deploy", "infra", "terraform", "docker"), "infrastructure"),
    (("config", ".config", "settings"), "configuration"),
)


def find_activity(doc: Project, now: int) -> CurrentActivity:
    began, quiet = doc.activity.began, _quiet_for(doc, now)
    if not began:
        return CurrentActivity()
    status = "in_progress" if quiet < AT_WORK else "paused" if doc.git.count else "done"
    return CurrentActivity(_activity_type(doc), began, status)


def _activity_type(doc: Project) -> str:
    worked_in, areas = doc.activity.folders, doc.rules.areas
    # A file name is put behind a folder, because the areas' patterns match files.
    for path in (*(file.path for file in doc.git.files), *(folder + "x" for folder in worked_in)):
        area = areas.get(area_of(path, areas))
        if area and area.activity:
            return area.activity
    parts = {part for folder in worked_in for part in folder.strip("/").split("/")}
    usual = "development" if worked_in else "maintenance"
    return next((kind for names, kind in FOLDERS if parts & set(names)), usual)


def _quiet_for(doc: Project, now: int) -> int:
    last = max(doc.activity.last_edit, doc.git.newest_change)
    return now - last if last else NEVER


# ── why files are uncommitted ────────────────────────────────────────────────────────────────────────────────────────


# The weights only matter in relation to each other.
def explain_uncommitted(doc: Project, now: int) -> UncommittedContext | None:
    """None when nothing is uncommitted."""
    if not doc.git.count:
        return None
    ranked = sorted((h for h in build_hypotheses(doc, now) if h.clues), key=lambda h: -h.weight)
    total = sum(h.weight for h in ranked)
    best, rest = ranked[0], ranked[1 : 1 + MAX_ALTERNATIVES]
    shares = [Alternative(h.intent, round(h.weight / total, 2)) for h in rest if h.weight / total >= MIN_SHARE]
    share = round(best.weight / total, 2)
    return UncommittedContext(best.reason, share, best.evidence, _area_intent(doc) or best.intent, shares)


def _area_intent(doc: Project) -> str:
    areas = doc.rules.areas
    touched_areas = (areas.get(area_of(file.path, areas)) for file in doc.git.files)
    return next((area.intent for area in touched_areas if area and area.intent), "")


def build_hypotheses(doc: Project, now: int) -> Iterable[Hypothesis]:
    yield _merge_hypothesis(doc)
    yield _fixing_tests(doc)
    yield _ready_to_commit(doc)
    yield _mid_refactor(doc, now)
    yield _new_files(doc, now)
    yield _forgotten_hypothesis(doc, now)


def _holding_clues(*candidates: tuple[bool, float, str]) -> tuple[tuple[float, str], ...]:
    return tuple((weight, text) for holds, weight, text in candidates if holds)


def _merge_hypothesis(doc: Project) -> Hypothesis:
    doing, conflicts = doc.git.doing, doc.git.conflicts
    clues = _holding_clues(
        (bool(doing), 4.0, f"A {doing} is in progress"),
        (bool(conflicts), 4.0, f"{count_with_noun(len(conflicts), 'file')} in conflict"),
    )
    return Hypothesis("merge_in_progress", f"Finishing a {doing or 'merge'}", clues)


def _fixing_tests(doc: Project) -> Hypothesis:
    tests = summarise_tests(check_runs(doc))
    failing = tests.status == "failing"
    clues = _holding_clues(
        (failing, 1.2, f"{count_with_noun(tests.failed, 'test')} failing"),
        (failing and doc.git.newest_change >= tests.last_run, 0.6, "Files changed since the tests failed"),
    )
    return Hypothesis("fixing_tests", "Making the tests pass before committing", clues)


def _ready_to_commit(doc: Project) -> Hypothesis:
    proven = bool(doc.git.files) and not unvalidated_files(doc)
    clues = _holding_clues(
        (proven, 1.5, "All changed files are validated"),
        (proven and doc.git.draft, 0.8, "A commit message is drafted"),
    )
    return Hypothesis("ready_to_commit", "About to commit", clues)


def _mid_refactor(doc: Project, now: int) -> Hypothesis:
    git = doc.git
    recent = now - git.newest_change <= RECENT
    active = now - doc.activity.last_edit <= RECENT
    clues = _holding_clues(
        (recent, 0.4, "Files modified within last 2 hours"),
        (active, 0.3, f"User actively in {_folder_name(doc)} directory"),
        (recent and not git.draft, 0.1, "No commit message drafted yet"),
    )
    where = (doc.activity.folders or ["this project"])[0]
    return Hypothesis(
        "mid_refactor", f"Changing {count_with_noun(git.count, 'file')} in {where} before committing", clues
    )


def _new_files(doc: Project, now: int) -> Hypothesis:
    all_new = bool(doc.git.files) and all(file.code == "??" for file in doc.git.files)
    recent = now - doc.git.newest_change <= RECENT
    clues = _holding_clues(
        (all_new, 0.15, "No file that git knows was changed"), (all_new and recent, 0.05, "The files are new")
    )
    return Hypothesis("new_files", "Trying something new beside the existing code", clues)


def _forgotten_hypothesis(doc: Project, now: int) -> Hypothesis:
    quiet = _quiet_for(doc, now)
    clues = _holding_clues(
        # Always there with a small weight, so that there is at least one hypothesis.
        (True, 0.2, ""),
        (quiet > FORGOTTEN, 0.6, "Nothing was changed for more than 4 hours"),
        (quiet > 6 * FORGOTTEN, 0.6, "Nothing was changed for more than a day"),
        (quiet > FORGOTTEN and not doc.activity.sessions, 0.3, "No session is open"),
    )
    return Hypothesis("forgotten", "Forgot to commit", clues)


def _folder_name(doc: Project) -> str:
    return doc.project.rstrip("/").rpartition("/")[2] or "the project's"


# The version 4 document of a project: what is true and what needs doing. No agent's name is in it.

USUAL_LOCKS = ("git_repository", "notion_workspace")
Fields = dict[str, Any]


def project_document(doc: Project, now: int) -> Fields:
    """`now` decides what is recent; the facts are those of the document."""
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": iso_time(doc.at),
        "PROJECT": doc.shown_name,
        "CURRENT_STATE": _current_state(doc),
        "TASKS": {name: [task_fields(one) for one in tasks] for name, tasks in by_section(doc.tasks).items()},
        "PROJECT_RESOLUTION": _project_resolution(doc),
        "WORK_CONTEXT": _context_fields(doc, now),
        "LEARNED_PATTERNS": [_pattern_fields(habit, doc.shown_name) for habit in doc.patterns],
        "RESOURCE_LOCKS": _all_lock_fields(doc),
        "STATE_HISTORY": [_history_line(line) for line in doc.history],
    }


def global_document(doc: GlobalState) -> Fields:
    projects = sorted(doc.projects.items(), key=lambda item: item[1].name or item[0])
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": iso_time(doc.at),
        "PROJECTS": {one.folder or root: {"path": root, "status": one.status or "unknown"} for root, one in projects},
        "RESOURCE_LOCKS": {name: lock_fields(one) for name, one in sorted(doc.locks.items())},
        "LEARNED_PATTERNS": [_pattern_fields(habit) for habit in habits_of_several(doc, doc.at)],
    }


def habits_of_several(doc: GlobalState | None, now: int) -> list[HabitFacts]:
    projects = doc.projects if doc else {}
    return shared_habits({one.name or root: one.habits for root, one in projects.items()}, now)


def _current_state(doc: Project) -> Fields:
    fields: Fields = {"git": _git_fields(doc), "tests": _test_fields(doc)}
    if doc.trees:
        fields["filesystem"] = {name: _tree_fields(tree) for name, tree in doc.trees.items()}
    if doc.notion.sync_status:
        fields["notion_workspace"] = _notion_fields(doc.notion)
    fields["token_budget"] = _token_fields(doc.usage)
    return fields


def _git_fields(doc: Project) -> Fields:
    git, runs = doc.git, check_runs(doc)
    fields: Fields = {
        "repository": git.repository or None,
        "status": git.status or "unknown",
        "branch": git.branch or None,
        "commits_ahead": git.ahead,
        "commits_behind": git.behind,
        "uncommitted_files": {"count": git.count, "files": [_file_fields(doc, file, runs) for file in git.files]},
        "last_commit": _commit_fields(git.last) if git.last else None,
    }
    more = {
        "in_progress": git.doing, "detached": git.detached, "conflicts": git.conflicts, "worktree": git.worktree,
        "problem": git.problem,
    }  # fmt: skip
    return {**fields, **{name: value for name, value in more.items() if value}}


def _commit_fields(last: CommitFacts) -> Fields:
    return {"hash": last.hash, "message": last.subject, "timestamp": iso_time(last.at), "author": last.author}


def _file_fields(doc: Project, file: ChangedFile, runs: list[CheckRun]) -> Fields:
    return {
        "path": file.path,
        "modified": iso_time(file.modified),
        "size_bytes": file.size,
        "validated": is_validated(doc, file, runs),
    }


def _test_fields(doc: Project) -> Fields:
    now = summarise_tests(check_runs(doc))
    counts = {"total": now.total, "passed": now.passed, "failed": now.failed, "skipped": now.skipped}
    return {"last_run": iso_time(now.last_run), "status": now.status, **counts, "failures": now.failures}


def _tree_fields(tree: TreeFacts) -> Fields:
    fields: Fields = {"path": tree.path, "modified": iso_time(tree.modified), "size_mb": tree.size_mb}
    more = {"in_sync": tree.in_sync, "problem": tree.problem or None}
    return {**fields, **{name: value for name, value in more.items() if value is not None}}


def _notion_fields(notion: NotionState) -> Fields:
    return {
        "last_synced": iso_time(notion.last_synced),
        "sync_status": notion.sync_status,
        "pending_updates": {"count": notion.pending_count or len(notion.pending), "items": notion.pending},
    }


def _token_fields(tokens: TokenFacts) -> Fields:
    """What is left divided by what a session of this project costs; unknown until one has ended."""
    used, limit, typical = tokens.used, tokens.limit, tokens.per_session
    return {
        "current": used,
        "limit": limit or None,
        "percentage": round(100 * used / limit, 1) if limit else None,
        "estimated_sessions_remaining": round(max(0, limit - used) / typical) if typical and limit else None,
    }


def task_fields(task: Task) -> Fields:
    return {
        "id": task.id,
        "description": task.description,
        "gap_type": task.type,
        "discovered_at": iso_time(task.discovered_at),
        "discovery_method": task.method,
        "blocking": task.blocking,
        "resolution_criteria": task.done_when,
        "required_capabilities": task.capabilities,
        "required_resources": task.resources,
        "estimated_effort": {
            "complexity": task.complexity,
            "time_minutes": task.minutes,
            "confidence": task.confidence,
        },
    }


def _project_resolution(doc: Project) -> Fields:
    resolution = doc.resolution
    fields: Fields = {
        "project": doc.shown_name,
        "confidence": resolution.confidence,
        "resolved_at": iso_time(resolution.resolved_at or doc.at),
    }
    return {**fields, **_vote_fields(resolution)} if resolution.method else fields


def resolution_fields(resolution: Resolution) -> Fields:
    return {"project": resolution.project, "confidence": resolution.confidence, **_vote_fields(resolution)}


def _vote_fields(resolution: Resolution) -> Fields:
    return {
        "method": resolution.method,
        "signals": {name: _signal_fields(one) for name, one in resolution.signals.items()},
        "alternatives": [_signal_fields(one) for one in resolution.alternatives],
    }


def _signal_fields(signal: Signal) -> Fields:
    return {"project": signal.project or None, "confidence": signal.confidence, "reason": signal.reason}


def _context_fields(doc: Project, now: int) -> Fields:
    context = work_context(doc, now)
    return {
        "current_phase": context.phase,
        "current_activity": {
            "type": context.activity.type,
            "started_at": iso_time(context.activity.started_at),
            "status": context.activity.status,
        },
        "uncommitted_files_context": None
        if context.uncommitted is None
        else {
            "reason": context.uncommitted.reason,
            "confidence": context.uncommitted.confidence,
            "evidence": context.uncommitted.evidence,
            "inferred_intent": context.uncommitted.intent,
            "alternative_interpretations": [
                {"intent": one.intent, "confidence": one.confidence} for one in context.uncommitted.alternatives
            ],
        },
        "blockers": [task.description for task in doc.tasks if task.priority == "P0"],
    }


def _pattern_fields(habit: HabitFacts, project: str = "") -> Fields:
    return {
        "pattern": habit.pattern,
        "confidence": habit_confidence(habit.held, habit.seen),
        "sample_size": habit.seen,
        "last_observed": iso_time(habit.last_observed),
        "applies_to": [*habit.projects, "all_projects"] if habit.projects else [project],
    }


def _all_lock_fields(doc: Project) -> Fields:
    """Those that are or were used here, those the settings name, and the two everybody has."""
    named: Iterable[str] = (name for area in doc.rules.areas.values() for name in area.locks)
    lock_names = dict.fromkeys((*doc.locks, *named, *USUAL_LOCKS))
    return {name: lock_fields(doc.locks.get(name) or LeaseLock()) for name in lock_names}


def lock_fields(lock: LeaseLock) -> Fields:
    if not lock.is_held:
        return {"locked": False, "locked_by": None, "locked_at": None, "locked_for": None, "estimated_release": None}
    return {
        "locked": True,
        "locked_by": lock.pid,
        "locked_at": iso_time(lock.at),
        "locked_for": lock.why or None,
        "estimated_release": iso_time(lock.until),
        "mode": lock.mode,
        "waiting": lock.waiters,
    }


def _history_line(line: HistoryLine) -> Fields:
    fields: Fields = {"timestamp": iso_time(line.timestamp), "change_type": line.change_type}
    more = {
        "section": line.section,
        "task_id": line.task_id,
        "summary": line.summary,
        "changed_by_process": line.process,
    }
    return {**fields, **{name: value for name, value in more.items() if value or name == "summary"}}
