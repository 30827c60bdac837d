"""Which turn each call of a model belongs to, found as a live session would have numbered its turns."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import ModelAnswered
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.state.reducer import reduce_session

MAX_SESSIONS = 100
"""Sessions of one file that are followed at a time; a database holds many."""


def number_turns(events: Iterable[Event]) -> Iterator[Event]:
    """Events of one file, in order. The rules are those of the feature `sessions`, so that both count alike."""
    sessions: OrderedDict[str, Session] = OrderedDict()
    for event in events:
        known = sessions.pop(event.session, None)
        session = reduce_session(known, event)
        if session is not None:
            sessions[event.session] = session
            if len(sessions) > MAX_SESSIONS:
                sessions.popitem(last=False)
        yield _numbered(event, session)


def _numbered(event: Event, session: Session | None) -> Event:
    data = event.data
    if not isinstance(data, ModelAnswered) or session is None or session.turn is None:
        return event
    return msgspec.structs.replace(event, data=msgspec.structs.replace(data, turn_n=session.turn.n))
