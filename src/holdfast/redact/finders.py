"""What is looked at around an anchor: the form of a token, the construct around a value, the value after a name."""

import re

from holdfast.core.lazy import lazy_value
from holdfast.redact import assignment, judge, tables
from holdfast.redact.judge import CHECKS, NameRule, PlaceRule, Span, TokenRule
from holdfast.redact.shapes import Shape
from holdfast.redact.work import WORK_OF_TOKEN, Finder

# The end of a terminal's colour code, such as `[0;31m`; its last letter is no part of a word.
_COLOUR = re.compile(rb"\[[0-9;]{0,12}m$")
# In bytes: how far the pattern of a token reads, so that a long run cannot make it slow.
_LONGEST = 8192
_NEAR = 404
# In bytes: how much of what stands before a place costs a unit more.
_PER_BACK = 9


def token_finder(rule: TokenRule, shape: Shape, alone: bool) -> Finder:
    """Looks at the form of the token around its anchor. The pattern is compiled when it is first needed.
    `alone`: what stands before the anchor was looked at already."""
    check = CHECKS.get(rule.check)
    open_left = alone or rule.shape.startswith("{") or rule.left == "any"
    strict = rule.left == "strict"
    public_prefix = rule.left == "private"

    pattern = lazy_value(lambda: re.compile(shape.pattern))

    def find(text: bytes, start: int, _end: int) -> Span | None:
        if not open_left and not shape.head and not _may_begin_token(text, start, strict):
            return None
        match = _match_around(pattern(), text, start, shape.head)
        if not match or not (open_left or not shape.head or _may_begin_token(text, match.start(), strict)):
            return None
        token = match[0]
        # `pk_live_…` is the public half of a pair; only the secret half is removed.
        if public_prefix and text[match.start() - 2 : match.start()] in (b"pk", b"PK"):
            return None
        if judge.is_placeholder(token) or (check and not check(token)):
            return None
        return match.start(), match.end(), rule.kind

    return find


def _match_around(pattern: re.Pattern[bytes], text: bytes, start: int, head: int) -> re.Match[bytes] | None:
    if not head:
        return pattern.match(text, start, min(len(text), start + _LONGEST))
    # Only the anchor's place is known; the head before it may be shorter than its limit.
    for at in range(max(0, start - head), start + 1):
        match = pattern.match(text, at, min(len(text), start + _LONGEST))
        if match and match.start() <= start < match.end():
            return match
    return None


def _may_begin_token(text: bytes, start: int, strict: bool) -> bool:
    """Whether a token may begin here: not within a word, unless what stands before it is a colour of the terminal.
    `strict`: not within a name or a number either."""
    last = text[start - 1 : start] if start else b""
    if last == b"m" and _COLOUR.search(text, max(0, start - 16), start):
        return True
    if strict and last in (b"-", b"_") and _FILE_WORD.search(text, max(0, start - 16), start):
        return True
    return not last.isalnum() and not (strict and last in b"_.+-" and last)


_FILE_WORD = re.compile(
    rb"(?:^|[/\\\s\"'=])(?:backup|tokens?|keys?|secrets?|creds?|auth|old|new|copy|export|dump|wallet)[-_]$"
)
"""`backup-` before a token in the name of a file."""


def place_finder(rule: PlaceRule) -> Finder:
    accept = judge.JUDGES[rule.judge]
    needs = rule.needs.encode()

    # A value ends with its string.
    pattern = lazy_value(lambda: re.compile(rule.pattern.replace("[^", "[^\x1e\x1f").encode()))

    def take(text: bytes, match: re.Match[bytes] | None) -> Span | None:
        if not match:
            return None
        first, last = match.span("secret")
        value = text[first:last]
        if b"[redacted:" in value or text[first - 10 : first] == b"[redacted:":
            return None
        return (first, last, rule.kind) if accept(value) else None

    def find(text: bytes, start: int, end: int) -> Span | None:
        if needs and text.find(needs, end, end + _NEAR) < 0:
            return None
        return take(text, pattern().match(text, start))

    def find_back(text: bytes, start: int, end: int) -> Span | int:
        if needs and text.find(needs, end, end + _NEAR) < 0:
            return WORK_OF_TOKEN
        return take(text, _search_back(pattern(), text, start, end, rule.back)) or 4 + rule.back // _PER_BACK

    return find_back if rule.back else find


def _search_back(pattern: re.Pattern[bytes], text: bytes, start: int, end: int, back: int) -> re.Match[bytes] | None:
    for match in pattern.finditer(text, max(0, start - back), min(len(text), end + 400)):
        if match.end() > start:
            return match
    return None


def name_finder(rule: NameRule) -> Finder:
    width = rule.stem_width

    def find(text: bytes, start: int, end: int) -> list[Span] | Span | int | None:
        stem = end - width if width else start
        value = assignment.find_value(text, rule, stem, end)
        if not isinstance(value, tuple) and text[end : end + 1] in (b",", b'"'):
            return tables.find_column(text, rule, stem, end) or value
        return value

    return find
