"""Finds private keys: PEM blocks, whole or cut, and JSON Web Keys."""

import re

from holdfast.analysis.redact.rule_data import PATTERNS
from holdfast.analysis.redact.spans import Span, match_around

# In bytes. A 16,384-bit private key in base64 is shorter.
_LONGEST = 20_000
_MOST_LINES, _LONGEST_LINE = 400, 400


def find_private_key(text: bytes, start: int, end: int) -> Span | None:
    """From `-----BEGIN … PRIVATE KEY` to its end; without an end as far as key lines go; or back from an end."""
    # The anchor is in the middle of the line, after words such as `ENCRYPTED`.
    begin = match_around(PATTERNS.key_begin, text, start, 50, end - start + 20)
    if not begin:
        return _find_tail(text, start, end)
    closing = _next_end(text, begin.end())
    # Without these checks the text between two unrelated marks would be removed.
    if closing and _holds_body(text, begin.end(), closing.start()):
        return begin.start(), closing.end(), "private-key"
    stop = _lines_after(text, begin.end())
    has_body = stop > begin.end() and PATTERNS.body_run.search(text, begin.end(), stop)
    return (begin.start(), stop, "private-key") if has_body else None


def _holds_body(text: bytes, first: int, last: int) -> bool:
    return bool(PATTERNS.body_run.search(text, first, last)) and not PATTERNS.not_body.search(text, first, last)


def _next_end(text: bytes, at: int) -> re.Match[bytes] | None:
    """The end of the key, if the next mark is one."""
    mark = text.find(b"PRIVATE KEY", at, at + _LONGEST)
    return PATTERNS.key_end.search(text, max(at, mark - 60), mark + 30) if mark >= 0 else None


def _lines_after(text: bytes, at: int) -> int:
    """Where the lines of base64 end. Anything else on the first line ends it at once."""
    stop = at
    for _ in range(_MOST_LINES):
        line = PATTERNS.line.match(text, at, min(len(text), at + _LONGEST_LINE))
        if not line or line.end() == at or not PATTERNS.body_line.match(line[0]):
            break
        stop = at = line.end()
    while stop > 0 and text[stop - 1] in b"\r\n\x1f":
        stop -= 1
    headers = PATTERNS.inline_headers.match(text, max(at, stop))
    escaped = PATTERNS.escaped_body.match(text, headers.end() if headers else max(at, stop), at + _LONGEST)
    return max(stop, escaped.end() if escaped else 0)


def _find_tail(text: bytes, start: int, end: int) -> Span | None:
    """The last lines of a key whose beginning was cut off."""
    closing = match_around(PATTERNS.key_end, text, start, 50, end - start + 20)
    if not closing:
        return None
    at = closing.start()
    for _ in range(_MOST_LINES):
        first = max(text.rfind(mark, max(0, at - 300), at - 1) for mark in (b"\n", b"\x1f")) + 1
        line = text[first:at]
        # Words with spaces are prose, not base64.
        if first >= at or not PATTERNS.body_line.match(line) or b" " in line.strip():
            break
        at = first
    return (at, closing.end(), "private-key") if PATTERNS.body_run.search(text, at, closing.start()) else None


def find_private_jwk(text: bytes, start: int, end: int) -> list[Span]:
    """The private parts of a JSON Web Key, in the same object as its type."""
    spans: list[Span] = []
    for first, last in ((end, end + 3000), (max(0, start - 3000, text.rfind(b"{", 0, start) + 1), start)):
        for part in PATTERNS.jwk_part.finditer(text, first, last):
            if not part["secret"]:
                break
            spans.append((*part.span("secret"), "jwk-private"))
    return spans
