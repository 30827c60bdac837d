"""Chains the log: each event's link is a hash of the event and of the link before it."""

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

SALT_BYTES = 16
HASH_BYTES = 32
BEGINNING = b""
"""Precedes the first link."""
MOST_NAMED = 20

_encode = msgspec.msgpack.Encoder().encode


class ChainedRow(NamedTuple):
    """An event as stored. `leaf` is kept only where the content was erased; `link` is empty before the chain began."""

    seq: int
    content: bytes
    salt: bytes
    leaf: bytes
    link: bytes


class Head(msgspec.Struct, frozen=True):
    """The end of the log at some moment, noted outside the store."""

    at: int
    seq: int
    link: str


class Restore(msgspec.Struct, frozen=True):
    at: int
    kept: int
    """The last event from before that is still in the log."""


class ChainReport(msgspec.Struct, kw_only=True):
    """`broken`: events that are not what was written, or whose predecessor is not."""

    since: int = 0
    chained: int = 0
    erased: int = 0
    broken: list[int] = []
    heads: int = 0
    lost_heads: list[Head] = []
    """Heads that the log no longer leads to, without a restore that says why."""
    restored_heads: int = 0
    head: Head | None = None

    @property
    def is_intact(self) -> bool:
        return not self.broken and not self.lost_heads


def content_of(names: Sequence[str], numbers: Sequence[int], key: str, data: bytes) -> bytes:
    """`names`: session, project, kind, tool, agent; `numbers`: seq, time, version."""
    return _encode((*names, *numbers, key, data))


def new_salts(count: int) -> list[bytes]:
    salts = os.urandom(SALT_BYTES * count)
    return [salts[start : start + SALT_BYTES] for start in range(0, len(salts), SALT_BYTES)]


def leaf_of(content: bytes, salt: bytes) -> bytes:
    """Salted: after an erasure, when the salt is gone, nobody can try out what the content was."""
    return blake2b(content, digest_size=HASH_BYTES, key=salt).digest()


def link_of(previous: bytes, leaf: bytes) -> bytes:
    return blake2b(previous + leaf, digest_size=HASH_BYTES).digest()


def verify_chain(
    rows: Iterable[ChainedRow], heads: Sequence[Head] = (), restores: Sequence[Restore] = ()
) -> ChainReport:
    """Follow the chain from its first link, and look for each noted head in it."""
    report, previous = ChainReport(heads=len(heads)), BEGINNING
    wanted = {head.seq for head in heads}
    links: dict[int, str] = {}
    last = 0
    for row in rows:
        last = row.seq
        if row.link:
            previous = _follow(report, row, previous)
        elif report.since:
            _note_broken(report, row.seq)
        if row.seq in wanted:
            links[row.seq] = row.link.hex()
    if previous:
        report.head = Head(0, last, previous.hex())
    for head in heads:
        if links.get(head.seq) != head.link:
            _note_lost(report, head, restores)
    return report


def _follow(report: ChainReport, row: ChainedRow, previous: bytes) -> bytes:
    report.since = report.since or row.seq
    report.chained += 1
    report.erased += bool(row.leaf)
    leaf = row.leaf or leaf_of(row.content, row.salt)
    if link_of(previous, leaf) != row.link:
        _note_broken(report, row.seq)
    return row.link


def _note_broken(report: ChainReport, seq: int) -> None:
    if len(report.broken) < MOST_NAMED:
        report.broken.append(seq)


def _note_lost(report: ChainReport, head: Head, restores: Sequence[Restore]) -> None:
    # A restore takes away every head that was noted before it and is newer than what it kept.
    if any(restore.at >= head.at and restore.kept < head.seq for restore in restores):
        report.restored_heads += 1
    elif len(report.lost_heads) < MOST_NAMED:
        report.lost_heads.append(head)
