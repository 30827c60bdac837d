"""What the readable formats say the same way."""

from datetime import UTC, datetime
from typing import Any

from holdfast.features.sessions.model import counted

LABELS = {
    "session.started": "session started",
    "session.ended": "session ended",
    "session.lost": "the agent's process was gone",
    "session.stale": "nothing came for too long",
    "session.closed": "closed by the user",
    "session.reopened": "opened again by the user",
    "session.linked": "goes on from",
    "turn.failed": "the turn failed",
    "turn.interrupted": "interrupted",
    "turn.recovered": "the turn was closed by recovery",
    "permission.requested": "permission asked",
    "permission.denied": "permission denied",
    "subagent.started": "subagent began",
    "subagent.ended": "subagent ended",
    "compact.ended": "context compacted",
    "decision.made": "Holdfast",
}


def moment(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return str(at_ms)


def label(entry: dict[str, Any]) -> str:
    return LABELS.get(entry["kind"], entry["kind"])


def is_prompt(entry: dict[str, Any]) -> bool:
    return entry["kind"] == "prompt.submitted"


def is_tool(entry: dict[str, Any]) -> bool:
    return entry["kind"] in ("tool.started", "tool.finished", "tool.failed")


def outcome(entry: dict[str, Any]) -> str:
    if entry["kind"] == "tool.started":
        return "did not end"
    if entry.get("ok") is False:
        code = entry.get("exit_code")
        return f"failed ({code})" if code is not None else "failed"
    return "ok"


def facts(session: dict[str, Any]) -> list[tuple[str, str]]:
    tokens = session["tokens"]
    ended = f", ended {moment(session['ended_at'])} ({session['reason']})" if session["ended_at"] else ""
    return [
        ("session", session["id"]),
        ("agent", session["agent"]),
        ("project", session["project"]),
        ("state", f"{session['state']}{ended}"),
        ("started", moment(session["started_at"])),
        ("work", f"{counted(session['prompts'], 'prompt')}, {counted(session['tools'], 'tool call')}"),
        ("tokens", f"{tokens['input']} in, {tokens['output']} out, {tokens['cache_read']} from cache"),
        *([("goes on from", f"{session['parent']} ({session['parent_reason']})")] if session["parent"] else []),
    ]
