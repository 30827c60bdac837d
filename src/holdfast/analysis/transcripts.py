"""The contract of an agent's transcripts, for features and importers that may not import agents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.analysis.usage.reader import PARSE_ERRORS, LiveSession, UsageReader
from holdfast.core.event import Event

__all__ = [
    "PARSE_ERRORS",
    "Failure",
    "Follower",
    "Found",
    "ImportLocation",
    "Importer",
    "Skipped",
    "Spoken",
    "Transcripts",
]


class Skipped(NamedTuple):
    """A record that became no event. `expected`: its kind never does."""

    where: str
    why: str
    expected: bool = False


Found = Event | Skipped


@dataclass(frozen=True)
class ImportLocation:
    """Where to look: the home folder for agents, the project for the five older systems."""

    home: Path
    project: Path


@dataclass(frozen=True)
class Importer:
    name: str
    title: str
    find_files: Callable[[ImportLocation], Iterable[Path]]
    read: Callable[[Path, ImportLocation], Iterator[Found]]
    whole_sessions: bool = False
    """Its events are whole sessions, so none is imported for a session that hooks reported."""


class Spoken(msgspec.Struct):
    """Words of one record. Words next to tool calls are no answer yet."""

    at: int
    by_user: bool = False
    text: str = ""
    calls_tools: bool = False
    lane: str = ""


class Failure(msgspec.Struct):
    """A failed call."""

    tool: str
    input: Mapping[str, Any]
    text: str
    at: int


Follower = Callable[[bytes], Iterable[Event]]
"""Takes the lines of one session's file in order, and gives what they say that no hook reports."""


def _no_failures(_lines: Iterable[bytes]) -> Sequence[Failure]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Transcripts:
    importer: Importer
    usage: tuple[UsageReader, ...] = ()
    exit_code: Callable[[Sequence[bytes], str, int], int | None] = lambda _lines, _call, _ended_at: None
    """How the command of a call ended, if these lines record it."""
    speech: tuple[bytes, ...] = ()
    """Every line with speech contains one of these byte strings."""
    spoken: Callable[[bytes], Spoken | None] = lambda _line: None
    failures: Callable[[Iterable[bytes]], Sequence[Failure]] = _no_failures
    follow: Callable[[str], Follower] | None = None
    """By the path of a session's file."""
    answers_in: str = ""
    """The folder of the session's file, if the hooks name no file."""

    def files_of(self, session: LiveSession) -> Iterator[tuple[UsageReader, Path]]:
        """Where the agent records what one session spends: each file once, with its reader."""
        seen: set[Path] = set()
        for reader in self.usage:
            for path in _session_files(reader, session):
                if path not in seen and reader.accepts(str(path)):
                    seen.add(path)
                    yield reader, path


def _session_files(reader: UsageReader, session: LiveSession) -> list[Path]:
    """The path comes from a hook's payload and may be anything."""
    try:
        return list(reader.session_files(session))
    except (OSError, ValueError):
        return []
