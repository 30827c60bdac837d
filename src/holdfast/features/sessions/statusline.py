"""One line about a session for its agent's screen: what it cost, how full its context is, what stands in its way."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.text import strip_controls
from holdfast.features.sessions.figures import Figures, figures_of, format_counted, shown_state
from holdfast.features.sessions.state.documents import SESSION, WAITING, WATCHED, Session
from holdfast.features.sessions.state.queries import find_session
from holdfast.usage.model import micro_dollars
from holdfast.usage.report import UNTOLD, format_count, format_dollars

SEPARATOR = " · "
MAX_OTHERS = 50
"""Live sessions that are looked at, the latest first: a line must not take long."""


def statusline(call: Call) -> dict[str, Any]:
    """`context` is how full the agent says its window is, in percent; `reported` what it says the session cost."""
    session = _find_call_session(call)
    others = _waiting_others(session, call)
    if session is None:
        return {"text": SEPARATOR.join(others), "id": ""}
    figures = figures_of(session, call.reader, call.now, call.settings)
    parts = [*_spending_parts(figures, call.args.get("reported")), *_context_part(call.args.get("context"))]
    gates = [format_counted(figures.open_gates, "open gate")] if figures.open_gates else []
    return {"text": strip_controls(SEPARATOR.join([*parts, *gates, *others])), "id": session.id}


def _find_call_session(call: Call) -> Session | None:
    session_id = str(call.args.get("id") or call.session)
    try:
        return find_session(call.reader, session_id) if session_id else None
    except CommandRefused:
        return None


def _spending_parts(figures: Figures, reported: object) -> list[str]:
    """Our figure; until the first call of a model is read, the agent's own."""
    spent = figures.spent
    if spent.total_tokens is None:
        reported_cost = micro_dollars(reported)
        return [format_dollars(reported_cost)] if reported_cost is not None else [f"{UNTOLD} tokens"]
    return [format_dollars(spent.cost), f"{format_count(spent.total_tokens)} tokens"]


def _context_part(percent: object) -> list[str]:
    is_valid = isinstance(percent, int | float) and not isinstance(percent, bool) and 0 <= percent <= 100
    return [f"context {percent:.0f}%"] if is_valid else []


def _waiting_others(session: Session | None, call: Call) -> list[str]:
    own = session.id if session else ""
    live = (doc for key, doc in SESSION.list(call.reader, status=WATCHED, limit=MAX_OTHERS) if key != own)
    n = sum(1 for doc in live if shown_state(doc, call.now, call.settings) == WAITING)
    return [f"{n} other {'session waits' if n == 1 else 'sessions wait'}"] if n else []
