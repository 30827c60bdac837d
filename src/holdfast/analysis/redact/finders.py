"""Checks around an anchor: the form of a token, the construct around a value, the value after a name."""

import re
from collections.abc import Callable

from holdfast.analysis.redact import assignment, judge, tables
from holdfast.analysis.redact.cookies import find_cookies, work_of_cookies
from holdfast.analysis.redact.kubernetes import find_secret_values, work_of_document
from holdfast.analysis.redact.private_keys import find_private_jwk, find_private_key
from holdfast.analysis.redact.rule_data import PATTERNS, NameRule, PlaceRule, TokenRule
from holdfast.analysis.redact.spans import REDACTED, Span
from holdfast.core.lazy import lazy_value

Finder = Callable[[bytes, int, int], "list[Span] | Span | int | None"]
"""(text, start, end of the anchor) → the span to remove; or how much work it took to find none, if less than budgeted."""
Cost = int | Callable[[bytes, int, int], int]
"""The cost of a candidate in units of work.py, or a function of the text."""
WORK_OF_TOKEN, WORK_OF_PLACE, WORK_OF_BACK, WORK_OF_NAME, WORK_OF_RUN = 1, 2, 20, 21, 18
"""Per candidate: a form, a place read forward or back, a name after which many notations are tried, a long run."""
_WORK_OF_TABLE, _WORK_OF_KEY_SET = 60, 56
BLOCK_FINDERS: dict[str, tuple[Finder, Cost]] = {
    "private-key": (find_private_key, WORK_OF_BACK),
    "private-jwk": (find_private_jwk, _WORK_OF_KEY_SET),
    "secret-values": (find_secret_values, work_of_document),
    "cookies": (find_cookies, work_of_cookies),
    "inserted-values": (tables.find_inserted_values, WORK_OF_BACK),
    "table-values": (tables.find_table_values, _WORK_OF_TABLE),
    "copied-values": (tables.find_copied_values, _WORK_OF_TABLE),
}
"""Finders that read more than a line, by the name that rules use."""
# In bytes: how far a token's pattern reads, so that a long run cannot make it slow.
_LONGEST = 8192
_NEAR = 404
# In bytes of preceding text per additional unit.
_PER_BACK = 9


class _TokenFinder:
    """Checks the form of the token around its anchor."""

    def __init__(self, rule: TokenRule) -> None:
        self._rule, self._check = rule, judge.JUDGES.get(rule.check, bool)
        self._pattern = lazy_value(lambda: re.compile(rule.pattern.encode()))
        self._begins_at_anchor = not rule.begins and not rule.head
        self._begins_before = not rule.begins and rule.head > 0

    def __call__(self, text: bytes, start: int, _end: int) -> Span | None:
        rule = self._rule
        is_strict = rule.left == "strict"
        if self._begins_at_anchor and not _may_begin_token(text, start, is_strict):
            return None
        match = _match_with_head(self._pattern(), text, start, rule.head)
        if not match or (self._begins_before and not _may_begin_token(text, match.start(), is_strict)):
            return None
        # `pk_live_…` is the public half of a pair; only the secret half is removed.
        if rule.left == "private" and text[match.start() - 2 : match.start()] in (b"pk", b"PK"):
            return None
        is_token = self._check(match[0]) and not judge.is_placeholder(match[0])
        return (match.start(), match.end(), rule.kind) if is_token else None


token_finder = _TokenFinder


def _match_with_head(pattern: re.Pattern[bytes], text: bytes, start: int, head: int) -> re.Match[bytes] | None:
    # Only the anchor's position is known; the head before it may be shorter than its limit.
    for at in range(max(0, start - head), start + 1):
        match = pattern.match(text, at, min(len(text), start + _LONGEST))
        if match and start < match.end():
            return match
    return None


def _may_begin_token(text: bytes, start: int, strict: bool) -> bool:
    """Whether a token may begin here: not within a word, unless a terminal colour precedes it. `strict`: not within a
    name or number either."""
    last = text[start - 1 : start] if start else b""
    if last == b"m" and PATTERNS.colour_end.search(text, max(0, start - 16), start):
        return True
    if strict and last in (b"-", b"_") and PATTERNS.file_word.search(text, max(0, start - 16), start):
        return True
    return not last.isalnum() and not (strict and last in b"_.+-" and last)


def place_finder(rule: PlaceRule) -> Finder:
    accept = judge.JUDGES[rule.judge]
    needs = rule.needs.encode()
    pattern = lazy_value(lambda: re.compile(rule.pattern.encode()))
    refused = 4 + rule.back // _PER_BACK

    def find(text: bytes, start: int, end: int) -> Span | int | None:
        if needs and text.find(needs, end, end + _NEAR) < 0:
            return WORK_OF_TOKEN
        match = _search_back(pattern(), text, start, end, rule.back) if rule.back else pattern().match(text, start)
        span = _accepted(text, match, accept, rule.kind) if match else None
        return span or (refused if rule.back else None)

    return find


def _accepted(text: bytes, match: re.Match[bytes], accept: Callable[[bytes], bool], kind: str) -> Span | None:
    first, last = match.span("secret")
    value = text[first:last]
    if REDACTED in value or text[first - len(REDACTED) : first] == REDACTED:
        return None
    return (first, last, kind) if accept(value) else None


def _search_back(pattern: re.Pattern[bytes], text: bytes, start: int, end: int, back: int) -> re.Match[bytes] | None:
    found = pattern.finditer(text, max(0, start - back), min(len(text), end + 400))
    return next((match for match in found if match.end() > start), None)


def work_of_place(rule: PlaceRule) -> int:
    return WORK_OF_BACK if rule.back else WORK_OF_PLACE


def name_finder(rule: NameRule) -> Finder:
    width = rule.stem_width

    def find(text: bytes, start: int, end: int) -> list[Span] | Span | int | None:
        stem = end - width if width else start
        value = assignment.find_value(text, rule, stem, end)
        if not isinstance(value, tuple) and text[end : end + 1] in (b",", b'"'):
            return tables.find_column(text, rule, stem, end) or value
        return value

    return find
