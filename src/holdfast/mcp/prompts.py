"""Prompts that a person picks in the agent: hand the work over; what changed since I was here."""

from collections.abc import Iterator
from datetime import UTC, datetime

from holdfast.core.errors import CommandRefused
from holdfast.mcp.answer import Row, date_of, format_row
from holdfast.mcp.context import Context

DAY_MS = 86_400_000
PROMPTS = (
    {
        "name": "hand_over", "title": "Hand over", "description": "A packet from which another agent goes on.",
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
        lines = list(_changes(since, context)) or ["Nothing is on record since then."]
        return f"Tell the user in a few sentences what changed since {date_of(since)}:\n" + "\n".join(lines)
    raise CommandRefused(f"there is no prompt {name[:100]!r}", fix="See prompts/list.")


def _parse_since(since: str, context: Context) -> int:
    if since:
        try:
            day = datetime.fromisoformat(since)
        except ValueError:
            raise CommandRefused(f"{since[:50]!r} is not a date", fix="Write it like 2026-11-15.") from None
        return int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp() * 1000)
    found = context.view("sessions.list", all=True, project=context.caller.project, limit=2)
    earlier = [one["at"] for one in found["sessions"] if one["id"] != context.caller.session]
    return int(earlier[0]) if earlier else int(found["now"]) - DAY_MS


def _changes(since: int, context: Context) -> Iterator[str]:
    sessions = context.view("sessions.list", all=True, project=context.caller.project, limit=50)["sessions"]
    for one in sessions:
        if one["at"] >= since and one["id"] != context.caller.session:
            yield format_row(Row(one["id"], date_of(one["at"]), one["status"], f"{one['agent']} session", one["title"]))
    for doc in context.view("memory.listed", limit=100)["observations"]:
        if doc["at"] >= since:
            yield format_row(Row(doc["id"], date_of(doc["at"]), doc["status"], doc["type"], doc["text"]))
    for moment in context.view("project.moments", project=context.caller.project)["moments"]:
        if moment["at"] >= since:
            yield format_row(Row(f"e{moment['seq']}", date_of(moment["at"]), moment["kind"], "project", moment["what"]))
