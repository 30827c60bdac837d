"""S3-16: merging into a run's document from outside. What Holdfast derives itself cannot be overwritten, only told."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Path = tuple[str, ...]

DERIVED: tuple[Path, ...] = (
    ("meta",),
    ("session", "claudeSessionId"),
    ("session", "uatSessionId"),
    ("session", "startTime"),
    ("session", "lastActivity"),
    ("session", "endTime"),
    ("session", "status"),
    ("scenario", "steps"),
    ("scenario", "totalSteps"),
    ("scenario", "currentStep"),
    ("scenario", "completedSteps"),
    ("scenario", "actualDuration"),
    ("execution", "toolCalls"),
    ("artifacts", "screenshots"),
    ("artifacts", "reports"),
    ("performance",),
    ("context", "hooks"),
)
ADDED: dict[Path, str] = {
    ("execution", "errors"): "error",
    ("execution", "warnings"): "warning",
    ("validation", "healthChecks"): "check",
    ("validation", "assertions"): "assertion",
}
"""Lists one can only add to: their entries become events of their own."""


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """As jq's `*`: objects are merged, everything else is replaced."""
    made = dict(low)
    for name, value in high.items():
        under = made.get(name)
        made[name] = merged(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return made


def merged_all(patches: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for patch in patches:
        made = merged(made, patch)
    return made


def size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def split(patch: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Path, list[Any]], list[str]]:
    """(what may be merged, entries to add to lists, names that are derived and therefore left out)."""
    kept, ignored = dict(patch), []
    added: dict[Path, list[Any]] = {}
    for path in ADDED:
        value, kept = _taken(kept, path)
        if isinstance(value, list):
            added[path] = value
    for path in DERIVED:
        value, kept = _taken(kept, path)
        if value is not None:
            ignored.append(".".join(path))
    return _without_empty(kept), added, ignored


def _taken(value: dict[str, Any], path: Path) -> tuple[Any, dict[str, Any]]:
    name, *rest = path
    if name not in value:
        return None, value
    if not rest:
        return value[name], {n: v for n, v in value.items() if n != name}
    inner = value[name]
    if not isinstance(inner, Mapping):
        return None, value
    found, left = _taken(dict(inner), tuple(rest))
    return found, {**value, name: left}


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if inner != {} and inner is not None}
