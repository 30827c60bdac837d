"""Documents looked up: the session a person means, sessions by status, the turns of a session."""

from collections.abc import Iterable, Iterator
from itertools import chain

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ids import session_alias
from holdfast.core.ports import Reader
from holdfast.features.sessions.events import SUBSCRIBED_KINDS
from holdfast.features.sessions.state.documents import (
    ACTIVE,
    SESSION,
    TURN,
    WATCHED,
    Session,
    Turn,
    one_line,
    turn_key,
)  # fmt: skip
from holdfast.features.sessions.state.reducer import reduce_session

MAX_CANDIDATES = 10
ALIASES_SEARCHED = 2000
PAGE = 200


def wanted_session(call: Call) -> Session:
    """By `id`; without one the session of whoever asks, else the latest in the project, else the latest of all."""
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
    raise CommandRefused("there is no session yet")


def find_session(reader: Reader, session_id: str) -> Session:
    """The full id, else the one that begins like it, else the alias shown in lists."""
    exact = SESSION.load(reader, session_id)
    if exact:
        return exact
    candidates = [doc for _, doc in SESSION.list(reader, prefix=session_id, limit=MAX_CANDIDATES + 1)]
    candidates = candidates or [
        doc for key, doc in SESSION.list(reader, limit=ALIASES_SEARCHED) if session_alias(key) == session_id
    ]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise CommandRefused(
            f"there is no session {one_line(session_id, 80)!r}", fix="See: holdfast session list --all"
        )
    named = "; ".join(f"{doc.id} ({doc.title or doc.state})" for doc in candidates[:MAX_CANDIDATES])
    more = " …" if len(candidates) > MAX_CANDIDATES else ""
    raise CommandRefused(f"{one_line(session_id, 80)!r} may be {named}{more}", fix="Give more of the id.")


def sessions_by_status(reader: Reader, status: str, until: int = 0) -> Iterator[Session]:
    """The latest first; with `until` only those quiet since then."""
    before = (until, "") if until else None
    while page := SESSION.list(reader, status=status, before=before, limit=PAGE):
        yield from (doc for _, doc in page)
        key, last = page[-1]
        before = (last.at, key)


def live_sessions(reader: Reader, until: int = 0) -> Iterator[Session]:
    """Every session that has not ended."""
    return chain(sessions_by_status(reader, WATCHED, until), sessions_by_status(reader, ACTIVE, until))


def turns_from_log(session: Session, reader: Reader) -> dict[int, Turn]:
    """Every turn of a session: after a day in the spool, or an import, there are more than documents hold."""
    doc: Session | None = None
    turns: dict[int, Turn] = {}
    for event in reader.replay(session=session.id):
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
        self._known |= {turn.n: turn for turn in turns if turn.n < self.last - 1}

    def latest(self, limit: int) -> list[Turn]:
        """The oldest of them first."""
        turns = (self.get(n) for n in range(max(1, self.last - limit + 1), self.last + 1))
        return [turn for turn in turns if turn]

    def at_event(self, seq: int) -> int:
        """The number of the turn that an event belongs to; 0 before the first."""
        low, high = 0, self.last
        while low < high:
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
