"""The shape of an importer: where its files are, and what happened according to one of them. Files are only read."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.core.event import Event
from holdfast.core.ids import bounded


class Skipped(NamedTuple):
    """A record that did not become an event. `expected`: of a kind that tells nothing of its own."""

    where: str
    why: str
    expected: bool = False


Found = Event | Skipped


@dataclass(frozen=True)
class Place:
    """Where to look: the home folder for what agents keep, the project for what the five systems kept."""

    home: Path
    project: Path


@dataclass(frozen=True)
class Importer:
    name: str
    title: str
    find: Callable[[Place], Iterable[Path]]
    read: Callable[[Path, Place], Iterator[Found]]
    whole_sessions: bool = False
    """Its events are sessions as hooks would have told them: none is imported for a session that hooks did tell."""


def key_of(importer: str, *parts: object) -> str:
    """The same record has the same key in every run, so that it happens once."""
    return hashlib.sha256("\n".join((importer, *map(str, parts))).encode("utf-8", "replace")).hexdigest()


def milliseconds(value: Any) -> int:
    """Of an ISO time, of seconds or of milliseconds; 0 for anything else."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return int(value if value > 1e11 else value * 1000) if 0 <= value < 1e15 else 0
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
        except ValueError:
            return 0
        return max(0, round((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * 1000))
    return 0


def session_name(value: Any) -> str:
    return bounded(value) if isinstance(value, str) and value else ""


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield number, line
