"""Reads how a value is assigned to a name, and where the value ends."""

import re
from functools import cache

import msgspec

from holdfast.analysis.redact.rule_data import PATTERNS, RULES, WORDS
from holdfast.analysis.redact.spans import KEY_END

_LONGEST = 4096
# A name that continues may have a tail, which the shorter pattern does not read.
_GOES_ON = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_BROWSER_REACH = 340


class Value(msgspec.Struct, frozen=True):
    """A value found after a name."""

    start: int
    end: int
    quoted: bool
    notation: str
    sign: bytes
    below: bool = False
    """Whether it is on another line than its name."""

    def replaced(self, start: int, end: int) -> "Value":
        return Value(start, end, self.quoted, self.notation, self.sign)


def after_name(text: bytes, end: int) -> re.Pattern[bytes]:
    """The pattern that reads what follows a name here."""
    # A cheap search rules out the costly pattern for most names.
    if PATTERNS.browser.search(text, end, end + 90) and _has_browser_word(text[end : end + _BROWSER_REACH].lower()):
        return PATTERNS.after_name
    is_longer = end < len(text) and text[end] in _GOES_ON
    return PATTERNS.after_name_brief if is_longer else PATTERNS.after_whole_name


def _has_browser_word(near: bytes) -> bool:
    return b"text" in near or b"value" in near or b")." in near


@cache
def _notations_in(pattern: re.Pattern[bytes]) -> list[str]:
    return [name for name in RULES.notations if name in pattern.groupindex]


def read_value(text: bytes, name: int, match: re.Match[bytes]) -> Value | None:
    """The value that a pattern found after the name at `name`."""
    quote, start = match["open"], match.start("value")
    form = next((name for name in _notations_in(match.re) if match[name] is not None), "said")
    sign = match[0][: start - match.start()].strip(b" \t\"'`\\")[-1:]
    after_key = text[start - 1 : start] == KEY_END
    if quote and text[start - len(quote) - 1 : start - len(quote)] == KEY_END:
        start, quote, after_key = start - len(quote), b"", True
    ends = _value_end(form, quote, after_key)
    limit = min(len(text), start + _LONGEST)
    is_bare = ends is PATTERNS.unquoted
    stop = _end_of_bare(text, name, start, limit) if is_bare else _end_of(ends, text, start, limit)
    # The value is an object, and this is its key.
    if stop <= start or (after_key and text[stop : stop + 1] == KEY_END):
        return None
    quoted, below = bool(quote) or after_key or ends is PATTERNS.to_tag, b"\n" in match[0]
    return Value(start, stop, quoted, form, KEY_END if after_key else sign, below)


def _value_end(form: str, quote: bytes | None, after_key: bool) -> re.Pattern[bytes]:
    if after_key:
        return PATTERNS.to_string_end
    if not quote:
        return PATTERNS.to_tag if form in ("xml", "plist", "cell") else PATTERNS.unquoted
    if b"\\" in quote:
        return PATTERNS.in_escaped
    double, single = PATTERNS.in_double_quotes, PATTERNS.in_single_quotes
    return {b'"': double, b"'": single}.get(quote[:1], PATTERNS.in_backquotes)


def _end_of(value: re.Pattern[bytes], text: bytes, start: int, limit: int) -> int:
    match = value.match(text, start, limit)
    return match.end() if match else start


def _end_of_bare(text: bytes, name: int, start: int, limit: int) -> int:
    """A bare value ends at `,` `;` `&` and the like, except on a line of its own."""
    in_login = _in_login(text, name)
    if not in_login and _begins_line(text, name) and not _in_query(text, name):
        stop = _end_of(PATTERNS.unquoted, text, start, limit)
        further = PATTERNS.further_setting.search(text, start, stop)
        if further:
            return further.start()
        if PATTERNS.line_end.match(text, stop):
            return start + len(text[start:stop].rstrip(b",;"))
    stop = _end_of(PATTERNS.unquoted_part, text, start, limit)
    # `https://x-access-token:…@host`: the login of an address ends before its host.
    login = text.find(b"@", start, stop) if in_login else -1
    return login if login >= 0 else start + len(text[start:stop].rstrip(b".:!?"))


def _begins_line(text: bytes, name: int) -> bool:
    """Whether only what may precede a name is before it on its line."""
    first = max(0, name - 80)
    starts = [at + len(mark) for mark in WORDS.line_start if (at := text.rfind(mark, first, name)) >= 0]
    start = max(starts, default=-1 if first else 0)
    return start >= 0 and bool(PATTERNS.before_name.fullmatch(text, start, name))


def _in_login(text: bytes, name: int) -> bool:
    scheme = text.rfind(b"://", max(0, name - 60), name)
    return scheme >= 0 and not PATTERNS.no_login.search(text, scheme + 3, name)


def _in_query(text: bytes, name: int) -> bool:
    before = text[max(0, name - 60) : name]
    return b"?" in before or b"&" in before
