"""What holds across projects: which there are, their shared habits, the leases (GLOBAL_STATE.md)."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.project import habits
from holdfast.features.project.model import SCHEMA_VERSION, iso

HEARS = frozenset(("project.observed", "project.lease_changed"))
MOST_PROJECTS, MOST_HABITS, MOST_LOCKS = 200, 12, 200


def reduce(doc: Doc | None, event: Event) -> Doc:
    before = doc or {"projects": {}, "locks": {}, "at": 0, "status": ""}
    if event.kind == "project.lease_changed":
        return _lease(before, event)
    known = before["projects"].get(event.project) or {}
    seen = _seen(known, event)
    if seen == known:
        return before
    others = {root: one for root, one in before["projects"].items() if root != event.project}
    projects = dict(list({**others, event.project: seen}.items())[-MOST_PROJECTS:])
    return {**before, "projects": projects, "at": event.at}


def _seen(known: dict[str, Any], event: Event) -> dict[str, Any]:
    """Only what matters elsewhere: most of what a project reports changes nothing here."""
    facts = event.get("facts") or {}
    seen = {name: facts[name] for name in ("name", "folder") if name in facts}
    if "git" in facts:
        seen["status"] = facts["git"].get("status") or "unknown"
    if "patterns" in facts:
        own = [habit for habit in facts["patterns"] if not habit.get("projects")]
        seen["habits"] = own[:MOST_HABITS]
    return {**known, **seen}


def _lease(doc: Doc, event: Event) -> Doc:
    name, lock = str(event.get("name")), dict(event.get("lock") or {})
    if doc["locks"].get(name, {}) == lock:
        return doc
    locks = {k: v for k, v in doc["locks"].items() if k != name} | ({name: lock} if lock else {})
    return {**doc, "locks": dict(list(locks.items())[-MOST_LOCKS:]), "at": event.at}


def names(doc: Doc | None) -> list[str]:
    return sorted({one["name"] for one in (doc or {}).get("projects", {}).values() if one.get("name")})


def shared_habits(doc: Doc | None, now: int) -> list[dict[str, Any]]:
    known = (doc or {}).get("projects") or {}
    return habits.shared({one.get("name") or root: one.get("habits") or () for root, one in known.items()}, now)


def document(doc: Doc, lock: Any, pattern: Any) -> dict[str, Any]:
    """`lock` and `pattern` are how document.py writes one of each."""
    projects = sorted(doc["projects"].items(), key=lambda item: item[1].get("name") or item[0])
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": iso(doc["at"]),
        "PROJECTS": {
            one.get("folder") or root: {"path": root, "status": one.get("status") or "unknown"}
            for root, one in projects
        },
        "RESOURCE_LOCKS": {name: lock(one) for name, one in sorted(doc["locks"].items())},
        "LEARNED_PATTERNS": [pattern(habit) for habit in shared_habits(doc, doc["at"])],
    }
