"""A session as a tree, and as it was at one moment: what the dashboard's Session page folds, scrolls and steps through."""

# The outline has the turns with the number of rows in each, read from the narrow table only, so that a page can lay
# out a hundred thousand rows and fetch those that are seen. The state at a moment is the engine's own fold of the log.

import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.analysis.usage.report import format_known_cost
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.history import MARK, HistoryMark
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.text import name_invisible
from holdfast.features.sessions.state.documents import SUBSCRIBED_KINDS, TURN, Session, Turn, one_line
from holdfast.features.sessions.state.reducer import Turns, reduce_session, wanted_session
from holdfast.features.sessions.views import filtered_kinds
from holdfast.features.sessions.views.figures import NOTHING_SPENT, Figures, figures_of

# Rows that a page fetches at a time.
BLOCK_ROWS = 200
MAX_OUTLINE_TURNS = 5_000
TURNS_ONE_BY_ONE = 30
PROMPT_LENGTH = 140
to_plain = msgspec.to_builtins


class OutlineTurn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One turn, and where its rows are. Turn 0 is what came before the first prompt that is listed."""

    n: int
    first: int
    at: int = 0
    end: int = 0
    how: str = ""
    prompt: str = ""
    tools: int = 0
    failed: int = 0
    rows: int = 0
    blocks: list[int] = []
    """The event that each block of BLOCK_ROWS rows begins with."""
    tokens: int | None = None
    cost: int | None = None
    """Micro-dollars; None where no price is known."""
    cost_text: str = ""
    """As every list writes it: the page's script has no rules of its own for money."""


def outline(call: Call) -> dict[str, Any]:
    """The turns from `turn` on (else all), with the rows that `only` leaves."""
    session, since = wanted_session(call), int(call.args.get("turn") or 0)
    turns = Turns(session, call.reader)
    first_listed = max(1, since, turns.last - MAX_OUTLINE_TURNS + 1)
    listed = _turns_from(turns, first_listed)
    # With `turn` the page asks only for what is new.
    after = listed[0].first - 1 if since and listed else 0
    query = EventQuery(session=session.id, kinds=filtered_kinds(call), after=after)
    numbers = call.reader.marks(query, 1)
    figures = figures_of(session, call.reader, call.now, call.settings)
    made = _split_rows(listed, numbers, figures, with_start=not since)
    rows = sum(turn.rows for turn in made)
    # `open`: more may come.
    return {
        "id": session.id, "turns": to_plain(made), "rows": rows, "block_rows": BLOCK_ROWS, "open": not session.ended_at,
    }  # fmt: skip


def _turns_from(turns: Turns, first: int) -> list[Turn]:
    """Read together: one by one, thousands of them take seconds."""
    count = turns.last - first + 1
    if count > TURNS_ONE_BY_ONE:
        prefix = f"{turns.session.id}/"
        turns.remember(
            # Some more: documents beyond the listed turns may be among them.
            doc.as_turn()
            for _, doc in TURN.list(turns.reader, prefix=prefix, limit=count + TURNS_ONE_BY_ONE)
        )
    return [turn for n in range(first, turns.last + 1) if (turn := turns.get(n))]


def _split_rows(
    turns: Sequence[Turn], numbers: Sequence[int], figures: Figures, *, with_start: bool
) -> list[OutlineTurn]:
    begins = [bisect_left(numbers, turn.first) for turn in turns]
    ends = [*begins[1:], len(numbers)]
    first = begins[0] if begins else len(numbers)
    made = []
    if with_start and first:
        made.append(OutlineTurn(n=0, first=numbers[0], rows=first, blocks=list(numbers[:first:BLOCK_ROWS])))
    for turn, begin, end in zip(turns, begins, ends, strict=True):
        made.append(_outline_turn(turn, numbers[begin:end], figures))
    return made


def _outline_turn(turn: Turn, numbers: Sequence[int], figures: Figures) -> OutlineTurn:
    spent = figures.by_turn.get(turn.n, NOTHING_SPENT)
    return OutlineTurn(
        n=turn.n, first=turn.first, at=turn.at, end=turn.end, how=turn.how, tools=turn.tools, failed=turn.failed,
        # A script of the page shows it as it is: no template goes over it.
        prompt=name_invisible(one_line(turn.prompt, PROMPT_LENGTH)),
        rows=len(numbers), blocks=list(numbers[::BLOCK_ROWS]), tokens=spent.total_tokens,
        cost=spent.cost, cost_text=format_known_cost(spent.cost, spent.unpriced) if spent.cost is not None else "",
    )  # fmt: skip


# ── the state at one moment ───────────────────────────────────────────────────────────────────────────────────────────

COUNTED = ("prompts", "tools", "failed", "denied", "edits", "compactions", "injected")


