"""Patterns of the user's own. They may match anything, so what they match is cut to what leaves JSON valid."""

import re
from collections.abc import Iterable, Iterator

from holdfast.core.redact.rule import Span, aligned, label

_LABEL = label("pattern")
_QUOTE = re.compile(rb'\\.|"', re.DOTALL)
_NUMBER_BYTES = b"0123456789.eE+-"


def compiled(patterns: Iterable[str]) -> list[re.Pattern[bytes]]:
    """What cannot be compiled is left out: settings say so, this must not fail."""
    found = []
    for pattern in patterns:
        try:
            found.append(re.compile(pattern.encode()))
        except (re.error, RecursionError, OverflowError):
            continue
    return found


def spans(body: bytes, patterns: Iterable[re.Pattern[bytes]]) -> Iterator[Span]:
    hits = sorted(m.span() for p in patterns for m in p.finditer(body) if m.end() > m.start())
    if not hits:
        return
    if body.lstrip()[:1] not in (b"{", b"[", b'"'):
        yield from ((start, end, _LABEL) for start, end in hits)
        return
    strings = _strings(body)
    for start, end in hits:
        yield from _inside(body, start, end, strings)


def _strings(body: bytes) -> list[tuple[int, int]]:
    """Where the text of each JSON string lies."""
    quotes = [m.start() for m in _QUOTE.finditer(body) if m[0] == b'"']
    return [(a + 1, b) for a, b in zip(quotes[::2], [*quotes[1::2], len(body)], strict=False)]


def _inside(body: bytes, start: int, end: int, strings: list[tuple[int, int]]) -> Iterator[Span]:
    for low, high in strings:
        first, last = aligned(body, max(start, low)), min(end, high)
        last = aligned(body, last) if last < high else last
        if first < last:
            yield first, last, _LABEL
        if low > end:
            break
    else:
        low = len(body)
    yield from _number(body, start, end, strings)


def _number(body: bytes, start: int, end: int, strings: list[tuple[int, int]]) -> Iterator[Span]:
    """A bare number becomes a string as a whole."""
    if any(low <= start < high + 1 for low, high in strings) or body[start] not in _NUMBER_BYTES:
        return
    while start and body[start - 1] in _NUMBER_BYTES:
        start -= 1
    while end < len(body) and body[end] in _NUMBER_BYTES:
        end += 1
    if all(c in _NUMBER_BYTES for c in body[start:end]):
        yield start, end, b'"' + _LABEL + b'"'
