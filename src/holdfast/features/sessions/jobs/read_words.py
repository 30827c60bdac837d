"""Reads from a transcript what no hook reports: titles, interruptions, and words said while the agent works."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from holdfast.analysis.transcripts import Follower
from holdfast.analysis.usage.reader import PARSE_ERRORS
from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted, TurnInterrupted
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.sessions.jobs.agent_files import transcripts_of
from holdfast.features.sessions.state.documents import Session
from holdfast.paths import open_regular

WRITTEN_BEFORE_MS = 60_000
"""An agent may write something down a little before its first hook."""
MOST_FILES = 100
READ_AT_ONCE, MOST_READ = 4 << 20, 64 << 20
RECENT_PROMPTS = 50


class _Progress:
    """Where to read on, with what the lines before said."""

    def __init__(self, follower: Follower) -> None:
        self.follower, self.offset = follower, 0


class TranscriptFollowers:
    """Reads each transcript once; only the daemon remembers how far."""

    def __init__(self) -> None:
        self._progress: OrderedDict[tuple[str, str], _Progress] = OrderedDict()

    def read(self, session: Session) -> list[Event]:
        follow = transcripts_of(session.agent).follow
        if follow is None or not session.transcript:
            return []
        name = session.id, session.transcript
        progress = self._progress.pop(name, None) or _Progress(follow(session.transcript))
        self._progress[name] = progress
        if len(self._progress) > MOST_FILES:
            self._progress.popitem(last=False)
        return [event for line in _new_lines(session.transcript, progress) for event in _taken(progress, line)]


def _taken(progress: _Progress, line: bytes) -> Iterable[Event]:
    try:
        return list(progress.follower(line))
    except PARSE_ERRORS:
        return []


def _new_lines(path: str, progress: _Progress) -> Iterator[bytes]:
    with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        if size < progress.offset:
            progress.offset = size  # The file was cut: it is read from its new end.
        file.seek(progress.offset)
        until = progress.offset + MOST_READ
        # A half-written line is read again next time.
        while progress.offset < until and (line := file.readline(READ_AT_ONCE)).endswith(b"\n"):
            progress.offset += len(line)
            yield line


_FOLLOWERS = TranscriptFollowers()


def unreported_events(session: Session, reader: Reader, followers: TranscriptFollowers = _FOLLOWERS) -> list[Event]:
    """What the transcript says and the log does not have. Marked as imported: it proves nothing, and decides nothing."""
    found = [event for event in followers.read(session) if event.at >= session.started_at - WRITTEN_BEFORE_MS]
    if not found:
        return []
    known = reader.seqs_of_keys([event.key for event in found])
    told = _reported_prompts(session, reader)
    return [
        msgspec.structs.replace(event, session=session.id, project=session.project)
        for event in found
        if event.key not in known and not _is_told(event, session, told)
    ]


def _reported_prompts(session: Session, reader: Reader) -> set[str]:
    query = EventQuery(session=session.id, kinds=(PromptSubmitted.KIND,), newest=True, limit=RECENT_PROMPTS)
    return {event.data.prompt for event in reader.events(query)}


def _is_told(event: Event, session: Session, prompts: set[str]) -> bool:
    """Some versions of an agent run a hook for it."""
    data = event.data
    if isinstance(data, PromptSubmitted):
        return data.prompt in prompts
    if isinstance(data, TurnInterrupted):
        return any(
            turn.how == "interrupted" and turn.id == data.turn for turn in (session.turn, session.previous) if turn
        )
    return False
