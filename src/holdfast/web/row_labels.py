"""What a row of a session is called, and how it looks. Pure."""

import zlib
from collections.abc import Mapping
from typing import Any

LABELS = {
    "session.started": "Start", "session.ended": "End", "prompt.submitted": "Prompt", "turn.ended": "Answer",
    "turn.failed": "Failed", "turn.interrupted": "Interrupted", "turn.recovered": "Closed", "turn.escaped": "Escaped",
    "subagent.started": "Subagent", "subagent.ended": "Subagent end", "compact.ended": "Compacted",
    "notification": "Notice", "permission.requested": "Asks", "permission.denied": "Refused", "model.switched": "Model",
    "task.created": "Task", "task.completed": "Task done", "elicitation.requested": "Asks", "note.added": "Note",
    "session.lost": "Gone", "session.stale": "Stale", "session.left": "Left", "session.closed": "Closed",
    "session.reopened": "Reopened", "session.linked": "Goes on from", "session.branched": "Branched",
    "answer.undelivered": "Not delivered",
}  # fmt: skip
LOOKS = {
    "answer.undelivered": "failed",
    "prompt.submitted": "prompt", "turn.ended": "answer", "turn.failed": "failed", "tool.failed": "failed",
    "permission.denied": "failed", "session.lost": "failed", "permission.requested": "asks", "notification": "asks",
    "subagent.started": "sub", "subagent.ended": "sub", "tool.finished": "tool",
}  # fmt: skip
LANES = 5


def label(row: Mapping[str, Any]) -> str:
    if row["kind"] == "decision.made":
        return "Denied" if row["verdict"] == "deny" else "Injected context" if row["injected"] else "Decided"
    if row["kind"].startswith("tool."):
        return str(row["tool"] or "Tool").rpartition("__")[2].removeprefix("browser_")  # mcp__SERVER__TOOL
    if row["kind"] == "turn.ended" and not row["text"]:
        return "Turn end"  # What was answered is not known.
    value: str = LABELS.get(row["kind"], row["kind"])
    return value


def look(row: Mapping[str, Any]) -> str:
    if row["kind"] == "decision.made":
        return "denied" if row["verdict"] == "deny" else "told"
    if row.get("ok") is False:
        return "failed"
    return LOOKS.get(row["kind"], "quiet")


def says(row: Mapping[str, Any]) -> str:
    """The rest of the line, without what the label says already."""
    text = str(row["text"])
    if row["kind"] == "decision.made":
        verdict, _, text = text.partition(": ")
        return f"{row['injected']} tokens: {text}" if row["injected"] else text or verdict
    if row["kind"].startswith("subagent."):
        return f"{row['lane_type']} {text}".strip() or row["lane"]
    if row["kind"].startswith("tool.") and not text:
        return str(row["tool"] or "").removeprefix("mcp__").rpartition("__")[0]
    return text


def lane_class(lane: str) -> str:
    """The same lane has the same colour everywhere."""
    return f"lane-{zlib.crc32(lane.encode('utf-8', 'replace')) % LANES + 1}" if lane else ""


def bar(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Where it lies in its turn, in thousandths: (from, width). None where the turn is not known."""
    whole = row["turn_end"] - row["turn_at"]
    if not row["turn_at"] or whole <= 0:
        return None
    start = min(max(0.0, (row["began"] - row["turn_at"]) / whole * 1000), 990.0)
    if row["kind"] == "prompt.submitted":
        return 0.0, 1000.0
    return round(start, 1), round(max(10.0, min(row["ms"] / whole * 1000, 1000 - start)), 1)
