"""The version 4 document of a project: what is true and what needs doing."""

# No agent's name is in it.

from collections.abc import Iterable
from typing import Any

from holdfast.core.kinds.project_events import HabitFacts, LeaseLock, NotionState, Resolution, Signal, TokenFacts
from holdfast.features.project.document.text import iso_time
from holdfast.features.project.document.work_context import work_context
from holdfast.features.project.state import SCHEMA_VERSION, GlobalState, HistoryLine, Project, Task
from holdfast.features.project.state.check_results import check_runs, is_validated, summarise_tests
from holdfast.features.project.state.habits import habit_confidence, shared_habits
from holdfast.features.project.state.task_list import by_section

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
        "WORK_CONTEXT": work_context(doc, now),
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
        fields["filesystem"] = {
            name: {
                "path": tree.path,
                "modified": iso_time(tree.modified),
                "size_mb": tree.size_mb,
                **({} if tree.in_sync is None else {"in_sync": tree.in_sync}),
                **_set(problem=tree.problem),
            }
            for name, tree in doc.trees.items()
        }
    if doc.notion.sync_status:
        fields["notion_workspace"] = _notion_fields(doc.notion)
    fields["token_budget"] = _token_fields(doc.usage)
    return fields


def _set(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value}


def _git_fields(doc: Project) -> Fields:
    git, runs = doc.git, check_runs(doc)
    files = [
        {
            "path": file.path,
            "modified": iso_time(file.modified),
            "size_bytes": file.size,
            "validated": is_validated(doc, file, runs),
        }
        for file in git.files
    ]
    last = git.last
    return {
        "repository": git.repository or None,
        "status": git.status or "unknown",
        "branch": git.branch or None,
        "commits_ahead": git.ahead,
        "commits_behind": git.behind,
        "uncommitted_files": {"count": git.count, "files": files},
        "last_commit": last
        and {"hash": last.hash, "message": last.subject, "timestamp": iso_time(last.at), "author": last.author},
        **_set(
            in_progress=git.doing,
            detached=git.detached,
            conflicts=git.conflicts,
            worktree=git.worktree,
            problem=git.problem,
        ),
    }


def _test_fields(doc: Project) -> Fields:
    now = summarise_tests(check_runs(doc))
    counts = {name: getattr(now, name) for name in ("status", "total", "passed", "failed", "skipped", "failures")}
    return {"last_run": iso_time(now.last_run), **counts}


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
    effort = {"complexity": task.complexity, "time_minutes": task.minutes, "confidence": task.confidence}
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
        "estimated_effort": effort,
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
    return {
        "timestamp": iso_time(line.timestamp),
        "change_type": line.change_type,
        **_set(section=line.section, task_id=line.task_id),
        "summary": line.summary,
        **_set(changed_by_process=line.process),
    }