def moment(call: Call) -> dict[str, Any]:
    """After event `seq`, or after the `offset`-th row from event `start` on; without either, after the last row."""
    session = wanted_session(call)
    event = _chosen_event(call, session)
    before, after = folded_sessions.around(call.reader, session.id, event.seq)
    if after is None:
        raise CommandRefused(f"this session did not exist yet at event {event.seq}")
    query = EventQuery(session=session.id, kinds=filtered_kinds(call))
    return {
        **_moment_of(event, before, after),
        # The rows next to it; 0 where there is none.
        "previous": _neighbour_seq(call.reader, msgspec.structs.replace(query, before=event.seq, newest=True)),
        "next": _neighbour_seq(call.reader, msgspec.structs.replace(query, after=event.seq)),
    }


def _chosen_event(call: Call, session: Session) -> Event:
    args, query = call.args, EventQuery(session=session.id, kinds=filtered_kinds(call))
    seq, start = int(args.get("seq") or 0), int(args.get("start") or 0)
    if seq:
        event_query = msgspec.structs.replace(query, kinds=(), after=seq - 1, before=seq + 1, limit=1)
    elif start:
        # A row is at most a few blocks away from where a page begins.
        offset = max(0, min(int(args.get("offset") or 0), BLOCK_ROWS * 3))
        event_query = msgspec.structs.replace(query, after=start - 1, limit=offset + 1)
    else:
        event_query = msgspec.structs.replace(query, newest=True, limit=1)
    events = call.reader.events(event_query)
    if not events:
        raise CommandRefused(f"event {seq or start} does not belong to this session")
    return events[-1]


class FoldedSessions:
    """Documents along the way of a fold, so that stepping through a long session does not start over each time.

    Kept by the delivery key of the session's first event and by the number of erasures: what was erased is not kept.
    """

    EVERY = 1_000
    SESSIONS = 2

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], list[tuple[int, Session | None]]] = {}
        self._lock = threading.Lock()

    def around(self, reader: Reader, session: str, seq: int) -> tuple[Session | None, Session | None]:
        """Its document right before and right after event `seq`."""
        key = self._key(reader, session)
        with self._lock:
            snapshots = self._kept.pop(key, [(0, None)])
            # The session looked at last goes to the end; older ones are dropped.
            self._kept = {**dict(list(self._kept.items())[1 - self.SESSIONS :]), key: snapshots}
            return self._fold(reader, session, seq, snapshots)

    def _key(self, reader: Reader, session: str) -> tuple[str, int]:
        first = reader.events(EventQuery(session=session, limit=1))
        return first[0].key if first else "", HistoryMark.parse(reader.meta(MARK)).erasures

    def _fold(
        self, reader: Reader, session: str, seq: int, snapshots: list[tuple[int, Session | None]]
    ) -> tuple[Session | None, Session | None]:
        start = bisect_left(snapshots, seq, key=lambda one: one[0]) - 1
        after_seq, after = snapshots[start]
        before, done = after, 0
        for event in reader.replay(after=after_seq, session=session):
            if event.seq > seq:
                break
            before, after, done = after, reduce_safely(after, event), done + 1
            # Only behind the last snapshot: those before it are there already.
            if done % self.EVERY == 0 and event.seq > snapshots[-1][0]:
                snapshots.append((event.seq, after))
        return before, after


def reduce_safely(doc: Session | None, event: Event) -> Session | None:
    """As the engine does it: what cannot be applied leaves the document alone."""
    if event.kind not in SUBSCRIBED_KINDS:
        return doc
    try:
        return reduce_session(doc, event)
    except Exception:
        return doc


folded_sessions = FoldedSessions()


def _neighbour_seq(reader: Reader, query: EventQuery) -> int:
    events = reader.events(msgspec.structs.replace(query, limit=1))
    return events[0].seq if events else 0


def _moment_of(event: Event, before: Session | None, after: Session) -> dict[str, Any]:
    """A session right after one of its events, and the names of what that event changed."""
    turn, document = after.turn, to_plain(after)
    facts = {name: document[name] for name in ("id", "state", "reason", "model", "branch", "asks")}
    return {
        **facts, "seq": event.seq, "at": event.at, "kind": event.kind, "tool": event.tool,
        "turn": turn.n if turn else 0, "prompt": turn.prompt if turn else "", "turn_at": turn.at if turn else 0,
        "running": list(document["running"].values()), "gates": document["open_gates"],
        "lanes": [{"id": lane, **to_plain(one)} for lane, one in after.lanes.items() if not one.end],
        "counts": {name: document[name] for name in COUNTED}, "changed": _changed_names(before, after),
        "document": document,
    }  # fmt: skip


def _changed_names(before: Session | None, after: Session) -> list[str]:
    if before is None:
        return []
    return [name for name in after.__struct_fields__ if getattr(before, name) != getattr(after, name)]
