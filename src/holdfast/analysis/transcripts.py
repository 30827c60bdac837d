"""What an agent's own files tell: the shape of it, for the features and importers that may not import the agents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.analysis.usage.reader import PARSE_ERRORS, LiveSession, UsageReader
from holdfast.core.event import Event

__all__ = ["PARSE_ERRORS", "Failure", "Found", "ImportLocation", "Importer", "Skipped", "Spoken", "Transcripts"]


class Skipped(NamedTuple):
    """A record that did not become an event. `expected`: of a kind that tells nothing of its own."""

    where: str
    why: str
    expected: bool = False


Found = Event | Skipped


@dataclass(frozen=True)
class ImportLocation:
    """Where to look: the home folder for what agents keep, the project for what the five systems kept."""

    home: Path
    project: Path


@dataclass(frozen=True)
class Importer:
    name: str
    title: str
    find_files: Callable[[ImportLocation], Iterable[Path]]
    read: Callable[[Path, ImportLocation], Iterator[Found]]
    whole_sessions: bool = False
    """Its events are sessions as hooks would have told them: none is imported for a session that hooks did tell."""


class Spoken(msgspec.Struct):
    """Words of one record. Words with which the model calls tools are no answer yet."""

    at: int
    by_user: bool = False
    text: str = ""
    calls_tools: bool = False
    lane: str = ""


class Failure(msgspec.Struct):
    """A call that failed."""

    tool: str
    input: Mapping[str, Any]
    text: str
    at: int


def _no_failures(_lines: Iterable[bytes]) -> Sequence[Failure]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Transcripts:
    importer: Importer
    usage: tuple[UsageReader, ...] = ()
    exit_code: Callable[[bytes, str, int], int | None] = lambda _line, _call, _ended_at: None
    """Of one line: how the command of this call ended, if it is the line that records it."""
    speech: tuple[bytes, ...] = ()
    """Bytes that every line with words of somebody has one of."""
    spoken: Callable[[bytes], Spoken | None] = lambda _line: None
    failures: Callable[[Iterable[bytes]], Sequence[Failure]] = _no_failures
    answers_in: str = ""
    """The folder of the session's own file, where the hooks name no file."""

    def files_of(self, session: LiveSession) -> Iterator[tuple[UsageReader, Path]]:
        """Where the agent records what one session spends, each file once with its reader."""
        seen: set[Path] = set()
        for reader in self.usage:
            for path in _session_files(reader, session):
                if path not in seen and reader.accepts(str(path)):
                    seen.add(path)
                    yield reader, path


def _session_files(reader: UsageReader, session: LiveSession) -> list[Path]:
    """A path comes from a hook's payload: it may be anything."""
    try:
        return list(reader.session_files(session))
    except (OSError, ValueError):
        return []
