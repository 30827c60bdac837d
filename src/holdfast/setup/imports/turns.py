"""Assigns turn and day to each imported model call, as a live session would."""

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
    """Events of one file, in order. A time in the future is replaced by the previous one."""
    last = 0
    for event in events:
        last = event.at if event.at <= latest else last
        yield event if event.at <= latest else msgspec.structs.replace(event, at=last)


def number_turns(events: Iterable[Event]) -> Iterator[Event]:
    """Events of one file, in order. The rules are those of the feature `sessions`, so that both count alike."""
    # Callers that only list files, such as `holdfast up`, load no feature.
    from holdfast.features.sessions.state.reducer import local_day, reduce_session

    sessions: OrderedDict[str, Session] = OrderedDict()
    for event in events:
        # Removed and added again: the most recently touched session is last.
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
