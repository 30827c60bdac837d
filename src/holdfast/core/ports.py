"""The small doors through which the world comes in. Everything behind them can be replaced in a test."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from holdfast.core.event import Event
from holdfast.core.job import ClaimedJob, Job

Clock = Callable[[], int]
"""Milliseconds since 1970."""

Doc = Any
"""One state document: the type that its feature declares (`core.document`), else a dict."""


class Ref(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """The address of one state document, e.g. ("session", "a2ceee39-…")."""

    kind: str
    key: str


class StateRow(msgspec.Struct, frozen=True):
    """A document with the facets that every list is served from."""

    ref: Ref
    feature: str
    version: int
    project: str
    status: str
    at: int
    doc: bytes


class EventQuery(msgspec.Struct, kw_only=True, frozen=True):
    """Keyset paging by seq, never by offset. `newest` asks for the page's end first."""

    session: str = ""
    project: str = ""
    kinds: tuple[str, ...] = ()
    tool: str = ""
    after: int = 0
    before: int = 0
    since: int = 0
    until: int = 0
    limit: int = 100
    newest: bool = False
    bodies: bool = False
    seqs: tuple[int, ...] = ()
    """Only these."""


class HistoryEntry(msgspec.Struct, kw_only=True, frozen=True):
    """One event in the full-text index: its words as `core.history.split_words` makes them."""

    seq: int
    words: str
    paths: str = ""
    failed: bool = False
    session: str = ""
    project: str = ""
    agent: str = ""
    tool: str = ""
    kind: str = ""


class HistoryQuery(msgspec.Struct, kw_only=True, frozen=True):
    """Newest first. Each phrase is words with a space between them; all have to be there, or with `any_phrase` one."""

    phrases: tuple[str, ...] = ()
    any_phrase: bool = False
    prefix: bool = False
    """The last word of the last phrase may be the beginning of one."""
    file: str = ""
    """Words of a path, one after the other."""
    session: str = ""
    project: str = ""
    agent: str = ""
    tool: str = ""
    kinds: tuple[str, ...] = ()
    failed: bool = False
    since: int = 0
    before: int = 0
    limit: int = 20


class StateQuery(msgspec.Struct, kw_only=True, frozen=True):
    """Newest first. `before` is the (at, key) of the last row seen; `prefix` is how the key begins."""

    kind: str
    project: str = ""
    status: str = ""
    prefix: str = ""
    before: tuple[int, str] | None = None
    limit: int = 50


class Reader(Protocol):
    """The read side: one per thread, never in front of a hook."""

    def head(self) -> int: ...
    def events(self, query: EventQuery) -> list[Event]: ...
    def marks(self, query: EventQuery, every: int) -> list[int]:
        """The numbers of the first event that matches and of every so-manieth after it."""
        ...

    def event(self, seq: int) -> Event | None: ...
    def history(self, query: HistoryQuery) -> list[int]:
        """Numbers of the events that match, as far as they are indexed."""
        ...

    def replay(self, after: int = 0, session: str = "", project: str = "") -> Iterator[Event]: ...
    def document(self, ref: Ref) -> bytes | None:
        """Encoded; `DocumentType.load` decodes it."""
        ...

    def documents(self, query: StateQuery) -> list[tuple[str, bytes]]:
        """(key, encoded document)."""
        ...

    def state(self, ref: Ref) -> dict[str, Any] | None: ...
    def states(self, query: StateQuery) -> list[tuple[Ref, dict[str, Any]]]: ...
    def rows(self, feature: str) -> Iterator[StateRow]: ...
    def counts(self) -> dict[str, int]: ...
    def jobs(self, limit: int = 100) -> list[dict[str, Any]]: ...
    def any_due(self, now: int, kinds: Sequence[str]) -> bool: ...
    def seqs_of_keys(self, keys: Iterable[str]) -> dict[str, int]: ...
    def meta(self, name: str) -> str: ...
    def body_keys(self) -> dict[bytes, int]:
        """How many bodies each key has encrypted; under the empty one those that are plain. Reads through all."""
        ...

    def bodies_in_form(self, encrypted: bool, after: int, limit: int) -> list[int]:
        """The numbers of events whose body is encrypted, or is not."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """The write side: one connection, one thread. Writes happen inside `transaction()`."""

    path: Path

    def transaction(self, *, lasting: bool = True) -> AbstractContextManager[int]:
        """Begins, yields the last seq, commits durably; any error rolls back.

        A power cut may undo what is not `lasting`, but never a part of it and never what was lasting before it.
        """
        ...

    def seqs_of_keys(self, keys: Sequence[str], /) -> dict[str, int]: ...
    def session_agents(self, sessions: Sequence[str], /) -> dict[str, str]:
        """Session → the agent of its first event that has one; sessions without any are absent."""
        ...

    def load(self, refs: Sequence[Ref], /) -> dict[Ref, bytes]: ...
    def append(self, events: Sequence[Event]) -> None: ...
    def save(self, rows: Sequence[StateRow]) -> None: ...
    def drop_states(self, feature: str) -> None: ...
    def enqueue(self, jobs: Sequence[Job], now: int) -> None: ...
    def claim(self, owner: str, now: int, lease_ms: int, limit: int, kinds: Sequence[str]) -> list[ClaimedJob]: ...
    def extend(self, job: int, owner: str, until: int) -> bool: ...
    def finish(self, job: int, owner: str) -> bool: ...
    def retry(self, job: int, owner: str, run_at: int, error: str, dead: bool) -> bool: ...
    def release(self, owner: str) -> int: ...
    def set_meta(self, name: str, value: str) -> None: ...
    def expire_bodies(self, older_than: int, limit: int) -> int: ...
    def change_bodies(self, seqs: Sequence[int]) -> int:
        """Bodies of these events, encrypted or plain as the setting wants it; how many were changed."""
        ...

    def index_history(self, entries: Sequence[HistoryEntry], before: str, after: str) -> bool:
        """Adds them and moves the mark from `before` to `after`; False, and nothing, where it stands elsewhere."""
        ...

    def rows_with(self, probes: Iterable[bytes]) -> Iterator[Any]:
        """Every stored row (`table`, `key`, `content`) that has one of these, in any case; `b""` is in every one."""
        ...

    def rewrite(self, probes: Iterable[bytes], change: Callable[[bytes], bytes]) -> int:
        """Every stored row that has one of these, changed: only for what must be forgotten. How many were."""
        ...

    def blank_events(self, sessions: Sequence[str], projects: Sequence[str]) -> int:
        """The events of these sessions, and of these folders and all below them, become mere numbers. How many."""
        ...

    def vacuum_erased(self) -> None:
        """Outside a transaction: what was overwritten is not left lying in free pages."""
        ...

    def truncate_log(self) -> None:
        """Outside a transaction: what was deleted is not left lying in a write-ahead log."""
        ...

    def reader(self) -> Reader: ...
    def close(self) -> None: ...


class GitContext(Protocol):
    """What a directory is, as cheaply as a hook allows: files are looked at, no program is run."""

    def of(self, cwd: str) -> Mapping[str, str]:
        """`root`, `branch` (empty outside git or detached), `repo` (the common git directory)."""
        ...

    def root_of(self, cwd: str) -> str:
        """`root` alone; empty outside git."""
        ...
