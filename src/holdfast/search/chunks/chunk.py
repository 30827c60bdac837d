"""A piece of a file that is found and shown as one thing."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

LONGEST_LINES = 200
LONGEST_CHARS = 16_000
WINDOW, OVERLAP = 60, 10

_SAYS_SOMETHING = re.compile(r"\w")


class Chunk(msgspec.Struct, frozen=True):
    """Lines count from 1, both ends included. `symbol` is dotted (`Class.method`), empty where there is none."""

    kind: str
    symbol: str
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        return self.symbol.rpartition(".")[2]


def of_lines(lines: Sequence[str], start: int, end: int, kind: str, symbol: str) -> Iterator[Chunk]:
    """Rows start..end (from 0, end excluded) as one chunk, or as overlapping windows where that were too long."""
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    if start == end:
        return
    text = "\n".join(lines[start:end])
    if end - start <= LONGEST_LINES and len(text) <= LONGEST_CHARS:
        if _SAYS_SOMETHING.search(text):
            yield Chunk(kind, symbol, start + 1, end, text)
        return
    yield from windows(lines, start, end, kind, symbol)


def windows(lines: Sequence[str], start: int, end: int, kind: str, symbol: str = "") -> Iterator[Chunk]:
    while start < end:
        stop = _stop(lines, start, end)
        text = "\n".join(lines[start:stop])
        if _SAYS_SOMETHING.search(text):
            yield Chunk(kind, symbol, start + 1, stop, text)
        if stop == end:
            return
        start = max(start + 1, stop - OVERLAP)


def _stop(lines: Sequence[str], start: int, end: int) -> int:
    """At most WINDOW rows and LONGEST_CHARS characters, at least one row; a short rest is taken along."""
    stop = min(end, start + WINDOW)
    if end - stop <= OVERLAP:
        stop = end
    size = 0
    for row in range(start, stop):
        size += len(lines[row]) + 1
        if size > LONGEST_CHARS:
            return max(start + 1, row)
    return stop


def gaps(taken: Iterable[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """What of start..end no one took; `taken` is in order."""
    for begin, stop in taken:
        if begin > start:
            yield start, begin
        start = max(start, stop)
    if start < end:
        yield start, end
