"""The version 4 document of a project: what is true and what needs doing. No agent's name is in it.

This is the serialiser: the only place where the document's own names are written.
"""

from collections.abc import Iterable
from typing import Any

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
from holdfast.features.project.document.text import iso
from holdfast.features.project.document.work_context import work_context
from holdfast.features.project.learning.habits import confidence, shared_habits
from holdfast.features.project.state import SCHEMA_VERSION, GlobalState, HistoryLine, Project, Task
from holdfast.features.project.tasks.check_results import CheckRun, summarise_tests
from holdfast.features.project.tasks.task_list import by_section
from holdfast.features.project.tasks.validation import check_runs, is_validated

USUAL_LOCKS = ("git_repository", "notion_workspace")
Fields = dict[str, Any]


def project_document(doc: Project, now: int) -> Fields:
    """`now` decides what is recent; the facts are those of the document."""
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": iso(doc.at),
        "PROJECT": doc.shown_name,
        "CURRENT_STATE": _current_state(doc),
        "TASKS": {name: [task_fields(one) for one in tasks] for name, tasks in by_section(doc.tasks).items()},
        "PROJECT_RESOLUTION": _project_resolution(doc),
        "WORK_CONTEXT": _context(doc, now),
        "LEARNED_PATTERNS": [_pattern(habit, doc.shown_name) for habit in doc.patterns],
        "RESOURCE_LOCKS": _locks(doc),
        "STATE_HISTORY": [_history_line(line) for line in doc.history],
    }


def global_document(doc: GlobalState) -> Fields:
    projects = sorted(doc.projects.items(), key=lambda item: item[1].name or item[0])
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": iso(doc.at),
        "PROJECTS": {one.folder or root: {"path": root, "status": one.status or "unknown"} for root, one in projects},
        "RESOURCE_LOCKS": {name: lock_fields(one) for name, one in sorted(doc.locks.items())},
        "LEARNED_PATTERNS": [_pattern(habit) for habit in habits_of_several(doc, doc.at)],
    }


def habits_of_several(doc: GlobalState | None, now: int) -> list[HabitFacts]:
    known = doc.projects if doc else {}
    return shared_habits({one.name or root: one.habits for root, one in known.items()}, now)


def _current_state(doc: Project) -> Fields:
    found: Fields = {"git": _git(doc), "tests": _tests(doc)}
    if doc.trees:
        found["filesystem"] = {name: _tree(tree) for name, tree in doc.trees.items()}
    if doc.notion.sync_status:
        found["notion_workspace"] = _notion(doc.notion)
    found["token_budget"] = _tokens(doc.usage)
    return found


def _git(doc: Project) -> Fields:
    git, runs = doc.git, check_runs(doc)
    found: Fields = {
        "repository": git.repository or None,
        "status": git.status or "unknown",
        "branch": git.branch or None,
        "commits_ahead": git.ahead,
        "commits_behind": git.behind,
        "uncommitted_files": {"count": git.count, "files": [_file(doc, file, runs) for file in git.files]},
        "last_commit": _commit(git.last) if git.last else None,
    }
    more = {
        "in_progress": git.doing, "detached": git.detached, "conflicts": git.conflicts, "worktree": git.worktree,
        "problem": git.problem,
    }  # fmt: skip
    return {**found, **{name: value for name, value in more.items() if value}}


def _commit(last: CommitFacts) -> Fields:
    return {"hash": last.hash, "message": last.subject, "timestamp": iso(last.at), "author": last.author}


def _file(doc: Project, file: ChangedFile, runs: list[CheckRun]) -> Fields:
    return {
        "path": file.path,
        "modified": iso(file.modified),
        "size_bytes": file.size,
        "validated": is_validated(doc, file, runs),
    }


