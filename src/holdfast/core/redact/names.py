"""Secrets that are named: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`, in plain or JSON-escaped text."""

import re
from collections.abc import Callable
from typing import NamedTuple

from holdfast.core.redact import judge
from holdfast.core.redact.logins import BASIC, COOKIES
from holdfast.core.redact.rule import Match, Rule, Span, label, run, together
from holdfast.core.redact.webhooks import WEBHOOK

# What may follow the name's own word, as in `secret_access_key`, `password2`.
_TAIL = rb"(?:[_-]?(?:access|key|base|value|hash|string|b64|base64|prod|dev|test|staging|live|\d{1,2})){0,3}"
_SIGN = rb"(?:=>|:=|[=!]?={1,2}|:(?!:))"
_TYPE = rb"(?::\s?[a-z_][a-z0-9_.\[\]|]{0,40}\s{0,3}(?==))?"
# `"name": "DB_PASSWORD", "value": "…"` as in Kubernetes and in forms.
_VALUE_FIELD = rb",?(?:\s|\\n){0,20}\\{0,3}[\"']?value\\{0,3}[\"']?\s{0,3}[:=]"
_AFTER = (
    _TAIL + rb"(?P<close>\\{0,7}[\"'`])?(?:\s{0,8}+" + _TYPE + rb"(?P<sign>" + _VALUE_FIELD + rb"|" + _SIGN +
    rb")|\s(?![-=:\s]))\s{0,8}+(?P<open>\\{0,7}[\"'`])?(?P<value>)"
)  # fmt: skip

# How far a value goes, by how it is quoted. No piece of these cuts an escape sequence in two.
_IN_QUOTES = re.compile(run(rb"[^\"\\\r\n]", rb"\\[^\r\n]"))
_IN_ESCAPED_QUOTES = re.compile(run(rb"[^\"\\\r\n]", rb"\\\\(?:\\.|[^\"\\])?|\\[tu/]"))
_IN_DEEP_QUOTES = re.compile(rb"[^\"\\\r\n]*+")
_IN_SINGLE_QUOTES = re.compile(run(rb"[^'\"`\\\r\n]", rb"\\[\"\\/tu]"))
_UNQUOTED = re.compile(run(rb"[^\s\"'`\\,;&<>(){}\[\]|]", rb"\\u[0-9a-f]{4}"))
_NUMBER = re.compile(rb"-?\d[\d.eE+-]*+$")
_FLAGGED = re.compile(rb"--?[a-z0-9_-]*$")
_LINE_END = re.compile(rb"[ \t]*+(?:$|[\r\n\"]|\\[nr\"])")
_PEEK = 100


class Found(NamedTuple):
    """A name with a value after it."""

    value: bytes
    quoted: bool
    sign: bytes | None
    """None: only a space, as in `--password hunter2`."""
    before: bytes
    """What stands before the name's own word, in lower case: the `api_` of `api_key`."""
    name: bytes
    """The end of the word as written, so that `PASSWORD` is told from `password`."""
    after: bytes
    """The few bytes that follow the value."""


Judge = Callable[[Found], bool]


def _ends(open_quote: bytes | None) -> re.Pattern[bytes]:
    if not open_quote:
        return _UNQUOTED
    if open_quote[-1:] != b'"':
        return _IN_SINGLE_QUOTES
    return _IN_QUOTES if _bare(open_quote) else _IN_ESCAPED_QUOTES if len(open_quote) == 2 else _IN_DEEP_QUOTES


def _named(what: str, pattern: bytes, judge_value: Judge, gate: bytes = b"") -> Rule:
    replacement = label(what)

    def handle(body: bytes, low: bytes, match: Match) -> Span | None:
        return _value(body, low, match, judge_value, replacement)

    return Rule(re.compile(pattern + rb"(?=" + _AFTER + rb")"), handle, low=True, gate=gate)


