"""Completes imported sessions: turn and day of each model call, as live, and an end."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.agents.source import key_of
from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import ModelAnswered, SessionEnded

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


def number_turns(events: Iterable[Event], *, whole_sessions: bool = False) -> Iterator[Event]:
    """Events of one file, in order. The rules are those of the feature `sessions`, so that both count alike.

    `whole_sessions`: nobody is at work in a file that was imported, so every session in it ends.
    """
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
                yield from _ends((sessions.popitem(last=False)[1],) if whole_sessions else ())
        data = event.data
        if isinstance(data, ModelAnswered):
            n = session.turn.n if session and session.turn else 0
            data = msgspec.structs.replace(data, turn_n=n or data.turn_n, day=local_day(event.at))
            event = msgspec.structs.replace(event, data=data)
        yield event
    yield from _ends(sessions.values() if whole_sessions else ())


def _ends(sessions: Iterable["Session"]) -> Iterator[Event]:
    for session in sessions:
        if session.is_active:
            yield Event(
                # The time is part of the key: a file that has grown gets another end.
                key=key_of(session.agent, session.id, "end", session.at), kind="session.ended", at=session.at, session=session.id,
                project=session.project, agent=session.agent, data=SessionEnded(reason="import", imported=session.agent),
            )  # fmt: skip
