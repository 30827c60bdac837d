"""Reduces events to documents."""

# Pure, and independent of the order of events of one moment.

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ids import session_alias
from holdfast.core.kinds import HOOK_KINDS, HookPayload
from holdfast.core.kinds.agent_events import ModelAnswered
from holdfast.core.kinds.session_events import TurnAnswerRead, TurnProcessed
from holdfast.core.ports import Reader, Ref
from holdfast.features.sessions.state import event_handlers
from holdfast.features.sessions.state.documents import (  # fmt: skip
    ACTIVE,
    COMPLETED,
    DAY,
    ENDED,
    IDLE,
    MAX_RECENT_SESSIONS,
    RECENT_SESSIONS,
    SESSION,
    SUBSCRIBED_KINDS,
    SUMMARY,
    TURN,
    WAITING,
    WATCHED,
    WORKING,
    YEAR,
    DayActivity,
    RecentSessions,
    Session,
    Summary,
    Turn,
    TurnDocument,
    YearActivity,
    one_line,
    turn_key,
)
from holdfast.features.sessions.state.lifecycle import (
    USERS_TURN,
    clear_running,
    close_turn,
    end_all_lanes,
    is_answered_by,
    new_session,
    proves_life,
    reactivate_session,
)

# What was done per day, project and agent: summed when a turn is gone through or a call of a model is read, never while a
# hook waits.

TOKEN_SUMS = ("input", "output", "cache_read", "cache_write")
SUMS = ("turns", "ms", "tools", "failed", "sessions", *TOKEN_SUMS)
# Projects of one day that are kept apart; others are summed under OTHER_PROJECTS.
MAX_PROJECTS = 60
OTHER_PROJECTS = "…"
LONGEST_TURN_MS = 12 * 3_600_000
"""Caps a turn that was left open overnight."""


def local_day(at: int) -> str:
    """In the time zone of this machine. Jobs write it into the event, so that replay needs no time zone."""
    try:
        return datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "1970-01-01"


def growth_of(turn: Turn, before: Turn | None) -> dict[str, int]:
    """What a turn adds to its day: the whole of it the first time, later only what grew."""
    earlier = before or Turn(n=turn.n)
    return {
        "tools": max(0, turn.tools - earlier.tools),
        "failed": max(0, turn.failed - earlier.failed),
        "ms": max(0, _turn_duration_ms(turn) - _turn_duration_ms(earlier)),
        "turns": int(before is None),
        "sessions": int(before is None and turn.n == 1),
    }


def _turn_duration_ms(turn: Turn) -> int:
    return min(max(0, turn.end - turn.at), LONGEST_TURN_MS)


def activity_keys(event: Event) -> Iterable[Ref]:
    day = _day_of_event(event)
    return (DAY.ref(day), YEAR.ref(day[:4]))


def _day_of_event(event: Event) -> str:
    data: TurnProcessed | ModelAnswered = event.data
    if data.day:
        return data.day
    # Older events name no day: then by UTC, as every replay gives the same.
    at = (data.facts.at if isinstance(data, TurnProcessed) else 0) or event.at
    # Bounded: times beyond the calendar would raise.
    return datetime.fromtimestamp(max(0, min(at, 1 << 45)) / 1000, UTC).date().isoformat()


def _added_sums(event: Event) -> Mapping[str, int]:
    data: TurnProcessed | ModelAnswered = event.data
    if isinstance(data, ModelAnswered):
        return _token_sums(data)
    return data.more or growth_of(Turn(n=data.n, **msgspec.structs.asdict(data.facts)), None)


def _token_sums(data: ModelAnswered) -> dict[str, int]:
    """Both tiers of cache writes as one; reasoning is part of the output."""
    tokens: dict[str, int] = {}
    for kind, n in data.tokens.items():
        # "cache_write_5m" and "cache_write_1h".
        name = "cache_write" if kind.startswith("cache_write") else kind
        tokens[name] = tokens.get(name, 0) + n
    return tokens


def reduce_day(doc: DayActivity | None, event: Event, ref: Ref) -> DayActivity:
    by = doc.by if doc else {}
    project = event.project if event.project in by or len(by) < MAX_PROJECTS else OTHER_PROJECTS
    agent = event.agent or event.get("agent", "")
    agents = by.get(project, {})
    sums = add_sums(agents.get(agent, {}), _added_sums(event))
    return DayActivity(day=ref.key, at=event.at, by={**by, project: {**agents, agent: sums}})


def reduce_year(doc: YearActivity | None, event: Event, ref: Ref) -> YearActivity:
    days = doc.days if doc else {}
    day = _day_of_event(event)[5:]
    return YearActivity(year=ref.key, at=event.at, days={**days, day: add_sums(days.get(day, {}), _added_sums(event))})


