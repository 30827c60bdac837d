"""What Copilot answered. Its hook at the end of a turn does not say it; the file of events that the hook names does."""

from typing import Any

import msgspec

from holdfast.agents import normal

MARK = b'"assistant.message"'


class _Line(msgspec.Struct, rename={"agent": "agentId"}):
    type: str = ""
    agent: str | None = None
    data: Any = None


_decode = msgspec.json.Decoder(_Line).decode


def answer_in(tail: bytes, lane: str = "") -> str:
    """The last words of the model in the end of an events file, of the session or of one subagent; empty when there
    are none."""
    for line in reversed(tail.split(b"\n")):
        if MARK not in line:
            continue
        try:
            told = _decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, ValueError):
            continue  # The first line may be cut.
        content = normal.mapping(told.data).get("content")
        if told.type == "assistant.message" and (told.agent or "") == lane and isinstance(content, str) and content:
            return normal.capped(content, normal.MESSAGE)
    return ""
