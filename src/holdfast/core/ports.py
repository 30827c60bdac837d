"""Ports to the outside world; tests can replace everything behind them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from holdfast.core.chain import ChainedRow
from holdfast.core.event import Event
from holdfast.core.job import ClaimedJob, Job

Clock = Callable[[], int]
"""In ms since 1970."""

Doc = Any
"""One state document: the type that its feature declares, else a dict."""


class Ref(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """The address of a state document, e.g. ("session", "a2ceee39-…")."""

    kind: str
    key: str


class StateRow(msgspec.Struct, frozen=True):
    """A document with the facets that lists are served from."""

    ref: Ref
    feature: str
    version: int
    project: str
    status: str
    at: int
    doc: bytes


class EventQuery(msgspec.Struct, kw_only=True, frozen=True):
    """Keyset paging by seq, never by offset. `newest` returns the end of the page first."""

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
    """Only these numbers."""


class HistoryEntry(msgspec.Struct, kw_only=True, frozen=True):
    """One event in the full-text index, as words from `core.history.split_words`."""

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
    """Newest first. Phrases are words joined by spaces; all must occur, or one with `any_phrase`."""

    phrases: tuple[str, ...] = ()
    any_phrase: bool = False
    prefix: bool = False
    """The last word of the last phrase is a prefix."""
    file: str = ""
    """Words of a path, in order."""
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
    """Newest first. `before` is the (at, key) of the last row seen; `prefix` is the beginning of the key."""

    kind: str
    project: str = ""
    status: str = ""
    prefix: str = ""
    before: tuple[int, str] | None = None
    limit: int = 50


class Reader(Protocol):
    """The read side: one reader per thread, never in front of a hook."""

    def head(self) -> int: ...
    def events(self, query: EventQuery) -> list[Event]: ...
    def marks(self, query: EventQuery, every: int) -> list[int]:
        """Sequence numbers of every nth matching event."""
        ...

    def event(self, seq: int) -> Event | None: ...
    def history(self, query: HistoryQuery) -> list[int]:
        """Sequence numbers of matching events, as far as they are indexed."""
        ...

    def replay(self, after: int = 0, session: str = "", project: str = "") -> Iterator[Event]: ...
    def chained(self) -> Iterator[ChainedRow]:
        """The whole log, as its hash chain reads it."""
        ...

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
    def next_due(self, now: int, kinds: Sequence[str]) -> int | None:
        """When the first job of these kinds that nobody works on is due, in ms; it may be in the past."""
        ...

    def seqs_of_keys(self, keys: Iterable[str]) -> dict[str, int]: ...
    def meta(self, name: str) -> str: ...
    def body_keys(self) -> dict[bytes, int]:
        """How many bodies each key encrypts, plain ones under the empty key. Scans all bodies."""
        ...

    def bodies_in_form(self, encrypted: bool, after: int, limit: int) -> list[int]:
        """Sequence numbers of events whose body is, or is not, encrypted."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """The write side: one connection, one thread. Writes happen inside `transaction()`."""

    path: Path

    @property
    def head(self) -> tuple[int, bytes]:
        """The last sequence number and its link."""
        ...

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[int]:
        """Begin, yield the last seq, commit durably; any error rolls back.

        A power cut may undo a transaction without `durable`, but never part of it and never an earlier durable one.
        """
        ...

    def seqs_of_keys(self, keys: Sequence[str], /) -> dict[str, int]: ...
    def session_agents(self, sessions: Sequence[str], /) -> dict[str, str]:
        """The agent of each session's first event; sessions without an agent are absent."""
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
        """Encrypt or decrypt the bodies of these events, as the setting says; return how many changed."""
        ...

    def index_history(self, entries: Sequence[HistoryEntry], before: str, after: str) -> bool:
        """Add entries and move the mark from `before` to `after`; False, with no change, if the mark differs."""
        ...

    def rows_with(self, probes: Iterable[bytes]) -> Iterator[Any]:
        """Yield stored rows (`table`, `key`, `content`) that contain a probe, in any case; `b""` matches every row."""
        ...

    def rewrite(self, probes: Iterable[bytes], change: Callable[[bytes], bytes]) -> int:
        """Rewrite stored rows that contain a probe, for erasure only; return how many changed."""
        ...

    def blank_events(self, sessions: Sequence[str], projects: Sequence[str]) -> int:
        """Blank the events of these sessions and folders; return how many."""
        ...

    def tombstones(self) -> int:
        """How many events of the log have lost their content to erasures."""
        ...

    def vacuum_erased(self) -> None:
        """Overwrite free pages; outside a transaction."""
        ...

    def truncate_log(self) -> None:
        """Truncate the write-ahead log; outside a transaction."""
        ...

    def reader(self) -> Reader: ...
    def close(self) -> None: ...


class GitContext(Protocol):
    """What a directory is, found by reading files only."""

    def of(self, cwd: str) -> Mapping[str, str]:
        """`root`, `branch` (empty outside git or detached), `repo` (the common git directory)."""
        ...

    def root_of(self, cwd: str) -> str:
        """`root` alone; empty outside git."""
        ...


class Cipher(Protocol):
    """Encrypts what the state folder keeps, if the setting says so."""

    @property
    def wanted(self) -> bool: ...
    def seal(self, body: bytes, place: bytes) -> bytes:
        """Return the stored form: plain if that is wanted, empty if it must be encrypted and cannot be."""
        ...

    def open(self, stored: bytes, place: bytes) -> bytes: ...
