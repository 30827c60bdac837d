"""MCP prompts that a person selects in the agent."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.times import DAY, format_duration
from holdfast.doors.mcp.answers import Row, date_of, format_row
from holdfast.doors.mcp.context import Context

PROMPTS = (
    {
        "name": "hand_over", "title": "Hand over", "description": "A packet for the agent that continues.",
        "arguments": [{"name": "note", "description": "What the next one should do first."}],
    },
    {
        "name": "what_changed", "title": "What changed since I was here",
        "description": "Sessions, memories and tasks since a date, or since the session before this one.",
        "arguments": [{"name": "since", "description": "A date like 2026-11-15; else the last session's end."}],
    },
)  # fmt: skip


def render_prompt(name: str, arguments: dict[str, str], context: Context) -> str:
    if name == "hand_over":
        packet = context.command("memory.handoff", note=str(arguments.get("note") or "")[:300])["text"]
        return (
            f"Check this hand-over against the repository, correct what is wrong, then give it to the user:\n{packet}"
        )
    if name == "what_changed":
        since = _parse_since(str(arguments.get("since") or ""), context)
        lines = list(_recent_changes(since, context)) or ["Nothing is on record since then."]
        return f"Tell the user in a few sentences what changed since {date_of(since)}:\n" + "\n".join(lines)
    raise CommandRefused(f"there is no prompt {name[:100]!r}", fix="See prompts/list.")


def _parse_since(since: str, context: Context) -> int:
    if since:
        try:
            day = datetime.fromisoformat(since)
        except ValueError:
            raise CommandRefused(f"{since[:50]!r} is not a date", fix="Write it like 2026-11-15.") from None
        return int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp() * 1000)
    answer = context.view("sessions.list", all=True, project=context.caller.project, limit=2)
    earlier = [one["at"] for one in answer["sessions"] if one["id"] != context.caller.session]
    # Without an earlier session: the last day.
    return int(earlier[0]) if earlier else int(answer["now"]) - DAY


def _recent_changes(since: int, context: Context) -> Iterator[str]:
    sessions = context.view("sessions.list", all=True, project=context.caller.project, limit=50)["sessions"]
    for one in sessions:
        if one["at"] >= since and one["id"] != context.caller.session:
            yield format_row(Row(one["id"], date_of(one["at"]), one["status"], f"{one['agent']} session", one["title"]))
    for doc in context.view("memory.listed", limit=100)["observations"]:
        if doc["at"] >= since and not doc["expired"]:
            yield format_row(Row(doc["id"], date_of(doc["at"]), doc["status"], doc["type"], doc["text"]))
    for moment in context.view("project.moments", project=context.caller.project)["moments"]:
        if moment["at"] >= since:
            status = moment["kind"] if moment["kind"] in ("passed", "failed", "commit") else ""
            yield format_row(Row(f"e{moment['seq']}", date_of(moment["at"]), status, "project", moment["what"]))


def figures_line(session: dict[str, Any]) -> str:
    """The figures that every list and page shows."""
    from holdfast.analysis.usage.report import UNTOLD, format_cost_facts  # Only who asks for a session needs prices.

    counted = (
        ("turn_n", "turns"), ("prompts", "prompts"), ("tools", "tool calls"), ("failed", "failed"), ("denied", "denied"),
        ("edits", "edits"), ("open_gates", "open gates"),
    )  # fmt: skip
    tokens = UNTOLD if session["total_tokens"] is None else f"{session['total_tokens']} tokens"
    parts = [f"{session[name]} {words}" for name, words in counted]
    cost = format_cost_facts(session["cost"], session["reported_cost"], session["unpriced"])
    return " | ".join((format_duration(session["duration_ms"]), ", ".join(parts), tokens, cost))
