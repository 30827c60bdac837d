"""Reads exit codes and answers that only a transcript has."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.analysis.transcripts import PARSE_ERRORS, Spoken
from holdfast.analysis.usage.reader import LiveSession
from holdfast.core.agent import leaves_out
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall
from holdfast.core.ids import native_session_id
from holdfast.core.job import Job
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.agent_events import TurnEnded
from holdfast.core.kinds.session_events import ToolExitRead, TurnAnswerRead
from holdfast.core.ports import Reader
from holdfast.core.text import shorten
from holdfast.features.sessions.jobs.agent_files import transcripts_of
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.documents import SESSION
from holdfast.features.sessions.state.reducer import Turns
from holdfast.paths import open_regular

READ_EXIT = "sessions.read_exit"

EXIT_WAITS_S = (0.0, 0.05, 0.15, 0.3)
"""Before each look. Without the line after the last one, the command stays no proof."""
LOOKS = (256 << 10, 8 << 20)
"""Bytes from the end: a transcript may have hundreds of megabytes, and the line is one of the last."""


def exit_jobs(event: Event) -> Iterator[Job]:
    data = event.data
    if event.kind != "tool.finished" or data.action != "shell" or not leaves_out(event.agent, "exit_code"):
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
            code = transcripts_of(ended.agent).exit_code(tail.split(b"\n"), ended.data.call, ended.at)
            if code is not None or size <= most:
                return code
    return None


READ_ANSWER = "sessions.read_answer"
ANSWER_WAITS_S = (0.0, 0.05, 0.15, 0.3, 0.5, 1.0)
"""Before each look: an agent writes its answer at about the time when it calls the hook."""
LONGEST_ANSWER = 5_000


def answer_jobs(event: Event) -> Iterator[Job]:
    data = event.data
    if not isinstance(data, TurnEnded) or data.message or data.imported or not leaves_out(event.agent, "answer"):
        return
    if data.transcript or leaves_out(event.agent, "transcript"):
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
    transcripts = transcripts_of(ended.agent)
    # Subagents have folders of their own next to it.
    return str(next((path for _, path in transcripts.files_of(live) if path.parent.name == transcripts.answers_in), ""))


def _read_answer_file(path: str, ended: Event) -> str:
    with open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        for most in LOOKS:
            tail = os.pread(file.fileno(), most, max(0, size - most))
            message = find_answer(ended.agent, tail, ended.at, ended.data.lane)
            if message or size <= most:
                return message
    return ""


def find_answer(agent: str, tail: bytes, ended_at: int, lane: str = "") -> str:
    """The last words of the model in the turn that ended at that time; empty while they are not written. A turn begins
    with words of the user."""
    last: Spoken | None = None
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


def _spoken_backwards(agent: str, tail: bytes, lane: str) -> Iterator[Spoken]:
    transcripts = transcripts_of(agent)
    for line in reversed(tail.split(b"\n")):
        if any(mark in line for mark in transcripts.speech):
            with suppress(*PARSE_ERRORS):  # The first line may be cut.
                spoken = transcripts.spoken(line)
                if spoken and spoken.lane == lane:
                    yield spoken
