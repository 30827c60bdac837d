"""What Copilot answered. Its hook at the end of a turn does not say it; the file of events that the hook names does.

Only the end of the file is read, while the hook waits. The program writes the answer at about the same time: where it is
not there yet the answer stays unknown.
"""

import os
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import TurnEnded
from holdfast.core.text import shorten
from holdfast.usage.reader import open_regular

AGENT = "copilot"
MARK = b'"assistant.message"'
TAIL = 256 << 10
LONGEST_ANSWER = 5_000


class _Line(msgspec.Struct, rename={"agent": "agentId"}):
    type: str = ""
    agent: str | None = None
    data: Any = None


_decode = msgspec.json.Decoder(_Line).decode


def add_answer(event: Event) -> bool:
    """Whether an answer was found and written into the payload."""
    data = event.data
    if event.agent != AGENT or not isinstance(data, TurnEnded) or data.message or not data.transcript:
        return False
    data.message = answer_in(_tail_of(data.transcript), data.lane)
    return bool(data.message)


def _tail_of(path: str) -> bytes:
    with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), TAIL, max(0, size - TAIL))
    return b""


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
        content = told.data.get("content") if isinstance(told.data, dict) else None
        if told.type == "assistant.message" and (told.agent or "") == lane and isinstance(content, str) and content:
            return shorten(content, LONGEST_ANSWER)
    return ""
