"""The published JSON Schema of the document, and what differs between two documents."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.features.project.document import old_formats as formats
from holdfast.features.project.state import SCHEMA_VERSION

# The published JSON Schema of the v4 document, full and minimal form alike (S1-15, S1-17).

Schema = dict[str, Any]
MOST_PROBLEMS = 20

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
TIME: Schema = {"type": ["string", "null"], "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}


def _object_schema(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items}


GIT = _object_schema(
    repository=MAYBE_TEXT,
    status={"enum": ["clean", "dirty", "unknown"]},
    branch=MAYBE_TEXT,
    commits_ahead=COUNT,
    commits_behind=COUNT,
    # A number in the minimal form of the document, an object in the full one.
    uncommitted_files={
        "anyOf": [
            COUNT,
            _object_schema(
                ("count",),
                count=COUNT,
                files=_list_schema(
                    _object_schema(
                        ("path",),
                        path=TEXT,
                        modified=TIME,
                        size_bytes={"type": ["integer", "null"]},
                        validated={"type": "boolean"},
                    )
                ),
            ),
        ]
    },
    last_commit={
        "anyOf": [
            {"type": "null"},
            _object_schema(hash=MAYBE_TEXT, message=MAYBE_TEXT, timestamp=TIME, author=MAYBE_TEXT),
        ]
    },
)
TESTS = _object_schema(
    last_run=TIME,
    status={"enum": ["passing", "failing", "not_run"]},
    total=COUNT,
    passed=COUNT,
    failed=COUNT,
    skipped=COUNT,
    failures={"type": "array"},
)
TREE = _object_schema(path=TEXT, modified=TIME, size_mb={"type": "number", "minimum": 0}, in_sync={"type": "boolean"})
NOTION = _object_schema(
    last_synced=TIME,
    sync_status={"enum": ["synced", "pending", "failed"]},
    pending_updates=_object_schema(count=COUNT, items={"type": "array"}),
)
BUDGET: Schema = {
    "anyOf": [
        COUNT,
        _object_schema(
            current=COUNT,
            limit={"type": ["integer", "null"]},
            percentage={"type": ["number", "null"]},
            estimated_sessions_remaining={"type": ["integer", "null"]},
        ),
    ]
}
EFFORT = _object_schema(complexity=TEXT, time_minutes={"type": "number", "minimum": 0}, confidence=SHARE)
TASK = _object_schema(
    ("description",),
    id={"type": "string", "pattern": r"^task_\d+$"},
    description=TEXT,
    gap_type=TEXT,
    discovered_at=TIME,
    discovery_method=TEXT,
    blocking=_list_schema(TEXT),
    resolution_criteria=_list_schema(TEXT),
    required_capabilities=_list_schema(TEXT),
    required_resources=_list_schema(TEXT),
    estimated_effort=EFFORT,
)
LEVELS = ("P0_blockers", "P1_urgent", "P2_maintenance", "P3_improvements")
TASKS: Schema = {
    "anyOf": [
        {"type": "null"},
        _list_schema(TEXT),
        {"type": "object", "properties": {name: _list_schema(TASK) for name in LEVELS}, "additionalProperties": False},
    ]
}
SIGNAL: Schema = {"anyOf": [MAYBE_TEXT, _object_schema(project=MAYBE_TEXT, confidence=SHARE, reason=MAYBE_TEXT)]}
RESOLUTION = _object_schema(
    project=MAYBE_TEXT,
    confidence=SHARE,
    resolved_at=TIME,
    method=TEXT,
    signals={"type": "object", "additionalProperties": SIGNAL},
    alternatives=_list_schema(_object_schema(("project",), project=TEXT, confidence=SHARE, reason=MAYBE_TEXT)),
)
CONTEXT = _object_schema(
    current_phase=MAYBE_TEXT,
    current_activity=_object_schema(type=TEXT, started_at=TIME, status=TEXT),
    uncommitted_files_context={
        "anyOf": [
            {"type": "null"},
            _object_schema(
                reason=TEXT,
                confidence=SHARE,
                evidence=_list_schema(TEXT),
                inferred_intent=TEXT,
                alternative_interpretations=_list_schema(_object_schema(intent=TEXT, confidence=SHARE)),
            ),
        ]
    },
    blockers={"type": "array"},
)
PATTERN = _object_schema(
    ("pattern",),
    pattern=TEXT,
    confidence=SHARE,
    sample_size=COUNT,
    last_observed=TIME,
    applies_to=_list_schema(TEXT),
)
LOCK = _object_schema(
    ("locked",),
    locked={"type": "boolean"},
    locked_by={"type": ["integer", "null"]},
    locked_at=TIME,
    locked_for=MAYBE_TEXT,
    estimated_release=TIME,
)
LINE = _object_schema(
    ("timestamp", "change_type", "summary"),
    timestamp=TIME,
    change_type=TEXT,
    section=TEXT,
    task_id=TEXT,
    summary=TEXT,
    changed_by_process={"type": "integer"},
)

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "SESSION_STATE v4",
    "description": "What is true of a project and what needs doing, whoever does it.",
    "type": "object",
    "required": ["SCHEMA_VERSION", "PROJECT", "CURRENT_STATE"],
    "properties": {
        "SCHEMA_VERSION": {"const": SCHEMA_VERSION},
        "LAST_UPDATED": TIME,
        "PROJECT": {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", "maxLength": 120},
        "CURRENT_STATE": {
            "type": "object",
            "minProperties": 1,
            "properties": {
                "git": GIT,
                "tests": TESTS,
                "filesystem": {"type": "object", "additionalProperties": TREE},
                "notion_workspace": NOTION,
                "token_budget": BUDGET,
            },
        },
        "TASKS": TASKS,
        "PROJECT_RESOLUTION": RESOLUTION,
        "WORK_CONTEXT": CONTEXT,
        "LEARNED_PATTERNS": _list_schema(PATTERN),
        "RESOURCE_LOCKS": {"type": "object", "additionalProperties": LOCK},
        "STATE_HISTORY": {"type": "array", "maxItems": 20, "items": LINE},
    },
}


def schema_problems(state: Any) -> list[str]:
    """What is wrong with it, each with where; empty when it is valid."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    errors = sorted(
        Draft202012Validator(SCHEMA).iter_errors(state), key=lambda error: list(map(str, error.absolute_path))
    )
    return [_error_text(error) for error in errors[:MOST_PROBLEMS]]


