"""A part of a file that is found and shown as a unit, and the joining of small parts."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

# A chunk beyond either limit is cut into overlapping windows; all in lines but the second.
LONGEST_LINES = 200
LONGEST_CHARS = 16_000
WINDOW, OVERLAP = 60, 10

# Brackets and rules alone are not worth a chunk.
_SAYS_SOMETHING = re.compile(r"\w")


class Definition(msgspec.Struct, frozen=True):
    """Lines count from 1, inclusive. `symbol` is dotted (`Class.method`)."""

    kind: str
    symbol: str
    start: int
    end: int

    @property
    def name(self) -> str:
        return self.symbol.rpartition(".")[2]


class Chunk(msgspec.Struct, frozen=True):
    """Lines count from 1, inclusive. `symbol` is dotted, empty if there is none."""

    kind: str
    symbol: str
    start: int
    end: int
    text: str
    definitions: tuple[Definition, ...] = ()
    """The definitions in it; one that continues in the next chunk is named in the first."""

    @property
    def lines(self) -> int:
        return self.end - self.start + 1

    @property
    def name(self) -> str:
        return self.symbol.rpartition(".")[2]


def of_lines(lines: Sequence[str], start: int, end: int, kind: str, symbol: str) -> Iterator[Chunk]:
    """Rows start..end (from 0, exclusive) as one chunk, or as overlapping windows if too long."""
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
    yield from window_chunks(lines, start, end, kind, symbol)


def named_chunks(chunks: Iterable[Chunk], kind: str, symbol: str, start: int, end: int) -> Iterator[Chunk]:
    """The first chunk names the definition that all of them form."""
    named: tuple[Definition, ...] = (Definition(kind, symbol, start + 1, end),) if symbol else ()
    for chunk in chunks:
        yield msgspec.structs.replace(chunk, definitions=named)
        named = ()


def window_chunks(lines: Sequence[str], start: int, end: int, kind: str, symbol: str = "") -> Iterator[Chunk]:
    while start < end:
        stop = _window_end(lines, start, end)
        text = "\n".join(lines[start:stop])
        if _SAYS_SOMETHING.search(text):
            yield Chunk(kind, symbol, start + 1, stop, text)
        if stop == end:
            return
        # Each step advances by at least a line, even if one line fills a window.
        start = max(start + 1, stop - OVERLAP)


def _window_end(lines: Sequence[str], start: int, end: int) -> int:
    """At most WINDOW rows and LONGEST_CHARS characters, at least one row; a short rest is included."""
    stop = min(end, start + WINDOW)
    if end - stop <= OVERLAP:
        stop = end
    size = 0
    for row in range(start, stop):
        size += len(lines[row]) + 1
        if size > LONGEST_CHARS:
            return max(start + 1, row)
    return stop


SMALL_LINES, TINY_LINES = 5, 3
JOINED_LINES, ROOMY_LINES = 40, 150
"""The maximum length of a joined chunk, and of one that absorbs a tiny neighbour."""


def join_small(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Join accessors, one-line functions and class heads with their neighbours."""
    joined: list[Chunk] = []
    for chunk in chunks:
        if joined and _both_small(joined[-1], chunk):
            joined[-1] = _join_chunks(joined[-1], chunk)
        else:
            joined.append(chunk)
    return _take_in_tiny(joined)


def _both_small(above: Chunk, below: Chunk) -> bool:
    # A joined chunk may exceed the limit and still absorb another.
    small = below.lines <= SMALL_LINES and (above.lines <= SMALL_LINES or len(above.definitions) > 1)
    return small and _same_scope(above, below) and below.end - above.start < JOINED_LINES


def _take_in_tiny(chunks: Sequence[Chunk]) -> list[Chunk]:
    merged: list[Chunk] = []
    for chunk in chunks:
        if merged and min(merged[-1].lines, chunk.lines) <= TINY_LINES and _can_join(merged[-1], chunk):
            merged[-1] = _join_chunks(merged[-1], chunk)
        else:
            merged.append(chunk)
    return merged


def _can_join(above: Chunk, below: Chunk) -> bool:
    return _same_scope(above, below) and below.end - above.start < ROOMY_LINES


def _same_scope(above: Chunk, below: Chunk) -> bool:
    """Both at top level, or within the same definition; windows of one text stay apart."""
    if below.start <= above.end or "section" in (above.kind, below.kind):
        return False
    first, second = above.symbol.partition(".")[0], below.symbol.partition(".")[0]
    nested = "." in above.symbol or "." in below.symbol or "class" in (above.kind, below.kind)
    return first == second or not nested or not (first and second)


def _join_chunks(above: Chunk, below: Chunk) -> Chunk:
    """Named for the longer of the two, or for their common scope."""
    blank = "\n" * (below.start - above.end)
    longer = above if above.lines >= below.lines else below
    shared = _shared_symbol(above.symbol, below.symbol)
    # If neither part is long, the enclosing class names them.
    kind, symbol = (longer.kind, longer.symbol) if longer.lines > 2 * TINY_LINES or not shared else ("class", shared)
    return Chunk(
        kind, symbol, above.start, below.end, above.text + blank + below.text, above.definitions + below.definitions
    )


def _shared_symbol(one: str, other: str) -> str:
    shared: list[str] = []
    for left, right in zip(one.split("."), other.split("."), strict=False):
        if left != right:
            break
        shared.append(left)
    return ".".join(shared)


def uncovered_spans(taken: Iterable[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of start..end that are not covered; `taken` is in order."""
    for begin, stop in taken:
        if begin > start:
            yield start, begin
        start = max(start, stop)
    if start < end:
        yield start, end
