"""Secrets that are named: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`, in plain or JSON-escaped text."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.core.redact import judge
from holdfast.core.redact.rule import Rule, Span, label

# What may follow the name's own word, as in `secret_access_key`, `password2`.
_TAIL = rb"(?:[_-]?(?:access|key|base|value|hash|string|b64|base64|prod|dev|test|staging|live|\d{1,2})){0,3}+"
_SIGN = rb"(?:=>|:=|[=!]?={1,2}|:(?!:))"
_TYPE = rb"(?::\s?[a-z_][a-z0-9_.\[\]|]{0,40}\s{0,3}(?==))?+"
# `"name": "DB_PASSWORD", "value": "…"` as in Kubernetes and in forms.
_VALUE_FIELD = rb",?(?:\s|\\n){0,20}+\\{0,3}[\"']?value\\{0,3}[\"']?\s{0,3}[:=]"
_FLAG = rb"\s(?![-=:])"
_AFTER = (
    _TAIL + rb"(?P<close>\\{0,7}[\"'`])?\s{0,8}+" + _TYPE +
    rb"(?P<sign>" + _VALUE_FIELD + rb"|" + _SIGN + rb"|" + _FLAG + rb")\s{0,8}+(?P<open>\\{0,7}[\"'`])?(?P<value>)"
)  # fmt: skip

# How far a value goes, by how it is quoted. No piece of these cuts an escape sequence in two.
_IN_QUOTES = re.compile(rb"(?:[^\"\\\r\n]|\\[^\r\n])*+")
_IN_ESCAPED_QUOTES = re.compile(rb"(?:[^\"\\\r\n]|\\\\(?:\\.|[^\"\\])?+|\\[tu/])*+")
_IN_DEEP_QUOTES = re.compile(rb"[^\"\\\r\n]*+")
_IN_SINGLE_QUOTES = re.compile(rb"(?:[^'\"`\\\r\n]|\\[\"\\/tu])*+")
_UNQUOTED = re.compile(rb"(?:[^\s\"'`\\,;&<>(){}\[\]|]|\\u[0-9a-f]{4})*+")
_NUMBER = re.compile(rb"-?\d[\d.eE+-]*+$")
_FLAGGED = re.compile(rb"--?[a-z0-9_-]*$")
_LINE_END = re.compile(rb"[ \t]*+(?:$|[\r\n\"]|\\[nr\"])")
_PEEK = 256


class Found(NamedTuple):
    """A name with a value after it."""

    value: bytes
    quoted: bool
    sign: bytes
    name: bytes
    """As written, so that `PASSWORD` is told from `password`."""
    after: bytes
    """The few bytes that follow the value."""


Judge = Callable[[Found], bool]


def _ends(open_quote: bytes | None) -> re.Pattern[bytes]:
    if not open_quote:
        return _UNQUOTED
    if open_quote[-1:] != b'"':
        return _IN_SINGLE_QUOTES
    return {1: _IN_QUOTES, 2: _IN_ESCAPED_QUOTES}.get(len(open_quote), _IN_DEEP_QUOTES)


def named(what: str, word: bytes, judge_value: Judge, before: tuple[bytes, ...] = ()) -> Rule:
    """`before`: what must stand in front of the word, as the `api` of `api_key`."""
    compiled, replacement = re.compile(re.escape(word) + rb"(?=" + _AFTER + rb")"), label(what)

    def search(body: bytes, low: bytes) -> Iterator[Span]:
        done = 0
        for match in compiled.finditer(low):
            if match.start() >= done and (span := _value(body, low, match, judge_value, before)):
                done = span[1]
                yield span[0], span[1], b'"' + replacement + b'"' if span[2] else replacement

    return Rule((word,), search)


def _value(
    body: bytes, low: bytes, match: re.Match[bytes], judge_value: Judge, before: tuple[bytes, ...]
) -> tuple[int, int, bool] | None:
    """(start, end, whether it is a bare JSON number, which must become a string)."""
    if before and not low[max(0, match.start() - 14) : match.start()].rstrip(b"_-. ").endswith(before):
        return None
    sign, quote, start = match["sign"], match["open"], match.start("value")
    if sign.isspace() and not (_FLAGGED.search(low, max(0, match.start() - 40), match.start()) and not match["close"]):
        return None
    ends = _ends(quote)
    peek = ends.match(low, start, start + _PEEK).end()  # type: ignore[union-attr]
    text = body[start:peek]
    found = Found(text, bool(quote), sign, body[match.start() : match.end()], body[peek : peek + 8])
    if not text or not judge_value(found):
        return None
    end = ends.match(low, start).end()  # type: ignore[union-attr]
    number = not quote and match["close"] == b'"' and bool(_NUMBER.match(text))
    return start, end, number


def a_password(found: Found) -> bool:
    if not judge.is_password(found.value) or judge.is_path(found.value):
        return False
    if found.quoted:
        return b" " not in found.value
    if judge.is_code(found.value) or found.after[:1] in (b"(", b"["):
        return False
    if not judge.is_word(found.value) or found.sign.isspace():
        return True
    if found.sign == b":":  # `password: hunter` on a line of its own; a type would be `str`, a class `Password`
        return found.value.islower() and len(found.value) >= 6 and bool(_LINE_END.match(found.after))
    return found.sign == b"=" and found.name.isupper()


def a_passphrase(found: Found) -> bool:
    return judge.is_password(found.value) and (found.quoted or a_password(found))


def a_token(found: Found) -> bool:
    return found.after[:1] not in (b"(", b"[") and judge.looks_random(found.value)


_HEADER = re.compile(
    rb"authorization(?=\\{0,7}[\"'`]?\s{0,4}[:=,]\s{0,4}\\{0,7}[\"'`]?"
    rb"(?:(?:bearer|basic|token|digest|apikey|bot)\s{1,4})?(?P<value>[a-z0-9._~+/=-]{8,4096}+)(?![(\[]))"
)
_HEADER_LABEL = label("authorization")


def _authorization(body: bytes, low: bytes) -> Iterator[Span]:
    for match in _HEADER.finditer(low):
        start, end = match.span("value")
        value = body[start:end]
        if len(value) >= 12 and not judge.is_reference(value) and (judge.looks_random(value) or value.endswith(b"=")):
            yield start, end, _HEADER_LABEL


_DOCKER = re.compile(rb"auth(?=\\{0,7}\"\s{0,8}:\s{0,8}\\{0,7}\"(?P<value>[a-z0-9+/=_-]{8,4096}+)\\{0,7}\")")


def _docker(_body: bytes, low: bytes) -> Iterator[Span]:
    for match in _DOCKER.finditer(low):
        yield *match.span("value"), _HEADER_LABEL


_KEYS = (
    b"api", b"access", b"private", b"secret", b"encryption", b"signing", b"master", b"account", b"auth", b"shared",
    b"subscription", b"deploy", b"license", b"webhook", b"jwt", b"service", b"storage", b"hmac", b"aes", b"cipher",
)  # fmt: skip

NAMES = (
    named("password", b"password", a_password),
    named("password", b"passwd", a_password),
    named("password", b"pwd", a_password),
    named("password", b"passphrase", a_passphrase),
    named("secret", b"secret", a_token),
    named("token", b"token", a_token),
    named("key", b"key", a_token, before=_KEYS),
    Rule((b"authorization",), _authorization),
    Rule((b"auths",), _docker),
)


def custom_name(name: str) -> Rule:
    """A name of the user's own: what is called so is a secret, whatever it looks like."""
    return named("named", name.lower().encode(), a_passphrase)
