"""One event a line, as it is in the log; the first line is the session itself."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core.event import Event

FIELDS = ("seq", "at", "kind", "session", "project", "agent", "tool", "data", "key")
encode = msgspec.json.Encoder(enc_hook=str).encode


def begin(facts: dict[str, Any]) -> str:
    return _encode_line({"type": "session", **facts})


def body(events: Iterable[Event]) -> str:
    return "".join(
        _encode_line({"type": "event", **{name: getattr(event, name) for name in FIELDS}}) for event in events
    )


def _encode_line(value: dict[str, Any]) -> str:
    return encode(value).decode() + "\n"
