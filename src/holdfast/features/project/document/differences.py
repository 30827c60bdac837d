"""What differs between two documents, and how an old document is filled in with what is observed now."""

from collections.abc import Iterator, Mapping
from typing import Any

MOST = 500
UNSAID = ("LAST_UPDATED", "resolved_at")
"""Times that differ without anything having changed."""


def between(old: Any, new: Any) -> Iterator[dict[str, Any]]:
    """Leaves that differ, by dotted path. Lists of things with a name are compared by it, others as wholes."""
    for number, found in enumerate(_walk(old, new, "")):
        if number == MOST:
            return
        yield found


def _walk(old: Any, new: Any, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            if name not in UNSAID:
                yield from _walk(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(old, list) and isinstance(new, list) and (_named(old) or _named(new)):
        yield from _walk(_by_name(old), _by_name(new), path)
    elif old != new:
        yield {"path": path, "before": old, "after": new}


NAMES = ("id", "path", "pattern", "intent")


def _named(items: list[Any]) -> bool:
    return bool(items) and all(isinstance(one, Mapping) and any(name in one for name in NAMES) for one in items)


def _by_name(items: list[Any]) -> dict[str, Any]:
    return {str(next(one[name] for name in NAMES if name in one)): one for one in items}


def filled_in(old: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    """An old file's own words, on today's facts: git and the rest as they are, tasks with what their gaps say now."""
    found = {**observed, **{name: value for name, value in old.items() if value not in (None, [], {})}}
    found["CURRENT_STATE"] = {**(old.get("CURRENT_STATE") or {}), **observed["CURRENT_STATE"]}
    if found.get("PROJECT") == "unknown":
        found["PROJECT"] = observed["PROJECT"]
    if isinstance(old.get("TASKS"), Mapping):
        found["TASKS"] = {name: [_now(task, observed) for task in tasks] for name, tasks in old["TASKS"].items()}
    found["LAST_UPDATED"] = observed["LAST_UPDATED"]
    return found


def _now(task: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    same = [one for tasks in observed["TASKS"].values() for one in tasks if one["gap_type"] == task.get("gap_type")]
    return {**task, "description": same[0]["description"]} if same else dict(task)
