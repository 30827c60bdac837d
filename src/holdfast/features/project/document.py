"""The v4 document (seed 001) of a project: what is true and what needs doing. No agent's name is in it (C6)."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.ports import Doc
from holdfast.features.project.check_results import CheckRun, summarise_tests
from holdfast.features.project.context import work_context
from holdfast.features.project.habits import confidence
from holdfast.features.project.model import SCHEMA_VERSION, iso, number
from holdfast.features.project.tasks import sections
from holdfast.features.project.validation import check_runs, is_validated

USUAL_LOCKS = ("git_repository", "notion_workspace")


def document(doc: Doc, now: int) -> dict[str, Any]:
    """`now` decides what is recent; the facts are those of the document."""
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": iso(doc["at"]),
        "PROJECT": project_name(doc),
        "CURRENT_STATE": current_state(doc),
        "TASKS": {name: [task(one) for one in tasks] for name, tasks in sections(doc["tasks"]).items()},
        "PROJECT_RESOLUTION": _resolution(doc),
        "WORK_CONTEXT": _context(doc, now),
        "LEARNED_PATTERNS": [pattern(habit, project_name(doc)) for habit in doc["patterns"]],
        "RESOURCE_LOCKS": _locks(doc),
        "STATE_HISTORY": [{**line, "timestamp": iso(line["timestamp"])} for line in doc["history"]],
    }


def project_name(doc: Doc) -> str:
    return doc.get("name") or (doc["resolution"].get("project")) or "unknown"


def current_state(doc: Doc) -> dict[str, Any]:
    found = {"git": _git(doc), "tests": _tests(doc)}
    if doc["trees"]:
        found["filesystem"] = {name: _tree(tree) for name, tree in doc["trees"].items()}
    if doc["notion"]:
        found["notion_workspace"] = _notion(doc["notion"])
    found["token_budget"] = _tokens(doc["tokens"])
    return found


def _git(doc: Doc) -> dict[str, Any]:
    git = doc["git"]
    last = git.get("last") or {}
    files, runs = git.get("files") or [], check_runs(doc)
    found = {
        "repository": git.get("repository"),
        "status": git.get("status") or "unknown",
        "branch": git.get("branch") or None,
        "commits_ahead": number(git.get("ahead")),
        "commits_behind": number(git.get("behind")),
        "uncommitted_files": {
            "count": number(git.get("count")),
            "files": [_file(doc, file, runs) for file in files],
        },
        "last_commit": {
            "hash": last.get("hash"),
            "message": last.get("subject"),
            "timestamp": iso(last.get("at")),
            "author": last.get("author"),
        }
        if last
        else None,
    }
    more = {name: git[name] for name in ("doing", "detached", "conflicts", "worktree", "problem") if git.get(name)}
    return {**found, **({"in_progress": more.pop("doing")} if "doing" in more else {}), **more}


def _file(doc: Doc, file: Mapping[str, Any], runs: list[CheckRun]) -> dict[str, Any]:
    return {
        "path": file["path"],
        "modified": iso(file.get("modified")),
        "size_bytes": file.get("size"),
        "validated": is_validated(doc, file, runs),
    }


def _tests(doc: Doc) -> dict[str, Any]:
    now = summarise_tests(check_runs(doc))
    counts = {"total": now.total, "passed": now.passed, "failed": now.failed, "skipped": now.skipped}
    return {"last_run": iso(now.last_run), "status": now.status, **counts, "failures": now.failures}


def _tree(tree: Mapping[str, Any]) -> dict[str, Any]:
    found = {"path": tree.get("path"), "modified": iso(tree.get("modified")), "size_mb": tree.get("size_mb")}
    return {**found, **{name: tree[name] for name in ("in_sync", "problem") if tree.get(name) is not None}}


def _notion(notion: Mapping[str, Any]) -> dict[str, Any]:
    items = notion.get("pending") or []
    return {
        "last_synced": iso(notion.get("last_synced")),
        "sync_status": notion.get("sync_status") or "pending",
        "pending_updates": {"count": number(notion.get("pending_count")) or len(items), "items": items},
    }


def _tokens(tokens: Mapping[str, Any]) -> dict[str, Any]:
    """What is left divided by what a session of this project costs; unknown until one has ended."""
    used, limit = number(tokens.get("used")), number(tokens.get("limit"))
    typical = tokens.get("per_session") or 0
    left = max(0, limit - used)
    return {
        "current": used,
        "limit": limit or None,
        "percentage": round(100 * used / limit, 1) if limit else None,
        "estimated_sessions_remaining": round(left / typical) if typical and limit else None,
    }


def task(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": one["id"],
        "description": one["description"],
        "gap_type": one["type"],
        "discovered_at": iso(one["discovered_at"]),
        "discovery_method": one["method"],
        "blocking": one["blocking"],
        "resolution_criteria": one["done_when"],
        "required_capabilities": one["capabilities"],
        "required_resources": one["resources"],
        "estimated_effort": {
            "complexity": one["complexity"],
            "time_minutes": one["minutes"],
            "confidence": one["confidence"],
        },
    }


def _resolution(doc: Doc) -> dict[str, Any]:
    known = doc["resolution"]
    return {
        "project": project_name(doc),
        "confidence": known.get("confidence") or 0.0,
        "resolved_at": iso(known.get("resolved_at") or doc["at"]),
        **{name: known[name] for name in ("method", "signals", "alternatives") if name in known},
    }


def _context(doc: Doc, now: int) -> dict[str, Any]:
    found = work_context(doc, now)
    activity = {**found["current_activity"], "started_at": iso(found["current_activity"]["started_at"])}
    return {**found, "current_activity": activity}


def pattern(habit: Mapping[str, Any], project: str = "") -> dict[str, Any]:
    projects = habit.get("projects")
    return {
        "pattern": habit["pattern"],
        "confidence": confidence(habit["held"], habit["seen"]),
        "sample_size": habit["seen"],
        "last_observed": iso(habit["last_observed"]),
        "applies_to": [*projects, "all_projects"] if projects else [project],
    }


def _locks(doc: Doc) -> dict[str, Any]:
    """Those that are or were used here, those the settings name, and the two everybody has."""
    named = [name for area in (doc["rules"].get("areas") or {}).values() for name in area.get("locks") or ()]
    known = dict.fromkeys((*doc["locks"], *named, *USUAL_LOCKS))
    return {name: lock(doc["locks"].get(name) or {}) for name in known}


def lock(one: Mapping[str, Any]) -> dict[str, Any]:
    if not all(name in one for name in ("pid", "at", "until", "mode")):  # Or somebody else's words for a lock.
        return {"locked": False, "locked_by": None, "locked_at": None, "locked_for": None, "estimated_release": None}
    return {
        "locked": True,
        "locked_by": one["pid"],
        "locked_at": iso(one["at"]),
        "locked_for": one.get("why") or None,
        "estimated_release": iso(one["until"]),
        "mode": one["mode"],
        "waiting": one.get("waiters") or [],
    }