def _tests(doc: Project) -> Fields:
    now = summarise_tests(check_runs(doc))
    counts = {"total": now.total, "passed": now.passed, "failed": now.failed, "skipped": now.skipped}
    return {"last_run": iso(now.last_run), "status": now.status, **counts, "failures": now.failures}


def _tree(tree: TreeFacts) -> Fields:
    found: Fields = {"path": tree.path, "modified": iso(tree.modified), "size_mb": tree.size_mb}
    more = {"in_sync": tree.in_sync, "problem": tree.problem or None}
    return {**found, **{name: value for name, value in more.items() if value is not None}}


def _notion(notion: NotionState) -> Fields:
    return {
        "last_synced": iso(notion.last_synced),
        "sync_status": notion.sync_status,
        "pending_updates": {"count": notion.pending_count or len(notion.pending), "items": notion.pending},
    }


def _tokens(tokens: TokenFacts) -> Fields:
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
        "discovered_at": iso(task.discovered_at),
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
    known = doc.resolution
    found: Fields = {
        "project": doc.shown_name,
        "confidence": known.confidence,
        "resolved_at": iso(known.resolved_at or doc.at),
    }
    return {**found, **_votes(known)} if known.method else found


def resolution_fields(known: Resolution) -> Fields:
    return {"project": known.project, "confidence": known.confidence, **_votes(known)}


def _votes(known: Resolution) -> Fields:
    return {
        "method": known.method,
        "signals": {name: _signal(one) for name, one in known.signals.items()},
        "alternatives": [_signal(one) for one in known.alternatives],
    }


def _signal(signal: Signal) -> Fields:
    return {"project": signal.project or None, "confidence": signal.confidence, "reason": signal.reason}


def _context(doc: Project, now: int) -> Fields:
    found = work_context(doc, now)
    return {
        "current_phase": found.phase,
        "current_activity": {
            "type": found.activity.type,
            "started_at": iso(found.activity.started_at),
            "status": found.activity.status,
        },
        "uncommitted_files_context": None
        if found.uncommitted is None
        else {
            "reason": found.uncommitted.reason,
            "confidence": found.uncommitted.confidence,
            "evidence": found.uncommitted.evidence,
            "inferred_intent": found.uncommitted.intent,
            "alternative_interpretations": [
                {"intent": one.intent, "confidence": one.confidence} for one in found.uncommitted.alternatives
            ],
        },
        "blockers": [task.description for task in doc.tasks if task.priority == "P0"],
    }


def _pattern(habit: HabitFacts, project: str = "") -> Fields:
    return {
        "pattern": habit.pattern,
        "confidence": confidence(habit.held, habit.seen),
        "sample_size": habit.seen,
        "last_observed": iso(habit.last_observed),
        "applies_to": [*habit.projects, "all_projects"] if habit.projects else [project],
    }


def _locks(doc: Project) -> Fields:
    """Those that are or were used here, those the settings name, and the two everybody has."""
    named: Iterable[str] = (name for area in doc.rules.areas.values() for name in area.locks)
    known = dict.fromkeys((*doc.locks, *named, *USUAL_LOCKS))
    return {name: lock_fields(doc.locks.get(name) or LeaseLock()) for name in known}


def lock_fields(lock: LeaseLock) -> Fields:
    if not lock.held:
        return {"locked": False, "locked_by": None, "locked_at": None, "locked_for": None, "estimated_release": None}
    return {
        "locked": True,
        "locked_by": lock.pid,
        "locked_at": iso(lock.at),
        "locked_for": lock.why or None,
        "estimated_release": iso(lock.until),
        "mode": lock.mode,
        "waiting": lock.waiters,
    }


def _history_line(line: HistoryLine) -> Fields:
    found: Fields = {"timestamp": iso(line.timestamp), "change_type": line.change_type}
    more = {
        "section": line.section,
        "task_id": line.task_id,
        "summary": line.summary,
        "changed_by_process": line.process,
    }
    return {**found, **{name: value for name, value in more.items() if value or name == "summary"}}
