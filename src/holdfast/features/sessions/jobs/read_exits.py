"""How a shell command ended, where the agent's hook does not say it but its transcript does.

Codex writes it into its rollout before it calls the hook, so the first look finds it, nearly always. The path comes from
a payload and is opened as `transcript` does it; nothing of the file is kept but one number.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Annotated

import msgspec

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall
from holdfast.core.job import Job
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.session_events import ToolExitRead
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.paths import open_regular

READ = "sessions.read_exit"

WAITS_S = (0.0, 0.05, 0.15, 0.3)
"""Before each look. A line that is not there after the last is not missed: then the command is no proof, as before."""
LOOKS = (256 << 10, 8 << 20)
"""Bytes from the end: a transcript may have hundreds of megabytes, and the line is one of the last."""


def exit_jobs(event: Event) -> Iterator[Job]:
    data = event.data
    if event.kind != "tool.finished" or event.agent not in EXIT_CODE_IN or data.action != "shell":
        return
    if data.exit_code is None and data.call and data.transcript:
        yield Job(kind=READ, dedupe=str(event.seq), run_at=event.at, payload={"of": event.seq})


def read_exit(call: JobCall) -> list[Event]:
    ended = call.reader.event(int(call.job.payload["of"]))
    if ended is None or not (call.settings(ended.project) or DEFAULTS).transcripts:
        return []
    code = _look_repeatedly(ended, call.cancelled)
    return [] if code is None else [_exit_event(ended, code)]


def _exit_event(ended: Event, code: int) -> Event:
    """Of the time when the command ended: what it proves is as old as that, however late we know it."""
    data: ToolEndPayload = ended.data
    exit_read = ToolExitRead(
        of=ended.seq, call=data.call, lane=data.lane, action=data.action, command=data.command, branch=data.branch,
        repo=data.repo, ok=code == 0, exit_code=code,
    )  # fmt: skip
    return msgspec.structs.replace(derived_event(ended, exit_read), key=f"{ended.key}/exit")


def _look_repeatedly(ended: Event, cancelled: Callable[[], bool]) -> int | None:
    with suppress(OSError, ValueError):  # A file that cannot be opened is not waited for.
        for wait in WAITS_S:
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
