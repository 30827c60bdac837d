"""Sessions for people and tools: the list, one whole, who needs you, the timeline."""

# No door adds logic of its own.

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.analysis.usage.model import micro_dollars
from holdfast.analysis.usage.report import UNTOLD, format_count, format_dollars, format_known_cost
from holdfast.core.attention import ATTENTION, Attention, urgency
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ids import session_alias
from holdfast.core.kinds.session_events import SessionSummarised
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.text import strip_controls
from holdfast.features.sessions import liveness
from holdfast.features.sessions.state.documents import (  # fmt: skip
    ACTIVE,
    COMPLETED,
    SESSION,
    WAITING,
    WATCHED,
    PendingQuestion,
    RunningCall,
    Session,
    Turn,
)
from holdfast.features.sessions.state.reducer import (
    Turns,
    find_session,
    wanted_session,
)
from holdfast.features.sessions.survivors import Survivor, find_survivors
from holdfast.features.sessions.views import timeline
from holdfast.features.sessions.views.figures import (
    NOTHING_SPENT,
    Figures,
    describe_end,
    figures_of,
    format_counted,
    shown_state,
)

LONGEST_PAGE = 500
MAX_LIVE = 200
RECENTLY_ENDED = 50
"""Ended sessions whose processes are looked for."""
# Active sessions have one of two statuses in the index (`reducer.facets`).
LIVE = (WATCHED, ACTIVE)
# Smaller comes first.
URGENCY = {"permission": 0, "question": 0, "failed": 1}
OTHER_NEED, WORKING_ORDER, QUIET_ORDER = 2, 3, 4

to_plain = msgspec.to_builtins


class Need(msgspec.Struct, frozen=True):
    """What the user is waited for."""

    what: str
    text: str
    since: int
    id: str = ""
    task: str = ""


def _pick(source: object, names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names.split()}


def session_row(session: Session, figures: Figures, attention: Attention | None = None) -> dict[str, Any]:
    """A session in a list: what it is, its figures, what it does now. `tokens` is by kind; `cost` is in micro-dollars, and
    `reported_cost` what the agent itself says, where that is another figure. None is what nobody reported."""
    turn, spent = session.turn, figures.spent
    row: dict[str, Any] = to_plain({
        **_pick(session, "id agent project branch title status reason detail started_at at since ended_at restarts"),
        **_pick(session, "parent parent_reason"),
        **_pick(figures, "state duration_ms prompts failed denied edits compactions open_gates let_through"),
        **_pick(spent, "tokens total_tokens cost unpriced"),
        "alias": session_alias(session.id),
        "end": describe_end(session),
        "turns_count": figures.turns,
        "tools": figures.calls,
        "reported_cost": spent.reported,
        "needs": _session_need(session, figures.state == WAITING, attention or Attention()),
        "turn_n": figures.turns,
        "turn_at": turn.at if turn else 0,
        "prompt": turn.prompt if turn else "",
        "doing": _current_activity(session),
        "lanes_open": sum(not lane.end for lane in session.lanes.values()),
        "pid": session.process.pid if session.process else 0,
    })  # fmt: skip
    return row


def row_of(session: Session, call: Call) -> dict[str, Any]:
    figures = figures_of(session, call.reader, call.now, call.settings)
    return session_row(session, figures, ATTENTION.load(call.reader, session.id))


def _session_need(session: Session, waits: bool, attention: Attention) -> Need | None:
    """What the agent waits for; else what else needs a person (`core.attention`), such as a budget that is used up."""
    if waits and session.asks:
        ask = session.asks[0]
        named = next((one for one in attention.needs if one.asks and one.since == ask.at), None)
        return Need(ask.what, _describe_call(ask), ask.at, named.id if named else "", attention.task)
    other = [one for one in attention.needs if not one.asks and one.kind not in ("finished", "failed")]
    if other:
        first = min(other, key=urgency)
        return Need(first.kind, first.text, first.since, first.id, first.task)
    turn = session.turn
    return Need(turn.how, turn.answer, session.since, task=attention.task) if turn and waits else None


def _current_activity(session: Session) -> str:
    running = list(session.running.values())
    return _describe_call(running[-1]) if running else ""


