"""What a closed turn came to, as the event `turn.processed`."""

from collections.abc import Iterator

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.kinds import HookPayload
from holdfast.core.kinds.session_events import TurnFacts, TurnProcessed
from holdfast.features.sessions.state.documents import (
    CLOSES_TURN,
    SESSION,
    TURN,
    Session,
    Turn,
    TurnDocument,
    session_event,
    turn_key,
)
from holdfast.features.sessions.state.reducer import growth_of, local_day


def turn_processed(session: Session, turn: Turn, stored: TurnDocument | None) -> TurnProcessed:
    more = growth_of(turn, stored.as_turn() if stored else None)
    facts = msgspec.convert(turn, TurnFacts, from_attributes=True)
    return TurnProcessed(n=turn.n, upto=turn.seq, facts=facts, more=more, day=local_day(turn.at), agent=session.agent)


def imported_turns(state: State, event: Event) -> Iterator[Event]:
    """With the event that closes them. Turns of live sessions are gone through by a job, after the answer."""
    data = event.data
    if not isinstance(data, HookPayload) or not data.imported or event.kind not in CLOSES_TURN:
        return
    session = SESSION.get(state, event.session)
    if session is None:
        return
    for turn in session.unprocessed_turns():
        stored = TURN.get(state, turn_key(session.id, turn.n))
        yield session_event(session, turn_processed(session, turn, stored), event.at, f"{turn.n}.{turn.seq}")