def check(text: str, where: str = "") -> dict[str, Any]:
    """A document's text, whole: whether it is valid, and what is wrong with it if not."""
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


# What differs between two documents, and how an old document is filled in with what is observed now.

MOST = 500
UNSAID = ("LAST_UPDATED", "resolved_at")
"""Times that differ without anything having changed."""


def document_differences(old: Any, new: Any) -> Iterator[dict[str, Any]]:
    """Leaves that differ, by dotted path. Lists of things with a name are compared by it, others as wholes."""
    for number, difference in enumerate(_walk_differences(old, new, "")):
        if number == MOST:
            return
        yield difference


def _walk_differences(old: Any, new: Any, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            if name not in UNSAID:
                yield from _walk_differences(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(old, list) and isinstance(new, list) and (_have_names(old) or _have_names(new)):
        yield from _walk_differences(_by_name(old), _by_name(new), path)
    elif old != new:
        yield {"path": path, "before": old, "after": new}


NAMES = ("id", "path", "pattern", "intent")


def _have_names(items: list[Any]) -> bool:
    return bool(items) and all(isinstance(one, Mapping) and any(name in one for name in NAMES) for one in items)


def _by_name(items: list[Any]) -> dict[str, Any]:
    return {str(next(one[name] for name in NAMES if name in one)): one for one in items}


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
