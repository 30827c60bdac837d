"""Spans of the scanned text that are removed, and the bytes that end its strings."""

import re
from collections.abc import Iterator

from holdfast.analysis.redact.rule_data import RULES

KEY_END = b"\x1e"
"""Ends a JSON key in the scanned text."""
STRING_END = b"\x1f"
"""Ends any other string."""
UNJUDGED = "unjudged"
"""The kind of text with more candidates than can be judged: it is removed unread."""
REDACTED = b"[redacted:"
Span = tuple[int, int, str]
"""Start, end and kind of what is removed."""
_GENERIC = frozenset(
    (*(rule.kind for rule in RULES.names), "bearer-token", "url-token", "vendor-token", "login-token", "live-key")
)
"""Kinds that say less about a secret than a form that names its issuer."""


# Of two forms of one token the more precise one comes first; generic kinds come last.
_RANKS = {
    rule.kind: number - len(RULES.tokens) for number, rule in enumerate(RULES.tokens) if rule.kind not in _GENERIC
}


def make_label(kind: str) -> bytes:
    return REDACTED + kind.encode() + b"]"


def replace_spans(text: bytes, spans: list[Span]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for start, end, kind in spans:
        parts += (text[at:start], make_label(kind))
        at = end
    return b"".join((*parts, text[at:]))


# Callers rely on spans without overlap: `replace_spans` copies the gaps.
def join_spans(spans: list[Span]) -> list[Span]:
    """Overlapping spans become one, with the more specific kind."""
    if len(spans) < 2:
        return spans
    spans.sort(key=lambda span: (span[0], -span[1], _RANKS.get(span[2], 0)))
    joined = [spans[0]]
    for start, end, kind in spans[1:]:
        last = joined[-1]
        if start >= last[1]:
            joined.append((start, end, kind))
        else:
            says_more = last[2] in _GENERIC and kind not in _GENERIC
            joined[-1] = last[0], max(last[1], end), kind if says_more else last[2]
    return joined


def split_lines(text: bytes, span: Span) -> Iterator[Span]:
    """Split spans by line, because line ends are no part of a secret."""
    at, end, kind = span
    for line in text[at:end].split(b"\n"):
        if line:
            yield at, at + len(line), kind
        at += len(line) + 1


def spans_outside(spans: list[Span], places: list[tuple[int, int]]) -> list[Span]:
    """The spans that touch none of these places; both are in order."""
    untouched: list[Span] = []
    n = 0
    for span in spans:
        while n < len(places) and places[n][1] <= span[0]:
            n += 1
        if n == len(places) or places[n][0] >= span[1]:
            untouched.append(span)
    return untouched


def match_around(pattern: re.Pattern[bytes], text: bytes, at: int, before: int, after: int) -> re.Match[bytes] | None:
    """The match that contains the byte `at`, beginning at most so many bytes before and ending so many after it."""
    found = pattern.finditer(text, max(0, at - before), min(len(text), at + after))
    return next((match for match in found if match.start() <= at < match.end()), None)
