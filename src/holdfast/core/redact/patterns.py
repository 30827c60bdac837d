"""Patterns of the user's own. They may match anything, so what they match is cut to what leaves JSON valid."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from holdfast.core.redact.rule import Span, escape_around, label

_LABEL = label("pattern")
_QUOTE = re.compile(rb'\\.|"', re.DOTALL)
_NUMBER_BYTES = b"0123456789.eE+-"
_NUMBER = re.compile(rb"-?\d[\d.eE+-]*")
_REDACTED = re.compile(rb"\[redacted:[a-z-]{1,30}\]")


def compiled(patterns: Iterable[str]) -> list[re.Pattern[bytes]]:
    """What cannot be compiled is left out: settings say so, this must not fail."""
    usable = []
    for pattern in patterns:
        try:
            usable.append(re.compile(pattern.encode()))
        except (re.error, RecursionError, OverflowError):
            continue
    return usable


def found(body: bytes, patterns: Iterable[re.Pattern[bytes]]) -> list[Span]:
    try:
        return [*_spans(body, patterns)]
    except Exception:  # a fault in here must neither stop the hook nor the other rules
        return []


def _spans(body: bytes, patterns: Iterable[re.Pattern[bytes]]) -> Iterator[Span]:
    done = [match.span() for match in _REDACTED.finditer(body)]
    hits = sorted(match.span() for pattern in patterns for match in pattern.finditer(body) if match[0])
    hits = [hit for hit in hits if not any(_overlapping(done, *hit))]
    if body.lstrip()[:1] not in (b"{", b"[", b'"'):
        yield from ((start, end, _LABEL) for start, end in hits)
    elif hits:
        strings, behind = _strings(body), 0
        for start, end in hits:
            for span in _inside(body, max(start, behind), end, strings) if end > behind else ():
                behind = max(behind, span[1])
                yield span


def _strings(body: bytes) -> list[tuple[int, int]]:
    """Where the text of each JSON string lies."""
    quotes = [match.start() for match in _QUOTE.finditer(body) if match[0] == b'"']
    return [(first + 1, last) for first, last in zip(quotes[::2], [*quotes[1::2], len(body)], strict=False)]


def _overlapping(places: list[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Those of the sorted places that share a byte with it."""
    for n in range(max(0, bisect_right(places, (start, end)) - 1), len(places)):
        if places[n][0] >= end:
            return
        if places[n][1] > start:
            yield places[n]


def _inside(body: bytes, start: int, end: int, strings: list[tuple[int, int]]) -> Iterator[Span]:
    touched = False
    for low, high in _overlapping(strings, start, end):
        touched = True
        yield *_whole(body, max(start, low), min(end, high)), _LABEL
    if not touched:
        yield from _number(body, start, end)


def _whole(body: bytes, start: int, end: int) -> tuple[int, int]:
    """Widened to whole escape sequences."""
    before, after = escape_around(body, start), escape_around(body, end)
    return before[0] if before else start, after[1] if after else end


def _number(body: bytes, start: int, end: int) -> Iterator[Span]:
    """A bare number becomes a string as a whole; anything else outside of strings is structure and stays."""
    while start and body[start - 1] in _NUMBER_BYTES:
        start -= 1
    while end < len(body) and body[end] in _NUMBER_BYTES:
        end += 1
    if _NUMBER.fullmatch(body, start, end):
        yield start, end, b'"' + _LABEL + b'"'