def _describe_call(call: PendingQuestion | RunningCall) -> str:
    return f"{call.tool}: {call.about}" if call.tool and call.about else call.tool or call.about


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_sessions(call: Call) -> dict[str, Any]:
    """A page, the latest activity first. `next` is the `before` of the following one; `since` ends the pages there."""
    args = call.args
    limit, before = _page_limit(call, 50), args.get("before")
    page = _newest_sessions(
        call.reader,
        ("",) if args.get("all") else LIVE,
        project=str(args.get("project") or ""),
        before=(int(before[0]), str(before[1])) if before else None,
        limit=limit,
    )
    recent = [session for session in page if session.at >= int(args.get("since") or 0)]
    # A full page may be followed by another one; a short one is the last.
    last = page[-1] if len(recent) == limit else None
    rows = [row_of(session, call) for session in recent]
    return {"sessions": rows, "next": [last.at, last.id] if last else None, "now": call.now}


def _page_limit(call: Call, default: int, name: str = "limit") -> int:
    return max(1, min(int(call.args.get(name) or default), LONGEST_PAGE))


def _newest_sessions(reader: Reader, statuses: tuple[str, ...], limit: int, **only: Any) -> list[Session]:
    """The newest of several statuses: each is a page of its own, merged."""
    docs = [doc for status in statuses for _, doc in SESSION.list(reader, status=status, limit=limit, **only)]
    return sorted(docs, key=lambda session: (session.at, session.id), reverse=True)[:limit]


def list_live_sessions(call: Call) -> dict[str, Any]:
    """Every live session, those that need the user first, the longest waiting of them on top."""
    rows = sorted(
        (row_of(session, call) for session in _newest_sessions(call.reader, LIVE, MAX_LIVE)), key=_urgency_key
    )
    ended = [session for _, session in SESSION.list(call.reader, status=COMPLETED, limit=RECENTLY_ENDED)]
    left = [
        {"session": name, **to_plain(one)} for name, found in survivors_of(ended, call.caller).items() for one in found
    ]
    return {"sessions": rows, "waiting": sum(1 for row in rows if row["needs"]), "survivors": left, "now": call.now}


def survivors_of(sessions: Iterable[Session], caller: int) -> dict[str, list[Survivor]]:
    """Nothing outlives an agent that lives: after `/clear` the same process goes on with another session."""
    gone = [one.id for one in sessions if not one.is_active and not (one.process and liveness.is_alive(one.process))]
    return find_survivors(gone, caller)


def _urgency_key(row: dict[str, Any]) -> tuple[int, int]:
    if row["needs"]:
        return URGENCY.get(row["needs"]["what"], OTHER_NEED), row["needs"]["since"]
    return (WORKING_ORDER if row["state"] == "working" else QUIET_ORDER), -row["at"]


# ── one session ───────────────────────────────────────────────────────────────────────────────────────────────────────


def resolve_session_id(call: Call) -> dict[str, str]:
    """The full id of the session that a person means by its beginning or its alias."""
    return {"id": wanted_session(call).id}


def show_session(call: Call) -> dict[str, Any]:
    """One session whole: its facts, what it came to (unless it is asked `brief`), its latest turns."""
    doc = wanted_session(call)
    figures = figures_of(doc, call.reader, call.now, call.settings)
    turns = Turns(doc, call.reader).latest(_page_limit(call, 10, "turns"))
    return {
        **session_row(doc, figures, ATTENTION.load(call.reader, doc.id)),
        **_session_details(doc),
        "summary": None if call.args.get("brief") else summary_view(doc, call.reader, figures),
        "turns": [turn_row(turn, figures) for turn in turns],
        "survivors": to_plain(survivors_of([doc], call.caller).get(doc.id, [])),
        "now": call.now,
    }


def turn_row(turn: Turn, figures: Figures) -> dict[str, Any]:
    """With what it spent; `tokens` is null where nobody reported any."""
    spent = figures.by_turn.get(turn.n, NOTHING_SPENT)
    return {
        **to_plain(turn), "tokens": spent.tokens, "total_tokens": spent.total_tokens, "cost": spent.cost,
        "unpriced": spent.unpriced, "reported_cost": spent.reported,
    }  # fmt: skip


def _session_details(doc: Session) -> dict[str, Any]:
    names = "cwd transcript model origin source pull_requests lanes lanes_seen children children_seen running asks turn"
    details: dict[str, Any] = to_plain(
        {**_pick(doc, f"{names} injected first_seq seq events"), "gates": doc.open_gates}
    )
    # With the fields that are empty, too.
    return {**details, "process": msgspec.structs.asdict(doc.process) if doc.process else None}


