"""What all reports say in the same words."""

from typing import Any

from holdfast.features.uat import files
from holdfast.features.uat.model import moment
from holdfast.features.uat.record import Record

MARKS = {
    "passed": "✓",
    "completed": "✓",
    "success": "✓",
    "failed": "✗",
    "failure": "✗",
    "in_progress": "…",
    "skipped": "–",
    "pending": "·",
}
REASONS = {
    "last-step": "its last step was done",
    "last-step-failed": "its last step failed",
    "session-ended": "the session ended",
    "process-gone": "the agent's process was gone",
    "session-stale": "the session went silent",
    "session-closed": "the session was closed by hand",
    "expired": "nothing happened for too long",
    "superseded": "another run began",
    "by-hand": "it was ended by hand",
}


def took(ms: int | None) -> str:
    if ms is None:
        return "–"
    if ms < 1000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms // 60_000} min {ms // 1000 % 60} s"


def clock(at: int | None) -> str:
    return "–" if at is None else f"{moment(at):%H:%M:%S}.{at % 1000:03}"


def when(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S} UTC"


def mark(status: str) -> str:
    return MARKS.get(status, "·")


def outcome(record: Record) -> str:
    return record.doc["outcome"] or "running"


def facts(record: Record) -> list[tuple[str, str]]:
    doc, told = record.doc, files.performance(record)
    end = REASONS.get(doc["reason"], doc["reason"])
    done = sum(step["status"] == "completed" for step in doc["steps"])
    found = [
        ("Scenario", doc["scenario"]),
        ("Run", doc["id"]),
        ("Began", when(doc["start"])),
        ("Ended", f"{when(doc['end'])}: {end}" if doc["end"] is not None else "not yet"),
        ("Took", took(None if doc["end"] is None else doc["end"] - doc["start"])),
        ("Steps", f"{done} of {len(doc['steps'])} completed"),
        ("Tool calls", f"{told['toolCallCount']}, {doc['failed']} failed"),
        ("Address", doc["base_url"]),
        ("Asked for", doc["message"]),
        ("Session", doc["session"]),
    ]
    return [(name, value) for name, value in found if value]


def steps(record: Record) -> list[dict[str, Any]]:
    """The seed's steps, with what was expected of each."""
    wanted = record.plan.get("steps", ())
    listed = files.scenario(record)["steps"]
    return [
        {**step, "expected": wanted[n].get("expected_ms"), "slow": _slow(step, wanted[n])}
        for n, step in enumerate(listed)
    ]


def _slow(step: dict[str, Any], wanted: dict[str, Any]) -> bool:
    expected = wanted.get("expected_ms")
    return bool(expected and step["duration"] is not None and step["duration"] > expected)
