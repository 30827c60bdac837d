"""The shape of an importer: where its files are, and what happened according to one of them. Files are only read."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.usage.model import parse_milliseconds
from holdfast.usage.reader import PARSE_ERRORS

__all__ = [
    "LONGEST_LINE",
    "PARSE_ERRORS",
    "Found",
    "ImportLocation",
    "Importer",
    "Skipped",
    "group_by_session",
    "key_of",
    "load_session",
    "merge_by_time",
    "numbered_lines",
    "parse_milliseconds",
    "read_document",
    "session_name",
]  # fmt: skip

T = TypeVar("T")


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


def key_of(importer: str, *parts: object) -> str:
    """The same record has the same key in every run, so that it happens once."""
    return hashlib.sha256("\n".join((importer, *map(str, parts))).encode("utf-8", "replace")).hexdigest()


def merge_by_time(sources: Iterable[Iterator[Found]]) -> Iterator[Found]:
    """A session and its subagents in the order of their times, as hooks would have told them."""
    timed = heapq.merge(*map(_with_times, sources), key=lambda pair: pair[0])
    return (record for _, record in timed)


IdsOf = Callable[[Path], tuple[str, str]]
"""The session that a file belongs to, and its own id: another one where it is a subagent's."""


@lru_cache(16)
def group_by_session(folder: Path, _mtime_ns: int, pattern: str, ids_of: IdsOf) -> Mapping[Path, list[Path]]:
    """The sessions of a folder, each with the files of its subagents. A subagent whose session lies elsewhere stands
    alone. Remembered while no file comes or goes: every file of the folder asks."""
    ids = {path: ids_of(path) for path in sorted(folder.glob(pattern))}
    sessions = {own: path for path, (session, own) in ids.items() if session == own}
    groups: dict[Path, list[Path]] = {}
    for path, (session, own) in ids.items():
        if session != own and session in sessions:
            groups.setdefault(sessions[session], []).append(path)
        else:
            groups.setdefault(path, [])
    return groups


def _with_times(source: Iterator[Found]) -> Iterator[tuple[int, Found]]:
    """What has no time, or an earlier one than what stands before it, keeps its place."""
    last = 0
    for record in source:
        last = max(last, record.at) if isinstance(record, Event) else last
        yield last, record


def session_name(value: Any) -> str:
    return bounded_name(value) if isinstance(value, str) and value else ""


# Bytes of a line, of a document, and of what is skipped in one read.
LONGEST_LINE, LONGEST_DOCUMENT, SKIPPED_AT_ONCE = 64 << 20, 256 << 20, 1 << 20
"""Memory stays bounded whatever a file holds."""
TOO_LONG = b"a line that is too long"


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """A line that is too long is given as one that is no record, so that it is named."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(SKIPPED_AT_ONCE)) and not rest.endswith(b"\n"):
                    pass
                line = TOO_LONG
            if not line.isspace():
                yield number, line


def read_document(path: Path) -> bytes:
    """A file that is one JSON document, whole."""
    size = path.stat().st_size
    if size > LONGEST_DOCUMENT:
        raise ValueError(f"it has {size >> 20} MB, more than the {LONGEST_DOCUMENT >> 20} MB that are read at once")
    return path.read_bytes()


def load_session(path: Path, decode: Callable[[bytes], T]) -> T | Skipped:
    """A session that is one document; what cannot be read is named."""
    try:
        return decode(read_document(path))
    except PARSE_ERRORS as error:
        return Skipped(str(path), f"not a session: {str(error)[:120]}")
