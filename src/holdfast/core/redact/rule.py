"""What a rule is: literals without which it cannot match, and a search for the spans to be replaced."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

Span = tuple[int, int, bytes]
"""(start, end, the replacement). Never cuts an escape sequence of JSON in two, never holds a bare quote."""

Search = Callable[[bytes, bytes], Iterator[Span]]
"""(body, body in lower case) → spans, in order. Both have the same length: only ASCII is lowered."""


class Rule(NamedTuple):
    literals: tuple[bytes, ...]
    search: Search


def label(what: str) -> bytes:
    return b"[redacted:" + what.encode() + b"]"


def aligned(body: bytes, start: int) -> int:
    """Where text begins that was found at `start`: the `n` of `\\npm_…` belongs to the line break before it."""
    before = start
    while before and body[before - 1] == 0x5C:
        before -= 1
    return start + (start - before) % 2
