"""What tells one happening from another, so that two registrations of ours do not make two events of it."""

from typing import Any
from zlib import crc32

from holdfast.core.agent import Payload
from holdfast.core.event import AT_ONCE, Event

WHOLE_SESSION = frozenset({"session.started", "session.ended"})


def by_ids(event: Event, _payload: Payload) -> str:
    """For agents that number their tool calls and turns.

    A turn may end several times (a refused end is followed by another) and ask for the same permission again: with no
    number of its own such a happening is only the same when it comes at once.
    """
    data = event.data
    if call := data.get("call"):
        return f"c{call}"
    turn = data.get("turn", "")
    if turn and event.kind == "prompt.submitted":
        return f"t{turn}{about(data)}"
    if event.kind in WHOLE_SESSION and data.get("pid_start"):
        return f"p{data['pid']}.{data['pid_start']}{data.get('source', '')}"
    return "" if not turn or event.kind == "permission.requested" else f"{AT_ONCE}{turn}{about(data)}"


def by_numbered_ids(event: Event, payload: Payload) -> str:
    """The same where the model makes up the numbers of its calls, and may count from 0 again."""
    mark = by_ids(event, payload)
    return mark + about(event.data) if mark.startswith("c") else mark


def by_time(event: Event, payload: Payload) -> str:
    """For agents that put a time into every payload: it is made once, however many hooks then get it."""
    stamp = payload.get("timestamp")
    data = event.data
    return f"@{stamp}{data.get('call', '')}{about(data)}" if isinstance(stamp, str | int) and stamp else ""


SHORT = ("source", "reason", "topic", "task", "trigger", "status", "calls", "again")
LONG = ("prompt", "message", "error", "output")


def about(data: Any) -> str:
    """The facts that vary, as a number; one turn has many events."""
    told: list[Any] = [data[name] for name in SHORT if name in data]
    told += [data[name] for name in LONG if name in data]
    told.append(data.get("command") or data.get("input"))
    return f"#{crc32(repr(told).encode('utf-8', 'replace')):x}"
