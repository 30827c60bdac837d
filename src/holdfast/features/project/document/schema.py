"""The published JSON Schema of the document, and what differs between two documents."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from holdfast.features.project.document import old_formats as formats

MOST_PROBLEMS = 20
SCHEMA: dict[str, Any] = msgspec.json.decode(Path(__file__).with_name("session_state.schema.json").read_bytes())
"""Of the v4 document, in its full and its minimal form (S1-15, S1-17)."""


def schema_problems(state: Any) -> list[str]:
    """Each problem with its place; empty when the document is valid."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    errors = sorted(
        Draft202012Validator(SCHEMA).iter_errors(state), key=lambda error: list(map(str, error.absolute_path))
    )
    return [_error_text(error) for error in errors[:MOST_PROBLEMS]]


def check(text: str, where: str = "") -> dict[str, Any]:
    """Whether a document's text is valid, and its problems if not."""
    try:
        document = formats.parsed(text, where)
    except formats.BadState as error:
        return {"valid": False, "version": "", "problems": [error.message]}
    version = str(document.get("SCHEMA_VERSION") or formats.OLD_VERSION)
    if version.startswith("3."):
        note = "it is of version 3; holdfast state migrate makes it version 4"
        return {"valid": False, "version": version, "problems": [note]}
    wrong = schema_problems(document)
    return {"valid": not wrong, "version": version, "problems": wrong}


def _error_text(error: Any) -> str:
    # Of several alternatives the deepest mistake says most.
    deepest = min(error.context, key=lambda e: -len(e.absolute_path), default=error) if error.context else error
    where = ".".join(map(str, deepest.absolute_path)) or "the document"
    return f"{where}: {deepest.message[:200]}"


# ── what differs between two documents ───────────────────────────────────────────────────────────────────────────────

MOST = 500
UNSAID = ("LAST_UPDATED", "resolved_at")
"""Times that differ without anything having changed."""
NAMES = ("id", "path", "pattern", "intent")


def document_differences(old: Any, new: Any) -> Iterator[dict[str, Any]]:
    """Leaves that differ, by dotted path. Lists of things with a name are compared by it, others as wholes."""
    return islice(_walk_differences(old, new, ""), MOST)


def _walk_differences(old: Any, new: Any, path: str) -> Iterator[dict[str, Any]]:
    before, after = _by_name(old), _by_name(new)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            if name not in UNSAID:
                yield from _walk_differences(before.get(name), after.get(name), f"{path}.{name}".lstrip("."))
    elif old != new:
        yield {"path": path, "before": old, "after": new}


def _by_name(value: Any) -> Any:
    """A list of things with a name as a mapping; everything else as it is."""
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return value
    names = [next((str(one[name]) for name in NAMES if name in one), None) for one in value]
    return value if None in names else dict(zip(names, value, strict=True))


# ── an old document filled in with what is observed now ──────────────────────────────────────────────────────────────


def filled_in(old: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    """An old file's own words, on today's facts: git and the rest as they are, tasks with what their gaps say now."""
    # What the old file leaves empty is taken from today.
    merged = {**observed, **{name: value for name, value in old.items() if value not in (None, [], {})}}
    merged["CURRENT_STATE"] = {**(old.get("CURRENT_STATE") or {}), **observed["CURRENT_STATE"]}
    if merged.get("PROJECT") == "unknown":
        merged["PROJECT"] = observed["PROJECT"]
    if isinstance(old.get("TASKS"), Mapping):
        merged["TASKS"] = {
            name: [_with_observed_description(task, observed) for task in tasks] for name, tasks in old["TASKS"].items()
        }
    merged["LAST_UPDATED"] = observed["LAST_UPDATED"]
    return merged


def _with_observed_description(task: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    same = [one for tasks in observed["TASKS"].values() for one in tasks if one["gap_type"] == task.get("gap_type")]
    return {**task, "description": same[0]["description"]} if same else dict(task)
