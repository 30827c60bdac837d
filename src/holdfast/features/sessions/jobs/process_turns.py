"""Going through closed turns (S4-14): their facts become documents, their token use is read. Costs no model."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.session_events import TokensRead, TurnFacts, TurnProcessed
from holdfast.core.ports import Reader
from holdfast.features.sessions.events import session_event
from holdfast.features.sessions.jobs import transcript
from holdfast.features.sessions.jobs.read_usage import usage_events
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.activity import TOKEN_SUMS, growth_of, local_day
from holdfast.features.sessions.state.documents import COMPLETED, SESSION, TURN, Session, Turn, turn_key
from holdfast.features.sessions.state.queries import turns_from_log

SETTLED_MS = 1000
"""A transcript is written a little later than the hook that tells of its end."""


def process_turns(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    if not session:
        return []
    settings = call.settings(session.project) or DEFAULTS
    return list(turn_events(session, call.reader, call.now, transcripts=settings.transcripts))


def turn_events(session: Session, reader: Reader, now: int, *, transcripts: bool = True) -> Iterator[Event]:
    for turn in _unprocessed(session, reader):
        yield session_event(session, _processed(session, turn, reader), now, f"{turn.n}.{turn.seq}")
    if transcripts:
        yield from _token_use(session, now)
        yield from usage_events(session, reader)


def _processed(session: Session, turn: Turn, reader: Reader) -> TurnProcessed:
    stored = TURN.load(reader, turn_key(session.id, turn.n))
    facts = TurnFacts(
        id=turn.id, origin=turn.origin, prompt=turn.prompt, answer=turn.answer, at=turn.at, end=turn.end, how=turn.how,
        tools=turn.tools, failed=turn.failed, first=turn.first, seq=turn.seq,
        tokens=turn.tokens.counts() if turn.tokens else {},
    )  # fmt: skip
    return TurnProcessed(
        n=turn.n, upto=turn.seq, facts=facts, more=growth_of(turn, stored.as_turn() if stored else None),
        day=local_day(turn.at), agent=session.agent,
    )  # fmt: skip


def _unprocessed(session: Session, reader: Reader) -> list[Turn]:
    """After a day in the spool there may be more of them than a document holds: the log knows them all."""
    held = session.unprocessed_turns()
    if not session.missed:
        return held
    until = held[0].n if held else session.turn.n if session.turn else 0
    in_log = turns_from_log(session, reader)
    return [*(in_log[n] for n in range(session.missed, until) if n in in_log), *held]


def _token_use(session: Session, now: int) -> Iterator[Event]:
    """The session's own transcript as far as it has grown, and those of its subagents once they are through.

    Where events have told the tokens already, the transcript is not counted again.
    """
    told_by_events = session.tokens is not None and session.read is None and not _any_lane_read(session)
    if told_by_events:
        return
    if session.transcript:
        not_before = session.started_at if session.origin == "fork" else 0
        reading = transcript.read(session.transcript, session.read, not_before)
        if reading:
            yield session_event(session, _tokens_read(session, reading), now, f"{reading.offset}.{session.seq}")
    for lane, entry in session.lanes.items():
        settled = session.status == COMPLETED or now - entry.end > SETTLED_MS
        if entry.transcript and settled and (reading := transcript.read(entry.transcript, None)):
            yield session_event(session, _tokens_read(session, reading, lane), now, f"{lane}.{session.seq}")


def _any_lane_read(session: Session) -> bool:
    return any(lane.tokens_read for lane in session.lanes.values())


def _tokens_read(session: Session, reading: transcript.Reading, lane: str = "") -> TokensRead:
    by_turn: dict[str, dict[str, int]] = {}
    for at, tokens in reading.found:
        _add(by_turn.setdefault(str(_turn_at(session, at)), {}), tokens)
    total: dict[str, int] = {}
    for tokens in by_turn.values():
        _add(total, tokens)
    by_turn.pop("0", None)  # Before the first turn we know of: of the session, of no turn.
    return TokensRead(
        path=reading.path, offset=reading.offset, last=reading.last, ids=reading.ids, total=total, by_turn=by_turn,
        lane=lane, day=local_day(reading.last or session.at), agent=session.agent,
    )  # fmt: skip


def _turn_at(session: Session, at: int) -> int:
    """Lines are written late, so their time decides which turn they belong to, not when they were read."""
    began = [n for n, start in session.recent if start <= at]
    return began[-1] if began else 0


def _add(into: dict[str, int], tokens: dict[str, int]) -> None:
    for name in TOKEN_SUMS:
        into[name] = into.get(name, 0) + tokens.get(name, 0)
