"""What tells one happening from another, so that two registrations of ours do not make two events of it."""

from typing import Any
from zlib import crc32

from holdfast.core.agent import Payload
from holdfast.core.event import Event

WHOLE_SESSION = frozenset({"session.started", "session.ended"})


def by_ids(event: Event, _payload: Payload) -> str:
    """For agents that number their tool calls and turns.

    A request for a permission has neither call nor time: two of the same kind at once may well be two.
    """
    data = event.data
    if call := data.get("call"):
        return f"c{call}"
    if event.kind == "permission.requested":
        return ""
    if turn := data.get("turn"):
        return f"t{turn}{rest(data)}"
    if event.kind in WHOLE_SESSION and data.get("pid_start"):
        return f"p{data['pid']}.{data['pid_start']}{data.get('source', '')}"
    return ""


def by_time(event: Event, payload: Payload) -> str:
    """For agents that put a time into every payload: it is made once, however many hooks then get it."""
    stamp = payload.get("timestamp")
    data = event.data
    return f"@{stamp}{data.get('call', '')}{rest(data)}" if isinstance(stamp, str | int) and stamp else ""


VARIES = ("pid", "pid_start", "native")


def rest(data: Any) -> str:
    """The other facts, as a number: ids repeat where a model makes them up, and one turn has many events."""
    return f"#{crc32(repr([v for k, v in data.items() if k not in VARIES]).encode('utf-8', 'replace')):x}"