def summary_view(doc: Session, reader: Reader, figures: Figures) -> dict[str, Any]:
    from holdfast.features.sessions.jobs.summarise import summary_of

    summary = summary_of(doc, reader, figures)
    return {name: to_plain(getattr(summary, name)) for name in SessionSummarised.__struct_fields__}


# ── its rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TOOL_ROWS = ("tool.finished", "tool.failed")
RULE_KINDS = timeline.RULE_KINDS
ROW_KINDS = (*(kind for kind in timeline.SHOWN_KINDS if kind != "tool.started"), *RULE_KINDS)
ROW_FILTERS: dict[str, tuple[str, ...]] = {
    "": ROW_KINDS,
    "prompts": ("prompt.submitted", "turn.ended", "turn.failed", "turn.interrupted"),
    "tools": TOOL_ROWS,
    "failures": ("tool.failed", "turn.failed", "permission.denied", "session.lost"),
    "decisions": ("decision.made",),
    "checks": ("decision.made", *RULE_KINDS),
    "subagents": ("subagent.started", "subagent.ended"),
}
MARK_EVERY = 200
SEARCHED_AT_ONCE = 10_000
SEARCH_PAGE = 1_000
MAX_TURNS, MAX_DECISIONS = 400, 400


def timeline_page(call: Call) -> dict[str, Any]:
    """A page from the end (or before `before`), oldest first. `next` is the `before` of the page before it."""
    doc = wanted_session(call)
    limit, before = _page_limit(call, 100), int(call.args.get("before") or 0)
    query = EventQuery(session=doc.id, kinds=timeline.SHOWN_KINDS, before=before, limit=limit, newest=True)
    page = call.reader.events(query)
    return {
        "session": row_of(doc, call),
        "entries": [_plain_row(row) for row in timeline.rows_of(doc, page, call.reader)],
        "next": page[0].seq if len(page) == limit else None,
        "now": call.now,
    }


def _plain_row(row: timeline.Row) -> dict[str, Any]:
    """Outputs are long: who wants one asks for its event."""
    plain: dict[str, Any] = to_plain(row)
    del plain["output"]
    return plain


def timeline_rows(call: Call) -> dict[str, Any]:
    """From event `start` on, or before `before`, or the last ones; with `q`, only those with this text in them."""
    doc, args = wanted_session(call), call.args
    start, before = int(args.get("start") or 0), int(args.get("before") or 0)
    query = EventQuery(
        session=doc.id, kinds=filtered_kinds(call), after=max(0, start - 1), before=before,
        limit=_page_limit(call, MARK_EVERY), newest=not start,
    )  # fmt: skip
    text = str(args.get("q") or "").strip()
    page, older = _search_events(call.reader, query, text) if text else _event_page(call.reader, query)
    return {"rows": _rows_with_turns(doc, page, call.reader), "older": older, "now": call.now}


def filtered_kinds(call: Call) -> tuple[str, ...]:
    """The kinds that `only` leaves."""
    return ROW_FILTERS.get(str(call.args.get("only") or ""), ROW_KINDS)


def _event_page(reader: Reader, query: EventQuery) -> tuple[list[Event], int]:
    page = reader.events(query)
    return page, page[0].seq if len(page) == query.limit else 0


def _search_events(reader: Reader, query: EventQuery, text: str) -> tuple[list[Event], int]:
    """Newest first, so many at a go; the number says where to look on."""
    needle, matches, looked, before = text.casefold(), list[Event](), 0, query.before
    while len(matches) < query.limit and looked < SEARCHED_AT_ONCE:
        # Searched from the end in pages, whatever the query said.
        page = reader.events(msgspec.structs.replace(query, after=0, before=before, limit=SEARCH_PAGE, newest=True))
        for event in reversed(page):
            if len(matches) < query.limit and needle in _searched_text(event):
                matches.append(event)
                before = event.seq
        looked += len(page)
        if len(page) < SEARCH_PAGE:
            return matches[::-1], before if len(matches) == query.limit else 0
        # Where the page was not used up by hits, the next look begins before it.
        before = before if len(matches) == query.limit else page[0].seq
    return matches[::-1], before


def _searched_text(event: Event) -> str:
    return f"{event.tool} {event.kind} {msgspec.json.encode(event.data, enc_hook=str).decode()}".casefold()


