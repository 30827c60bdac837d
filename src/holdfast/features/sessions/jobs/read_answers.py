"""What an agent answered, where the hook at the end of a turn does not say it but the agent's own file does.

Copilot writes its answer into `events.jsonl` at about the time when it calls the hook. A quick job looks for it a few times and
reports it as an event of its own. The path comes from a payload and is opened as every transcript is.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall
from holdfast.core.job import Job
from holdfast.core.kinds.agent_events import TurnEnded
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.ports import Reader
from holdfast.core.text import shorten
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.documents import SESSION
from holdfast.features.sessions.state.queries import Turns
from holdfast.usage.fields import milliseconds
from holdfast.usage.follow import open_regular

READ = "sessions.read_answer"
AGENT = "copilot"
WAITS_S = (0.0, 0.05, 0.15, 0.3, 0.5, 1.0)
"""Before each look. Where the answer is not there after the last one, it stays unknown."""
LOOKS = (256 << 10, 8 << 20)
"""Bytes from the end of the file: it may have hundreds of megabytes, and the answer is one of its last lines."""
LONGEST_ANSWER = 5_000
MARKS = (b'"assistant.message"', b'"user.message"')


def wanted(event: Event) -> Iterator[Job]:
    data = event.data
    if event.agent == AGENT and isinstance(data, TurnEnded) and not (data.message or data.imported) and data.transcript:
        yield Job(kind=READ, dedupe=str(event.seq), run_at=event.at, payload={"of": event.seq})


def read_answer(call: JobCall) -> list[Event]:
    ended = call.reader.event(int(call.job.payload["of"]))
    if ended is None or not (call.settings(ended.project) or DEFAULTS).transcripts:
        return []
    message = _look_repeatedly(ended, call)
    return [_report(ended, message, call.reader)] if message else []


def _report(ended: Event, message: str, reader: Reader) -> Event:
    """Of the time when the turn ended, however late we know it."""
    data: TurnEnded = ended.data
    session = SESSION.load(reader, ended.session)
    n = Turns(session, reader).at_event(ended.seq) if session and not data.lane else 0
    found = TurnAnswerRead(of=ended.seq, n=n, lane=data.lane, turn=data.turn, message=message)
    return msgspec.structs.replace(derived_event(ended, found), key=f"{ended.key}/answer")


def _look_repeatedly(ended: Event, call: JobCall) -> str:
    with suppress(OSError, ValueError):  # A file that cannot be opened is not waited for.
        for wait in WAITS_S:
            time.sleep(wait)
            message = _look(ended)
            if message or call.cancelled():
                return message
    return ""


def _look(ended: Event) -> str:
    with open(ended.data.transcript, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        for most in LOOKS:
            tail = os.pread(file.fileno(), most, max(0, size - most))
            message = find_answer(tail, ended.at, ended.data.lane)
            if message or size <= most:
                return message
    return ""


class _MessageData(msgspec.Struct):
    content: str = ""
    toolRequests: list[msgspec.Raw] | None = None


class _Message(msgspec.Struct, rename={"lane": "agentId"}):
    type: str = ""
    lane: str | None = None
    timestamp: str | int = ""
    data: _MessageData = msgspec.field(default_factory=_MessageData)


_decode = msgspec.json.Decoder(_Message).decode


def find_answer(tail: bytes, ended_at: int, lane: str = "") -> str:
    """The last words of the model in the turn that ended at that time; empty while they are not written.

    A turn begins with a message of the user. Words with which the model calls tools are no answer yet.
    """
    last: _Message | None = None
    for message in _messages_backwards(tail, lane):
        if message.type == "assistant.message":
            last = last or message
        elif message.type == "user.message":
            if milliseconds(message.timestamp) <= ended_at:
                break
            last = None  # What was said after this belongs to a later turn.
    return "" if last is None or last.data.toolRequests else shorten(last.data.content, LONGEST_ANSWER)


def _messages_backwards(tail: bytes, lane: str) -> Iterator[_Message]:
    for line in reversed(tail.split(b"\n")):
        if any(mark in line for mark in MARKS):
            with suppress(msgspec.DecodeError, RecursionError, ValueError):  # The first line may be cut.
                message = _decode(line)
                if (message.lane or "") == lane:
                    yield message
