"""Calls that failed, where the agent runs no hook then but its own file says it."""

# Looked for when its next hook comes while a call has no end. The path comes from a payload and is opened as every
# transcript is.

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from holdfast.analysis.transcripts import Failure
from holdfast.core.agent import leaves_out
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall
from holdfast.core.job import Job
from holdfast.core.kinds.agent_events import ToolFailed, ToolPayload
from holdfast.core.ports import EventQuery
from holdfast.core.text import shorten
from holdfast.features.sessions.jobs.agent_files import transcripts_of
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.views.timeline import pair_calls
from holdfast.paths import open_regular

READ = "sessions.read_failures"
WAITS_S = (0.0, 0.1, 0.3)
"""Before each look. A call that has no result after the last one is looked for again when the next hook comes."""
TAIL = 1 << 20
"""Bytes from the end of the file: results are near the hook that follows them."""
RECENT = 200
"""Events of the session in which a call without an end is looked for."""
LONGEST_ERROR = 2_000
NEXT_HOOKS = frozenset(("tool.started", "turn.ended"))
# The line after the output of a command that ran to its end.
_EXITED = re.compile(r"\[Process exited with code (\d{1,3})\]\s*$")


def failure_jobs(event: Event) -> Iterator[Job]:
    if event.kind not in NEXT_HOOKS or not leaves_out(event.agent, "failure"):
        return
    if event.data.transcript and not event.data.imported:
        yield Job(kind=READ, dedupe=event.session, run_at=event.at, payload={"of": event.seq})


def read_failures(call: JobCall) -> list[Event]:
    following = call.reader.event(int(call.job.payload["of"]))
    if following is None or not (call.settings(following.project) or DEFAULTS).transcripts:
        return []
    starts = _starts_without_end(call, following)
    with suppress(OSError, ValueError):  # A file that cannot be opened is not waited for.
        for wait in WAITS_S if starts else ():
            time.sleep(wait)
            found = match_failures(starts, _failures_in(following))
            if found or call.cancelled():
                return [_failed_event(start, failure) for start, failure in found]
    return []


def _starts_without_end(call: JobCall, following: Event) -> list[Event]:
    query = EventQuery(session=following.session, before=following.seq, limit=RECENT, newest=True)
    pairing = pair_calls(sorted(call.reader.events(query), key=lambda event: event.seq))
    return list(pairing.open.values())


def match_failures(starts: Sequence[Event], failures: Sequence[Failure]) -> list[tuple[Event, Failure]]:
    """Each call with its result: of the same tool and input, and not older than the call."""
    left, matched = list(failures), []
    for start in starts:
        failure = next((one for one in left if _is_result_of(start, one)), None)
        if failure:
            left.remove(failure)
            matched.append((start, failure))
    return matched


def _is_result_of(start: Event, failure: Failure) -> bool:
    data: ToolPayload = start.data
    if start.tool != failure.tool or failure.at < start.at:
        return False
    # A long input is kept in part; a command is kept as it is.
    return data.input == failure.input or (data.command != "" and data.command == failure.input.get("command"))


def _failed_event(start: Event, failure: Failure) -> Event:
    """As the hook would have reported it, at the time when it failed."""
    exited = _EXITED.search(failure.text)
    data: ToolPayload = start.data
    payload = ToolFailed(
        lane=data.lane, turn=data.turn, branch=data.branch, repo=data.repo, cwd=data.cwd, worktree=data.worktree,
        call=data.call, action=data.action, input=data.input, command=data.command, paths=data.paths, ok=False,
        exit_code=int(exited[1]) if exited and data.action == "shell" else None,
        error=shorten(failure.text, LONGEST_ERROR), ms=failure.at - start.at,
    )  # fmt: skip
    return msgspec.structs.replace(derived_event(start, payload), key=f"{start.key}/failed", at=failure.at)


def _failures_in(following: Event) -> Sequence[Failure]:
    return transcripts_of(following.agent).failures(_read_tail(following.data.transcript).split(b"\n"))


def _read_tail(path: str) -> bytes:
    with open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), TAIL, max(0, size - TAIL))