def _rows_with_turns(doc: Session, page: list[Event], reader: Reader) -> list[dict[str, Any]]:
    """With the extent of its turn, so that a row can be drawn inside of it."""
    turns = Turns(doc, reader)
    shown = []
    for row in timeline.rows_of(doc, page, reader, turns, fold_denials=False):
        turn = turns.get(row.turn)
        row.text = _within_project(doc, row.text)
        extent = {
            "turn_at": turn.at if turn else 0, "turn_end": (turn.end if turn else 0) or doc.at,
            "turn_first": turn.first if turn else 0,
        }  # fmt: skip
        shown.append({**_plain_row(row), **extent})
    return shown


def _within_project(doc: Session, text: str) -> str:
    """A path of the project without what all of them begin with."""
    for folder in (doc.project, doc.cwd):
        if folder and text.startswith(f"{folder}/"):
            return text[len(folder) + 1 :]
    return text


def row_marks(call: Call) -> dict[str, Any]:
    """The number of every two-hundredth row, and how many rows there are: what a scroll bar needs."""
    query = EventQuery(session=wanted_session(call).id, kinds=filtered_kinds(call))
    seqs = call.reader.marks(query, MARK_EVERY)
    # Only the last stretch is counted one by one.
    last = msgspec.structs.replace(query, after=seqs[-1] - 1, limit=MARK_EVERY) if seqs else None
    rest = call.reader.events(last) if last else []
    total = max(0, len(seqs) - 1) * MARK_EVERY + len(rest)
    return {"marks": seqs, "every": MARK_EVERY, "total": total, "last": rest[-1].seq if rest else 0}


def session_overview(call: Call) -> dict[str, Any]:
    """The whole session at a glance: its latest turns and lanes, and where something was refused or injected."""
    doc = wanted_session(call)
    query = EventQuery(session=doc.id, kinds=("decision.made",), newest=True, limit=MAX_DECISIONS)
    turns, figures = (
        Turns(doc, call.reader).latest(MAX_TURNS),
        figures_of(doc, call.reader, call.now, call.settings),
    )
    return {
        "turns": [turn_row(turn, figures) for turn in turns],
        "lanes": [{"id": lane, **to_plain(entry)} for lane, entry in doc.lanes.items()],
        "decisions": [{"seq": e.seq, "at": e.at, "deny": e.data.verdict == "deny"} for e in call.reader.events(query)],
        "running": to_plain(list(doc.running.values())),
        "from": turns[0].at if turns else doc.started_at,
        "to": doc.ended_at or doc.at,
    }


# One line about a session for its agent's screen: its cost, how full its context is, open gates.

SEPARATOR = " · "
MAX_OTHERS = 50
"""Live sessions that are looked at, the latest first: a line must not take long."""


def statusline(call: Call) -> dict[str, Any]:
    """`context` is how full the agent says its window is, in percent; `reported` what it says the session cost. Without an
    id the `latest` session here is shown, if a person asks: an agent's own screen never shows another session."""
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
        if not session_id and call.args.get("latest"):
            return wanted_session(call)
        return find_session(call.reader, session_id) if session_id else None
    except CommandRefused:
        return None


def _spending_parts(figures: Figures, reported: object) -> list[str]:
    """Our figure; until the first call of a model is read, the agent's own."""
    spent = figures.spent
    if spent.total_tokens is None:
        reported_cost = micro_dollars(reported)
        return [format_dollars(reported_cost)] if reported_cost is not None else [f"{UNTOLD} tokens"]
    return [format_known_cost(spent.cost, spent.unpriced), f"{format_count(spent.total_tokens)} tokens"]


def _context_part(percent: object) -> list[str]:
    # True is an int in Python.
    is_valid = isinstance(percent, int | float) and not isinstance(percent, bool) and 0 <= percent <= 100
    return [f"context {percent:.0f}%"] if is_valid else []


def _waiting_others(session: Session | None, call: Call) -> list[str]:
    own = session.id if session else ""
    live = (doc for key, doc in SESSION.list(call.reader, status=WATCHED, limit=MAX_OTHERS) if key != own)
    n = sum(1 for doc in live if shown_state(doc, call.now, call.settings) == WAITING)
    return [f"{n} other {'session waits' if n == 1 else 'sessions wait'}"] if n else []
