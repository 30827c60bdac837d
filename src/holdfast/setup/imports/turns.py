"""The turn and the day of each imported call of a model, as a live session would have counted them."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import ModelAnswered

if TYPE_CHECKING:
    from holdfast.features.sessions.state.documents import Session

MAX_SESSIONS = 100
"""Sessions of one file that are followed at a time; a database holds many."""


def believable_times(events: Iterable[Event], latest: int) -> Iterator[Event]:
    """Events of one file, in order. One of the future happened with the one before it."""
    last = 0
    for event in events:
        last = event.at if event.at <= latest else last
        yield event if event.at <= latest else msgspec.structs.replace(event, at=last)


def number_turns(events: Iterable[Event]) -> Iterator[Event]:
    """Events of one file, in order. The rules are those of the feature `sessions`, so that both count alike."""
    # Who only looks which files there are, as `holdfast up` does, loads no feature.
    from holdfast.features.sessions.state.reducer import local_day, reduce_session

    sessions: OrderedDict[str, Session] = OrderedDict()
    for event in events:
        # Taken out and put in again: the session that was touched last stands at the end.
        previous = sessions.pop(event.session, None)
        session = reduce_session(previous, event)
        if session is not None:
            sessions[event.session] = session
            if len(sessions) > MAX_SESSIONS:
                sessions.popitem(last=False)
        data = event.data
        if isinstance(data, ModelAnswered):
            n = session.turn.n if session and session.turn else 0
            data = msgspec.structs.replace(data, turn_n=n or data.turn_n, day=local_day(event.at))
            event = msgspec.structs.replace(event, data=data)
        yield event
