"""Exit codes and answers that only a transcript tells."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall
from holdfast.core.ids import native_session_id
from holdfast.core.job import Job
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.agent_events import TurnEnded
from holdfast.core.kinds.session_events import ToolExitRead, TurnAnswerRead
from holdfast.core.ports import Reader
from holdfast.core.text import shorten
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.documents import SESSION
from holdfast.features.sessions.state.reducer import Turns
from holdfast.paths import open_regular
from holdfast.usage.model import parse_milliseconds
from holdfast.usage.reader import LiveSession
from holdfast.usage.readers import files_of, kimi

# How a shell command ended, where the agent's hook does not say it but its transcript does.
#
# Codex writes it into its rollout before it calls the hook, so the first look finds it, nearly always. The path comes
# from
# a payload and is opened as `transcript` does it; nothing of the file is kept but one number.

READ_EXIT = "sessions.read_exit"

EXIT_WAITS_S = (0.0, 0.05, 0.15, 0.3)
"""Before each look. A line that is not there after the last is not missed: then the command is no proof, as before."""
LOOKS = (256 << 10, 8 << 20)
"""Bytes from the end: a transcript may have hundreds of megabytes, and the line is one of the last."""


def exit_jobs(event: Event) -> Iterator[Job]:
    data = event.data
    if event.kind != "tool.finished" or event.agent not in EXIT_CODE_IN or data.action != "shell":
        return
    if data.exit_code is None and data.call and data.transcript:
        yield Job(kind=READ_EXIT, dedupe=str(event.seq), run_at=event.at, payload={"of": event.seq})


def read_exit(call: JobCall) -> list[Event]:
    ended = call.reader.event(int(call.job.payload["of"]))
    if ended is None or not (call.settings(ended.project) or DEFAULTS).transcripts:
        return []
    code = _wait_for_exit(ended, call.cancelled)
    return [] if code is None else [_exit_event(ended, code)]


def _exit_event(ended: Event, code: int) -> Event:
    """Of the time when the command ended: what it proves is as old as that, however late we know it."""
    data: ToolEndPayload = ended.data
    exit_read = ToolExitRead(
        of=ended.seq, call=data.call, lane=data.lane, action=data.action, command=data.command, branch=data.branch,
        repo=data.repo, ok=code == 0, exit_code=code,
    )  # fmt: skip
    return msgspec.structs.replace(derived_event(ended, exit_read), key=f"{ended.key}/exit")


def _wait_for_exit(ended: Event, cancelled: Callable[[], bool]) -> int | None:
    with suppress(OSError, ValueError):  # A file that cannot be opened is not waited for.
        for wait in EXIT_WAITS_S:
            time.sleep(wait)
            code = _read_exit_file(ended)
            if code is not None or cancelled():
                return code
    return None


def _read_exit_file(ended: Event) -> int | None:
    with open(ended.data.transcript, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        for most in LOOKS:
            # A cheap look first, a long one only where that found nothing.
            tail = os.pread(file.fileno(), most, max(0, size - most))
            code = _find_latest_exit(tail, ended)
            if code is not None or size <= most:
                return code
    return None


def _find_latest_exit(tail: bytes, ended: Event) -> int | None:
    # The id as JSON has it, quotation marks included.
    mark, exit_code_in = msgspec.json.encode(ended.data.call), EXIT_CODE_IN[ended.agent]
    for line in reversed(tail.split(b"\n")):
        if mark in line:  # Most lines are long, and of other calls.
            with suppress(msgspec.DecodeError, RecursionError):
                if (code := exit_code_in(line, ended)) is not None:
                    return code
    return None


# ── Codex, from 0.153.0 to 0.166.0 ─────────────────────────────────────────────────────────────────────────────────


class _Item(msgspec.Struct):
    type: str
    id: str
    # A 32-bit exit status; anything else is no record of this kind.
    exit_code: Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class _Payload(msgspec.Struct):
    type: str
    item: _Item
    completed_at_ms: int = 0


class _Record(msgspec.Struct):
    type: str
    payload: _Payload


_record = msgspec.json.Decoder(_Record).decode


def _codex_exit_code(line: bytes, ended: Event) -> int | None:
    """Not from the result that the model gets: a long command has its end in the result of another call, and one that a
    script of the model's runs has none. The model may count its calls from 0 again: a later one of that name is not ours.
    """
    record = _record(line)
    payload, item = record.payload, record.payload.item
    identity = (record.type, payload.type, item.type, item.id)
    ours = identity == ("event_msg", "item_completed", "CommandExecution", ended.data.call)
    return item.exit_code if ours and payload.completed_at_ms <= ended.at else None


EXIT_CODE_IN: dict[str, Callable[[bytes, Event], int | None]] = {"codex": _codex_exit_code}
"""Agents that write exit codes into their transcripts, and what a line says about a call."""


# What an agent answered, where the hook at the end of a turn does not say it but the agent's own file does.
#
# Copilot writes its answer into `events.jsonl` at about the time when it calls the hook, droid and Kimi Code into
# their session's
# file. A quick job looks for it a few times and reports it as an event of its own. A path that comes from a payload
# is opened as
# every transcript is.

READ_ANSWER = "sessions.read_answer"
ANSWER_WAITS_S = (0.0, 0.05, 0.15, 0.3, 0.5, 1.0)
"""Before each look. Where the answer is not there after the last one, it stays unknown."""
"""Bytes from the end of the file: it may have hundreds of megabytes, and the answer is one of its last lines."""
LONGEST_ANSWER = 5_000


def answer_jobs(event: Event) -> Iterator[Job]:
    data = event.data
    if event.agent not in SPEAKERS or not isinstance(data, TurnEnded) or data.message or data.imported:
        return
    if data.transcript or event.agent in UNNAMED_FILES:
        yield Job(kind=READ_ANSWER, dedupe=str(event.seq), run_at=event.at, payload={"of": event.seq})


def read_answer(call: JobCall) -> list[Event]:
    ended = call.reader.event(int(call.job.payload["of"]))
    if ended is None or not (call.settings(ended.project) or DEFAULTS).transcripts:
        return []
    message = _wait_for_answer(ended, call)
    return [_answer_event(ended, message, call.reader)] if message else []


def _answer_event(ended: Event, message: str, reader: Reader) -> Event:
    """Of the time when the turn ended, however late we know it."""
    data: TurnEnded = ended.data
    session = SESSION.load(reader, ended.session)
    n = Turns(session, reader).at_event(ended.seq) if session and not data.lane else 0
    answer = TurnAnswerRead(of=ended.seq, n=n, lane=data.lane, turn=data.turn, message=message)
    return msgspec.structs.replace(derived_event(ended, answer), key=f"{ended.key}/answer")


def _wait_for_answer(ended: Event, call: JobCall) -> str:
    with suppress(OSError, ValueError):  # A file that cannot be opened is not waited for.
        path = ended.data.transcript or _file_of(ended)
        for wait in ANSWER_WAITS_S if path else ():
            time.sleep(wait)
            message = _read_answer_file(path, ended)
            if message or call.cancelled():
                return message
    return ""


def _file_of(ended: Event) -> str:
    """Where the hook does not name it: the file that its token use is read from."""
    live = LiveSession(native_session_id(ended.session, ended.agent), Path.home())
    # Subagents have folders of their own beside the main one.
    return str(next((path for _, path in files_of(ended.agent, live) if path.parent.name == kimi.MAIN), ""))


def _read_answer_file(path: str, ended: Event) -> str:
    with open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        for most in LOOKS:
            tail = os.pread(file.fileno(), most, max(0, size - most))
            message = find_answer(ended.agent, tail, ended.at, ended.data.lane)
            if message or size <= most:
                return message
    return ""


class TranscriptMessage(msgspec.Struct):
    """What a line of a transcript says that somebody said. Words with which the model calls tools are no answer yet."""

    at: int
    by_user: bool = False
    text: str = ""
    calls_tools: bool = False
    lane: str = ""


def find_answer(agent: str, tail: bytes, ended_at: int, lane: str = "") -> str:
    """The last words of the model in the turn that ended at that time; empty while they are not written. A turn begins
    with words of the user."""
    last: TranscriptMessage | None = None
    for spoken in _spoken_backwards(agent, tail, lane):
        if not spoken.by_user:
            last = last or spoken
        # Words of the user before the end: the turn began here.
        elif spoken.at <= ended_at:
            break
        else:
            last = None  # What was said after this belongs to a later turn.
    # The agent was not done yet: the answer is still to be written.
    return "" if last is None or last.calls_tools else shorten(last.text, LONGEST_ANSWER)


def _spoken_backwards(agent: str, tail: bytes, lane: str) -> Iterator[TranscriptMessage]:
    marks, parse = SPEAKERS[agent]
    for line in reversed(tail.split(b"\n")):
        if any(mark in line for mark in marks):
            with suppress(*PARSE_ERRORS):  # The first line may be cut.
                spoken = parse(line)
                if spoken and spoken.lane == lane:
                    yield spoken


PARSE_ERRORS = (msgspec.DecodeError, RecursionError, ValueError)


class _CopilotData(msgspec.Struct, rename="camel"):
    content: str = ""
    tool_requests: list[msgspec.Raw] | None = None


class _CopilotLine(msgspec.Struct, rename={"lane": "agentId"}):
    type: str
    timestamp: str | int
    lane: str | None = None
    data: _CopilotData = msgspec.field(default_factory=_CopilotData)


_copilot_line = msgspec.json.Decoder(_CopilotLine).decode


def _parse_copilot_line(line: bytes) -> TranscriptMessage | None:
    """1.0.102."""
    record = _copilot_line(line)
    if record.type not in ("user.message", "assistant.message"):
        return None
    return TranscriptMessage(
        parse_milliseconds(record.timestamp), record.type == "user.message", record.data.content, bool(record.data.tool_requests),
        record.lane or "",
    )  # fmt: skip


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class _DroidMessage(msgspec.Struct):
    role: str
    content: list[_Part] = []
    visibility: str = ""


class _DroidLine(msgspec.Struct):
    type: str
    timestamp: str | int
    message: _DroidMessage


_droid_line = msgspec.json.Decoder(_DroidLine).decode


def _parse_droid_line(line: bytes) -> TranscriptMessage | None:
    """0.225.2. Results of tools and reports of hooks are messages of the user too."""
    record = _droid_line(line)
    message, texts = record.message, [part.text for part in record.message.content if part.type == "text"]
    at, calls = parse_milliseconds(record.timestamp), any(part.type == "tool_use" for part in message.content)
    if message.role == "assistant":
        return TranscriptMessage(at, False, "\n".join(texts), calls)
    # Reports of hooks are shown to the user only, and begin no turn.
    return TranscriptMessage(at, True) if texts and message.visibility != "user_only" else None


class _KimiEvent(msgspec.Struct):
    type: str = ""
    part: _Part = msgspec.field(default_factory=_Part)


class _KimiLine(msgspec.Struct):
    type: str
    time: int
    event: _KimiEvent = msgspec.field(default_factory=_KimiEvent)


_kimi_line = msgspec.json.Decoder(_KimiLine).decode


def _parse_kimi_line(line: bytes) -> TranscriptMessage | None:
    """2.1.0: words and calls of tools are records of their own."""
    record = _kimi_line(line)
    if record.type == "turn.prompt":
        return TranscriptMessage(record.time, True)
    if record.type != "context.append_loop_event" or record.event.type not in ("content.part", "tool.call"):
        return None
    if record.event.type == "content.part" and record.event.part.type != "text":
        return None  # Thinking.
    return TranscriptMessage(record.time, False, record.event.part.text, record.event.type == "tool.call")


SPEAKERS: dict[str, tuple[tuple[bytes, ...], Callable[[bytes], TranscriptMessage | None]]] = {
    "copilot": ((b'"user.message"', b'"assistant.message"'), _parse_copilot_line),
    "droid": ((b'"role"',), _parse_droid_line),
    "kimi": ((b'"turn.prompt"', b'"content.part"', b'"tool.call"'), _parse_kimi_line),
}
"""Agents whose hooks do not say what they answered: what their lines have in them, and how one is read."""
UNNAMED_FILES = frozenset(("kimi",))
"""Their hooks do not name the transcript either."""
