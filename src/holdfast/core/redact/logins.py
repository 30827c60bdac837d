"""Logins as headers, programs and their settings write them: cookies, `curl -u name:…`, a registry's `"auth"`."""

import base64
import binascii
import re

from holdfast.core.redact import judge
from holdfast.core.redact.rule import Match, Rule, Span, label, run

_QUOTE = rb"\\{0,7}[\"'`]"
_COOKIE = label("cookie")
_AUTHORIZATION = label("authorization")
_PASSWORD = label("password")

# ── Cookie: a=…; b=… ─────────────────────────────────────────────────────────────────────────────────────────────────

_PAIR = rb"[a-z0-9!#$%&*+.^_|~-]{1,100}+=[^\s\"'`\\;,<>{}()\[\]]{0,4096}+"
_COOKIES = re.compile(
    rb"k(?<=cook)ies?(?=(?:" + _QUOTE + rb")?(?:\s{0,4}[:=,]\s{0,4}|\s{1,4})(?:" + _QUOTE + rb")?"
    rb"(?P<cookies>" + _PAIR + rb"(?:;\s?" + _PAIR + rb"){0,100}))"
)  # fmt: skip
_ONE = re.compile(rb"([^=;\s]+)=([^;\s]*)")
_OF_A_SESSION = re.compile(rb"(?i)sess|sid|auth|token|csrf|xsrf|login|remember|jwt")


def _cookies(body: bytes, _low: bytes, match: Match) -> Span | None:
    """From the first value that is secret to the last: what lies between goes with them."""
    found = [one.span(2) for one in _ONE.finditer(body, *match.span("cookies")) if _is_secret_cookie(*one.groups())]
    return (found[0][0], found[-1][1], _COOKIE) if found else None


def _is_secret_cookie(name: bytes, value: bytes) -> bool:
    if judge.looks_random(value):
        return True
    said = len(value) >= 8 and not judge.is_word(value) and not judge.is_reference(value) and not judge.is_code(value)
    return said and bool(_OF_A_SESSION.search(name))


# ── "auth": "bmFtZTpwYXNzd29yZA==" ───────────────────────────────────────────────────────────────────────────────────

_BASIC = re.compile(
    rb"h(?<=auth)(?<![a-z0-9]auth)(?=(?:" + _QUOTE + rb"\s{0,4})?[:=]\s{0,4}(?:" + _QUOTE + rb")?"
    rb"(?P<basic>[a-z0-9+/]{6,2048}+={0,2}+))"
)  # fmt: skip


def _basic(body: bytes, _low: bytes, match: Match) -> Span | None:
    start, end = match.span("basic")
    try:
        name, colon, password = base64.b64decode(
            body[start:end] + b"=" * (-(end - start) % 4), validate=True
        ).partition(b":")
    except (binascii.Error, ValueError):
        return None
    plain = all(32 < byte < 127 for byte in name) and all(32 <= byte < 127 for byte in password)
    return (start, end, _AUTHORIZATION) if colon and name and password and plain else None


# ── curl -u name:password ────────────────────────────────────────────────────────────────────────────────────────────

_USER = re.compile(
    rb"-(?:u|-user)(?=(?:" + _QUOTE + rb",)?[\s=]{0,4}(?P<around>" + _QUOTE + rb")?[^\s\"'`\\:/$<{@]{1,100}+:(?P<password>))"
)  # fmt: skip
_ESCAPED = rb"\\(?:\\|u[0-9a-fA-F]{4})"
_BARE_END = re.compile(run(rb"[^\s\"'`\\<>|;&()]", _ESCAPED))
_QUOTED_END = re.compile(run(rb"[^\"'`\\\r\n]", _ESCAPED))
_NEXT_COMMAND = re.compile(rb"[\r\n;|]|\\[nr]|&&")
_COMMAND = 400


def _user(body: bytes, low: bytes, match: Match) -> Span | None:
    before = low[max(0, match.start() - _COMMAND) : match.start()]
    curl = before.rfind(b"curl")
    if curl < 0 or before[-1:].isalnum() or _NEXT_COMMAND.search(before, curl):
        return None
    start = match.start("password")
    ends = (_QUOTED_END if match["around"] else _BARE_END).match(body, start)
    end = ends.end() if ends else start
    value = body[start:end]
    return (start, end, _PASSWORD) if judge.is_password(value) and not judge.is_path(value) else None


COOKIES = Rule(_COOKIES, _cookies, low=True)
BASIC = Rule(_BASIC, _basic, low=True)
USER = Rule(_USER, _user)