def add_sums(sums: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Names that count nothing are left out: most days have few."""
    return {name: n for name in SUMS if (n := sums.get(name, 0) + more.get(name, 0))}


HANDLERS = {**event_handlers.HANDLERS, **event_handlers.OWN_HANDLERS}


def keys(event: Event) -> Iterable[Ref]:
    if not event.session:
        return ()
    refs = [SESSION.ref(event.session)]
    data = event.data
    if event.kind in ("session.started", "prompt.submitted") and event.project:
        refs.append(RECENT_SESSIONS.ref(event.project))
    elif isinstance(data, TurnProcessed):
        refs += [TURN.ref(turn_key(event.session, data.n)), *activity_keys(event)]
    # A lane's answer has no turn of the session.
    elif isinstance(data, TurnAnswerRead) and data.n:
        refs.append(TURN.ref(turn_key(event.session, data.n)))
    elif isinstance(data, ModelAnswered) and data.day:
        refs += activity_keys(event)
    elif event.kind == "session.summarised":
        refs.append(SUMMARY.ref(event.session))
    return refs


def reduce(doc: Any, event: Event, ref: Ref) -> Any:
    return _REDUCERS[ref.kind](doc, event, ref)


def facets(_ref: Ref, doc: Any) -> tuple[str, str, int]:
    status = getattr(doc, "status", "")
    watched = isinstance(doc, Session) and status == ACTIVE and doc.process is not None
    return getattr(doc, "project", ""), WATCHED if watched else status, doc.at


def stream(ref: Ref) -> Mapping[str, str]:
    """Every document comes from the events of its own session (recent sessions: of the project; a day: of all)."""
    if ref.kind in (DAY.kind, YEAR.kind):
        return {}
    if ref.kind == RECENT_SESSIONS.kind:
        return {"project": ref.key}
    return {"session": ref.key.rpartition("/")[0] if ref.kind == TURN.kind else ref.key}


# ── a session ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def reduce_session(doc: Session | None, event: Event, _ref: Ref | None = None) -> Session | None:
    # Token use is read from files later: it is no sign of life.
    from_agent = event.kind in HOOK_KINDS and event.kind != ModelAnswered.KIND
    if doc is None:
        if not from_agent:
            return None  # Only an agent begins a session.
        session = new_session(event)
    else:
        # A shallow copy: handlers replace values and never change them in place.
        session = msgspec.structs.replace(doc)
    if from_agent:
        _note_event(session, event)
    handle = HANDLERS.get(event.kind)
    if handle:
        handle(session, event)
    _update_state(session, event)
    return session


def _note_event(session: Session, event: Event) -> None:
    data: HookPayload = event.data
    session.events += 1
    session.seq = event.seq
    # Events come in any order; activity never goes back.
    session.at = max(session.at, event.at)
    # The first project stays; an agent may change folders.
    session.agent, session.project = session.agent or event.agent, session.project or event.project
    # A subagent may have another model, and in Codex it keeps a transcript of its own.
    for name in ("branch", "cwd") if data.lane else ("branch", "cwd", "model", "transcript"):
        if value := getattr(data, name):
            setattr(session, name, value)
    if data.pid:
        session.hook = (data.pid, data.pid_start)
    session.process = data.process or session.process
    if session.status == COMPLETED and proves_life(session, event):
        reactivate_session(session)


def _update_state(session: Session, event: Event) -> None:
    """Computes the state from the facts, so that no order of events leaves an illegal one."""
    if session.status == COMPLETED:
        clear_running(session)
        end_all_lanes(session, event)
        close_turn(session, event, "ended")
        # `and {}` keeps an empty dict as the same object.
        session.open_gates = session.open_gates and {}
    state = _state_of(session)
    if state != session.state:
        session.state, session.since = state, event.at


def _state_of(session: Session) -> str:
    if session.status == COMPLETED:
        return ENDED
    if session.asks:
        # Whoever asks waits, whatever else is under way.
        return WAITING
    turn = session.turn
    if (turn and turn.is_open) or session.any_lane_open:
        return WORKING
    return WAITING if turn and turn.how in USERS_TURN else IDLE


# ── the smaller documents ──────────────────────────────────────────────────────────────────────────────────────────


def _reduce_turn(doc: TurnDocument | None, event: Event, ref: Ref) -> TurnDocument | None:
    if isinstance(event.data, TurnAnswerRead):
        answered = doc is not None and is_answered_by(doc, event.data)
        return msgspec.structs.replace(doc, answer=one_line(event.data.message)) if doc and answered else doc
    n = int(ref.key.rpartition("/")[2])
    turn = copy.copy(doc) if doc else TurnDocument(session=event.session)
    turn.n, turn.project = n, event.project
    data: TurnProcessed = event.data
    return msgspec.structs.replace(turn, **msgspec.structs.asdict(data.facts), status=COMPLETED)


def _reduce_summary(_doc: Summary | None, event: Event, _ref: Ref) -> Summary:
    facts = msgspec.structs.asdict(event.data)
    return Summary(**facts, session=event.session, project=event.project, at=event.at)


def _reduce_recent(doc: RecentSessions | None, event: Event, ref: Ref) -> RecentSessions | None:
    recent = doc.recent if doc else []
    # Nothing new: the document is not written for every prompt.
    if recent[:1] == [event.session]:
        return doc
    others = [session for session in recent if session != event.session]
    return RecentSessions(project=ref.key, recent=[event.session, *others][:MAX_RECENT_SESSIONS], at=event.at)


_REDUCERS: dict[str, Callable[[Any, Event, Ref], Any]] = {
    SESSION.kind: reduce_session,
    TURN.kind: _reduce_turn,
    SUMMARY.kind: _reduce_summary,
    RECENT_SESSIONS.kind: _reduce_recent,
    DAY.kind: reduce_day,
    YEAR.kind: reduce_year,
}


# Documents looked up: the session a person means, sessions by status, the turns of a session.

MAX_CANDIDATES = 10
ALIASES_SEARCHED = 2000
PAGE = 200


def wanted_session(call: Call) -> Session:
    """By `id`; without one the caller's session, else the latest in the project, else the latest of all."""
    session_id = str(call.args.get("id") or "").strip()
    if session_id:
        return find_session(call.reader, session_id)
    own = SESSION.load(call.reader, call.session) if call.session else None
    if own:
        return own
    for project in (call.project, ""):
        latest = SESSION.list(call.reader, project=project, limit=1)
        if latest:
            return latest[0][1]
    raise CommandRefused("no session is recorded yet", fix="Start your agent in a project, then: holdfast who")


def find_session(reader: Reader, session_id: str) -> Session:
    """The full id, else the one that begins like it, else the one whose alias, as lists show it, does."""
    exact = SESSION.load(reader, session_id)
    if exact:
        return exact
    found = SESSION.list(reader, prefix=session_id, limit=MAX_CANDIDATES + 1)
    if not found:
        found = [
            row for row in SESSION.list(reader, limit=ALIASES_SEARCHED) if session_alias(row[0]).startswith(session_id)
        ]
    if len(found) == 1:
        return found[0][1]
    wanted = repr(one_line(session_id, 80))
    if not found:
        raise CommandRefused(f"there is no session {wanted}", fix="See: holdfast session list --all")
    named = "; ".join(f"{doc.id} ({doc.title or doc.state})" for _, doc in found[:MAX_CANDIDATES])
    more = " …" if len(found) > MAX_CANDIDATES else ""
    raise CommandRefused(f"{wanted} is ambiguous: {named}{more}", fix="Give more of the id.")


def sessions_by_status(reader: Reader, status: str, until: int = 0) -> Iterator[Session]:
    """The latest first; with `until` only those quiet since then."""
    before = (until, "") if until else None
    while page := SESSION.list(reader, status=status, before=before, limit=PAGE):
        yield from (doc for _, doc in page)
        key, last = page[-1]
        # (time, key) of the last one: several may have the same time.
        before = (last.at, key)


def live_sessions(reader: Reader, until: int = 0) -> Iterator[Session]:
    """Every session that has not ended."""
    return chain(sessions_by_status(reader, WATCHED, until), sessions_by_status(reader, ACTIVE, until))


def turns_from_log(session: Session, reader: Reader) -> dict[int, Turn]:
    """Every turn of a session: after a day in the spool, or an import, there are more than documents hold."""
    doc: Session | None = None
    turns: dict[int, Turn] = {}
    for event in reader.replay(session=session.id):
        # As the engine does: other kinds never reach the reducer.
        doc = reduce_session(doc, event) if event.kind in SUBSCRIBED_KINDS else doc
        if doc and doc.turn:
            turns[doc.turn.n] = doc.turn
    return turns


class Turns:
    """The turns of one session by number: from documents, else from the log, read at most once."""

    def __init__(self, session: Session, reader: Reader) -> None:
        self.session, self.reader = session, reader
        self._known: dict[int, Turn | None] = {}
        self._in_log: dict[int, Turn] | None = None

    @property
    def last(self) -> int:
        return self.session.turn.n if self.session.turn else 0

    def get(self, n: int) -> Turn | None:
        if n not in self._known:
            self._known[n] = self._find(n) if 0 < n <= self.last else None
        return self._known[n]

    def remember(self, turns: Iterable[Turn]) -> None:
        """Turns that somebody has read already. The session itself knows its last two better."""
        # The stored documents of the last two may be older than the session's own.
        self._known |= {turn.n: turn for turn in turns if turn.n < self.last - 1}

    def latest(self, limit: int) -> list[Turn]:
        """The oldest of them first."""
        turns = (self.get(n) for n in range(max(1, self.last - limit + 1), self.last + 1))
        return [turn for turn in turns if turn]

    def at_event(self, seq: int) -> int:
        """The number of the turn that an event belongs to; 0 before the first."""
        low, high = 0, self.last
        while low < high:
            # Rounded up, or the loop would not end with two candidates left.
            middle = (low + high + 1) // 2
            if self.first_event(middle) <= seq:
                low = middle
            else:
                high = middle - 1
        return low

    def first_event(self, n: int) -> int:
        turn = self.get(n)
        return turn.first if turn else 0

    def _find(self, n: int) -> Turn | None:
        session = self.session
        for fresh in (session.turn, session.previous):
            if fresh and fresh.n == n:
                return fresh
        stored = TURN.load(self.reader, turn_key(session.id, n))
        if stored:
            return stored.as_turn()
        if self._in_log is None:
            self._in_log = turns_from_log(session, self.reader)
        return self._in_log.get(n)
