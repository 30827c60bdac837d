"""What the readable formats say the same way."""

from datetime import UTC, datetime
from typing import Any

from holdfast.core.times import format_duration
from holdfast.features.sessions.figures import UNKNOWN, Figures, format_cost, format_tokens, format_work
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.timeline import Row


def format_moment(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    # An agent's clock may say anything.
    except (OverflowError, OSError, ValueError):
        return str(at_ms)


def is_call(row: Row) -> bool:
    return row.kind in ("tool.started", "tool.finished", "tool.failed")


def format_outcome(row: Row) -> str:
    """How a call ended, with its exit code or the reason of a denial."""
    if row.outcome == "failed" and row.exit_code is not None:
        return f"failed ({row.exit_code})"
    if row.outcome == "denied" and row.reason:
        return f"denied: {row.reason}"
    return row.outcome or UNKNOWN


def session_facts(session: Session, figures: Figures) -> list[tuple[str, str]]:
    ended = f" {format_moment(session.ended_at)} ({session.reason})" if session.ended_at else ""
    facts: list[tuple[str, Any]] = [
        ("session", session.id),
        ("agent", session.agent),
        ("project", session.project),
        ("state", f"{figures.state}{ended}"),
        ("started", format_moment(session.started_at)),
        ("duration", format_duration(figures.duration_ms)),
        ("work", format_work(figures)),
        ("tokens", format_tokens(figures.spent)),
        ("cost", format_cost(figures.spent)),
    ]
    if session.parent:
        facts.append(("continues", f"{session.parent} ({session.parent_reason})"))
    return facts
