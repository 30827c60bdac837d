"""Files of agents and older tools: found, read in lines, merged by time."""

# They are only read.

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.analysis.transcripts import Found
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.paths import open_regular


def key_of(importer: str, *parts: object) -> str:
    """The same record has the same key in every run, so that it is imported once."""
    return hashlib.sha256("\n".join((importer, *map(str, parts))).encode("utf-8", "replace")).hexdigest()


def merge_by_time(sources: Iterable[Iterator[Found]]) -> Iterator[Found]:
    """A session and its subagents in the order of their times, as hooks would have reported them."""
    timed = heapq.merge(*map(_with_times, sources), key=lambda pair: pair[0])
    return (record for _, record in timed)


IdsOf = Callable[[Path], tuple[str, str]]
"""The session that a file belongs to, and its own id: another one where it is a subagent's."""


@lru_cache(16)
def group_by_session(folder: Path, _mtime_ns: int, pattern: str, ids_of: IdsOf) -> Mapping[Path, list[Path]]:
    """The sessions of a folder, each with the files of its subagents. A subagent whose session is elsewhere comes
    alone. Cached until the folder changes: every file of the folder asks."""
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
    """A record without a time, or with an earlier one than the record before it, keeps its place."""
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
    """A line that is too long is replaced by a text that is no record, so that it is reported."""
    with open(path, "rb", opener=open_regular) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(SKIPPED_AT_ONCE)) and not rest.endswith(b"\n"):
                    pass
                line = TOO_LONG
            if not line.isspace():
                yield number, line


def is_document(path: Path) -> bool:
    """Whether a file is one JSON object over several lines, whatever its name ends in."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.readline(SKIPPED_AT_ONCE).strip() == b"{"
    except OSError:
        return False


def read_document(path: Path) -> bytes:
    """A file that is one JSON document, whole."""
    size = path.stat().st_size
    if size > LONGEST_DOCUMENT:
        raise ValueError(f"{size >> 20} MB are more than the {LONGEST_DOCUMENT >> 20} MB that are read at once")
    with open(path, "rb", opener=open_regular) as file:
        return file.read()
