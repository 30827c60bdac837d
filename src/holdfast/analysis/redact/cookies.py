"""Finds cookies in headers and commands."""

from holdfast.analysis.redact import judge
from holdfast.analysis.redact.rule_data import PATTERNS
from holdfast.analysis.redact.spans import Span

_MOST = 60
_REFUSED = 4
"""The cost of finding none, in units of work.py."""


def find_cookies(text: bytes, start: int, _end: int) -> list[Span] | int:
    match = PATTERNS.cookies.match(text, start)
    if not match:
        return _REFUSED
    pairs = PATTERNS.one_cookie.finditer(text, *match.span("cookies"))
    return [(*one.span(2), "cookie") for one in pairs if _is_secret(one[1], one[2])]


def work_of_cookies(text: bytes, _start: int, end: int) -> int:
    """Each cookie of the line is checked."""
    line = text[end : end + 4096].partition(b"\n")[0]
    return 2 * _REFUSED + 5 * min(_MOST, line.count(b";"))


def _is_secret(name: bytes, value: bytes) -> bool:
    if judge.looks_random(value) and len(value) >= 12:
        return True
    is_plain = len(value) < 8 or judge.is_word(value) or judge.is_reference(value) or judge.is_code(value)
    return not is_plain and bool(PATTERNS.of_a_session.search(name)) and not value.isdigit()