def _value(body: bytes, low: bytes, match: Match, judge_value: Judge, replacement: bytes) -> Span | None:
    sign, close, quote, start = match["sign"], match["close"], match["open"], match.start("value")
    if not sign and (close or not _FLAGGED.search(low, max(0, match.start() - 40), match.start())):
        return None
    if _bare(quote) and not _bare(close) and body.lstrip()[:1] in (b"{", b"[", b'"'):
        return None  # this quote does not open a value: it ends the JSON string that the name stands in
    ends = _ends(quote)
    peek = _end(ends, low, start, start + _PEEK)
    before = low[max(0, match.start() - 14) : match.start()]
    found = Found(body[start:peek], bool(quote), sign, before, body[match.start() : match.end()], body[peek : peek + 8])
    if start == peek or not judge_value(found):
        return None
    if not quote and close and close.endswith(b'"') and _NUMBER.match(found.value):  # a number must become a string
        around = b'"' if _bare(close) else close
        replacement = around + replacement + around
    return start, _end(ends, low, start, len(low)), replacement


def _bare(quote: bytes | None) -> bool:
    """A double quote that JSON itself reads: the backslashes before it only escape one another."""
    return quote is not None and quote.endswith(b'"') and len(quote) % 2 == 1


def _end(ends: re.Pattern[bytes], text: bytes, start: int, limit: int) -> int:
    match = ends.match(text, start, limit)
    return match.end() if match else start


def a_password(found: Found) -> bool:
    if not judge.is_password(found.value) or judge.is_path(found.value):
        return False
    if found.quoted:
        return b" " not in found.value
    if judge.is_code(found.value) or found.after[:1] in (b"(", b"["):
        return False
    if not judge.is_word(found.value):
        return True
    if found.sign == b":":  # `password: hunter` on a line of its own; a type would be `str`, a class `Password`
        return found.value.islower() and len(found.value) >= 6 and bool(_LINE_END.match(found.after))
    return found.sign == b"=" and found.name.isupper()


def a_passphrase(found: Found) -> bool:
    return judge.is_password(found.value) and (found.quoted or a_password(found))


def a_phrase(found: Found) -> bool:
    return judge.is_phrase(found.value) if found.quoted and b" " in found.value else a_password(found)


def a_token(found: Found) -> bool:
    return found.after[:1] not in (b"(", b"[") and judge.looks_random(found.value)


def a_key(found: Found) -> bool:
    """`token`, or a key of those that are secret."""
    return (found.name[2:3] not in b"yY" or found.before.rstrip(b"_-. ").endswith(_KEYS)) and a_token(found)


_KEYS = (
    b"api", b"access", b"private", b"secret", b"encryption", b"signing", b"master", b"account", b"auth", b"shared",
    b"subscription", b"deploy", b"license", b"webhook", b"jwt", b"service", b"storage", b"hmac", b"aes", b"cipher",
)  # fmt: skip

_SCHEME = rb"(?:(?:bearer|basic|token|digest|apikey|bot)\s{1,4})"
_HEADER = re.compile(
    rb"z(?<=authoriz)ation(?=\\{0,7}[\"'`]?\s{0,4}(?:[:=]\s{0,4}\\{0,7}[\"'`]?" + _SCHEME + rb"?"
    rb"|,\s{0,4}\\{0,7}[\"'`]" + _SCHEME + rb")(?P<value>[a-z0-9._~+/=-]{8,4096}+)(?![(\[]))"
)
_AUTHORIZATION = label("authorization")


def _authorization(body: bytes, _low: bytes, match: Match) -> Span | None:
    start, end = match.span("value")
    value = body[start:end]
    if len(value) < 12 or _NUMBER.match(value) or judge.is_reference(value):
        return None
    if not judge.looks_random(value) and not value.endswith(b"="):
        return None
    return start, end, _AUTHORIZATION


NAMES = (
    _named("password", rb"w(?:(?<=passw)(?:or)?d|(?<=pw)d)", a_password),
    _named("secret", rb"secret", a_token),
    together(b"k", _named("key", rb"k(?:ey|(?<=tok)en)", a_key), COOKIES, WEBHOOK, then=b"eis"),
    together(b"h", _named("passphrase", rb"hrase(?<=passphrase)", a_phrase), BASIC, then=rb"r\\\"'`:="),
    Rule(_HEADER, _authorization, low=True, gate=b"z"),
)


def custom_name(name: str) -> Rule:
    """A name of the user's own: what is called so is a secret, whatever it looks like."""
    return _named("named", re.escape(name.lower().encode()), a_passphrase)
