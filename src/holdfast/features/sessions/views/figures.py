"""The figures of a session, computed once: every list, page, export, summary and answer shows these and no others."""

# What is not known is None, and reads "–"; it is never shown as 0. Tokens and money come from the documents of the
# feature `cost`, by the prices of today.

import msgspec

from holdfast.analysis.usage.model import Usage
from holdfast.analysis.usage.prices import BadPrices, PriceTable, current_table, load_table
from holdfast.analysis.usage.report import UNTOLD, Sum, format_cost_facts
from holdfast.analysis.usage.spending import Spending, session_spending
from holdfast.core.ports import Reader
from holdfast.features.sessions.settings import DEFAULTS, SessionsSettings
from holdfast.features.sessions.state.documents import IDLE, TERMINAL_CLOSED, WAITING, Session

UNKNOWN = UNTOLD


class Spent(msgspec.Struct, kw_only=True, frozen=True):
    """Tokens and money of a session or a turn."""

    tokens: dict[str, int] | None
    """By kind (`usage.model.KINDS`); a kind that nobody reported is absent. None while nobody reported any."""
    total_tokens: int | None
    cost: int | None
    """Micro-dollars; None where no price is known."""
    unpriced: list[str]
    """Models whose use is not in the cost."""
    reported: int | None
    """What the agent itself says it cost, where that is another figure."""


NOTHING_SPENT = Spent(tokens=None, total_tokens=None, cost=None, unpriced=[], reported=None)


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
    open_gates: int
    """Gates that refused something in it and were not satisfied since."""
    let_through: list[str]
    """Requirements that were open when its last stop was let through."""
    spent: Spent
    by_turn: dict[int, Spent]


def figures_of(session: Session, reader: Reader, now: int, settings: SessionsSettings | None = None) -> Figures:
    return build_figures(session, session_spending(reader, session.id, price_table()), now, settings)


def build_figures(session: Session, spending: Spending, now: int, settings: SessionsSettings | None = None) -> Figures:
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
        open_gates=len(session.open_gates),
        let_through=session.let_through,
        spent=spent_of(spending.whole),
        by_turn=_by_turn(spending),
    )


def price_table() -> PriceTable:
    """The shipped prices where own prices cannot be read; `holdfast cost` reports the problem."""
    try:
        return current_table()
    except BadPrices:
        return load_table()


def _by_turn(spending: Spending) -> dict[int, Spent]:
    # Turn 0 is use whose turn is not known.
    return {n: spent_of(one) for n, one in spending.by_turn.items() if n}


def spent_of(one: Sum | None) -> Spent:
    if one is None:
        return NOTHING_SPENT
    return Spent(
        tokens=_token_counts(one.usage), total_tokens=one.usage.total, cost=one.priced, unpriced=sorted(one.unpriced),
        reported=one.reported if one.differs else None,
    )  # fmt: skip


def _token_counts(usage: Usage) -> dict[str, int]:
    counts: dict[str, int] = msgspec.to_builtins(usage)
    return counts


def shown_state(session: Session, now: int, settings: SessionsSettings | None = None) -> str:
    """A session whose turn is long over waits for nobody any more."""
    idle_ms = (settings or DEFAULTS).idle_after_seconds * 1000
    if session.state == WAITING and not session.asks and now - session.since > idle_ms:
        return IDLE
    return session.state


# ── how figures read ──────────────────────────────────────────────────────────────────────────────────────────────────

# What importers give as the reason of an end.
IMPORTED_ENDS = {
    "import": "imported", "import-working": "imported up to the middle of a turn", "import-exit": "ended by the person",
}  # fmt: skip
TOLD_ENDS = {
    **IMPORTED_ENDS, **dict.fromkeys(("prompt_input_exit", "user_exit", "user_close", "window_close", "logout"), "ended by the person"),
    TERMINAL_CLOSED: "its terminal was closed",
}  # fmt: skip
"""By what the agent said, or Holdfast saw, when it ended."""
ENDS_IN_WORDS = {
    "exit": "ended normally", "clear": "cleared", "process-gone": "its process is gone", "stale": "no sign of life",
    "closed-by-user": "closed by a person",
}  # fmt: skip
CUT_OFF = {"working": "in the middle of its work", "asking": "while it asked its person"}


def describe_end(session: Session) -> str:
    """Why a session is over, in the words of every list, page and export; empty while it is not."""
    if not session.reason:
        return ""
    told = TOLD_ENDS.get(session.detail)
    # A file of an agent says until when it was written, not whether the agent exited or was killed.
    if told and session.detail in IMPORTED_ENDS:
        return told
    why, cut_off = told or ENDS_IN_WORDS.get(session.reason, session.reason), CUT_OFF.get(session.at_end, "")
    # Some agents do not say when a turn is over.
    if session.reason == "exit" and not told and session.at_end == "working":
        return "ended with an open turn"
    if session.reason == "process-gone" and session.at_end == "answered":
        cut_off = "after its answer"
    return f"{why} {cut_off}".strip() if session.reason in ("exit", "process-gone") else why


TOKEN_NAMES = {
    "input": "in", "output": "out", "cache_read": "from cache", "cache_write_5m": "into cache",
    "cache_write_1h": "into cache for an hour",
}  # fmt: skip


def format_counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def format_tokens(spent: Spent) -> str:
    """By kind; a kind that nobody reported is left out."""
    if spent.tokens is None:
        return UNKNOWN
    return ", ".join(f"{n} {TOKEN_NAMES[kind]}" for kind, n in spent.tokens.items() if kind in TOKEN_NAMES)


def format_cost(spent: Spent) -> str:
    return format_cost_facts(spent.cost, spent.reported, spent.unpriced)


def format_work(figures: Figures) -> str:
    parts = [
        format_counted(figures.prompts, "prompt"),
        format_counted(figures.calls, "tool call"),
        *([f"{figures.failed} failed"] if figures.failed else []),
        *([f"{figures.denied} denied"] if figures.denied else []),
        *([format_counted(figures.open_gates, "open gate")] if figures.open_gates else []),
        *(
            [f"let through with {format_counted(len(figures.let_through), 'open requirement')}"]
            if figures.let_through
            else []
        ),
    ]
    return ", ".join(parts)
