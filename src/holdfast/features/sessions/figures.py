"""The figures of a session, computed once: every list, page, export, summary and answer shows these and no others.

What is not known is None, and reads "–"; it is never shown as 0.
"""

import msgspec

from holdfast.features.sessions.settings import DEFAULTS, SessionsSettings
from holdfast.features.sessions.state.documents import IDLE, WAITING, Session, Tokens

UNKNOWN = "–"


class Figures(msgspec.Struct, kw_only=True, frozen=True):
    """`duration_ms` is from the first to the last event of the agent itself: reports of jobs do not count."""

    state: str
    duration_ms: int
    turns: int
    prompts: int
    calls: int
    """Tool calls that ran to an end; those that were denied are in `denied`."""
    failed: int
    denied: int
    """Refusals by Holdfast, of whatever kind, and permissions that were refused."""
    edits: int
    compactions: int
    subagents: int
    tokens: Tokens | None
    total_tokens: int | None


def figures_of(session: Session, now: int, settings: SessionsSettings | None = None) -> Figures:
    return Figures(
        state=shown_state(session, now, settings),
        duration_ms=max(0, session.at - session.started_at),
        turns=session.turn.n if session.turn else 0,
        prompts=session.prompts,
        calls=session.tools,
        failed=session.failed,
        denied=session.denied,
        edits=session.edits,
        compactions=session.compactions,
        subagents=session.lanes_seen,
        tokens=session.tokens,
        total_tokens=session.tokens.total if session.tokens else None,
    )


def shown_state(session: Session, now: int, settings: SessionsSettings | None = None) -> str:
    """A session whose turn is long over waits for nobody any more."""
    idle_ms = (settings or DEFAULTS).idle_after_seconds * 1000
    if session.state == WAITING and not session.asks and now - session.since > idle_ms:
        return IDLE
    return session.state


# ── how figures read ──────────────────────────────────────────────────────────────────────────────────────────────────


def format_counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def format_tokens(tokens: Tokens | None) -> str:
    """By kind; a kind that nobody told is left out."""
    names = {"input": "in", "output": "out", "cache_read": "from cache", "cache_write": "into cache"}
    if tokens is None:
        return UNKNOWN
    return ", ".join(f"{n} {names[kind]}" for kind, n in tokens.counts().items())


def format_work(figures: Figures) -> str:
    parts = [
        format_counted(figures.prompts, "prompt"),
        format_counted(figures.calls, "tool call"),
        *([f"{figures.failed} failed"] if figures.failed else []),
        *([f"{figures.denied} denied"] if figures.denied else []),
    ]
    return ", ".join(parts)
