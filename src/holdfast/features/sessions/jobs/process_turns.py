"""Going through closed turns (S4-14): their facts become documents, their token use is read. Costs no model."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.session_events import TurnFacts, TurnProcessed
from holdfast.core.ports import Reader
from holdfast.features.sessions.events import session_event
from holdfast.features.sessions.jobs.read_usage import usage_events
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.activity import growth_of, local_day
from holdfast.features.sessions.state.documents import SESSION, TURN, Session, Turn, turn_key
from holdfast.features.sessions.state.queries import turns_from_log


def process_turns(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    if not session:
        return []
    settings = call.settings(session.project) or DEFAULTS
    return list(turn_events(session, call.reader, call.now, transcripts=settings.transcripts))


def read_usage(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    settings = (call.settings(session.project) or DEFAULTS) if session else DEFAULTS
    return list(usage_events(session, call.reader)) if session and settings.transcripts else []


def turn_events(session: Session, reader: Reader, now: int, *, transcripts: bool = True) -> Iterator[Event]:
    for turn in _unprocessed(session, reader):
        yield session_event(session, _processed(session, turn, reader), now, f"{turn.n}.{turn.seq}")
    if transcripts:
        yield from usage_events(session, reader)


def _processed(session: Session, turn: Turn, reader: Reader) -> TurnProcessed:
    stored = TURN.load(reader, turn_key(session.id, turn.n))
    facts = TurnFacts(
        id=turn.id, origin=turn.origin, prompt=turn.prompt, answer=turn.answer, at=turn.at, end=turn.end, how=turn.how,
        tools=turn.tools, failed=turn.failed, first=turn.first, seq=turn.seq,
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
