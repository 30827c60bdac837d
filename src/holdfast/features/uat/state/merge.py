"""Merges changes from outside into a run's document (S3-16)."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Path = tuple[str, ...]

DERIVED = [
    *("meta", "session.claudeSessionId", "session.uatSessionId", "session.startTime", "session.lastActivity"),
    *("session.endTime", "session.status", "scenario.steps", "scenario.totalSteps", "scenario.currentStep"),
    *("scenario.completedSteps", "scenario.actualDuration", "execution.toolCalls", "artifacts.screenshots"),
    *("artifacts.reports", "performance", "context.hooks"),
]
ADDED: dict[Path, str] = {
    ("execution", "errors"): "error",
    ("execution", "warnings"): "warning",
    ("validation", "healthChecks"): "check",
    ("validation", "assertions"): "assertion",
}
"""Lists one can only add to: their entries become events of their own."""


def merge_objects(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """As jq's `*`: objects are merged, everything else is replaced."""
    made = dict(low)
    for name, value in high.items():
        under = made.get(name)
        made[name] = merge_objects(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return made


def merged_all(patches: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for patch in patches:
        made = merge_objects(made, patch)
    return made


def encoded_size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def split_patch(patch: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Path, list[Any]], list[str]]:
    """(what may be merged, entries to add to lists, names that are derived and therefore left out)."""
    remaining, ignored = dict(patch), []
    # Entries of lists first: they are taken out before the names around them are judged.
    added: dict[Path, list[Any]] = {}
    for path in ADDED:
        value, remaining = _take_path(remaining, path)
        if isinstance(value, list):
            added[path] = value
    for name in DERIVED:
        value, remaining = _take_path(remaining, tuple(name.split(".")))
        ignored += [name] if value is not None else []
    return {name: inner for name, inner in remaining.items() if inner not in ({}, None)}, added, ignored


def _take_path(value: dict[str, Any], path: Path) -> tuple[Any, dict[str, Any]]:
    name, *rest = path
    if name not in value:
        return None, value
    if not rest:
        return value[name], {n: v for n, v in value.items() if n != name}
    inner = value[name]
    if not isinstance(inner, Mapping):
        return None, value
    taken, left = _take_path(dict(inner), tuple(rest))
    return taken, {**value, name: left}
