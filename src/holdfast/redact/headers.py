"""Cookies, and logins in base64 as headers and registries write them."""

import base64
import binascii
import re

from holdfast.redact import judge
from holdfast.redact.rule import Span

Q = rb"\\{0,7}[\"'`]"
COOKIE_ANCHORS = ("ookie", "OOKIE")
BASIC_ANCHORS = ("asic ", "auth", "AUTH")
_PAIR = rb"[A-Za-z0-9!#$%&*+.^_|~-]{1,100}=[^\s\"'`\\;,<>{}()\[\]\x1e\x1f]{0,4096}"
_COOKIES = re.compile(
    rb"(?i:ookies?)(?:"
    + Q
    + rb")?(?:\s{0,4}[:=,\x1e]\s{0,4}|\s{1,4})(?:"
    + Q
    + rb")?(?P<cookies>"
    + _PAIR
    + rb"(?:;\s?"
    + _PAIR
    + rb"){0,60})"
)
_ONE = re.compile(rb"([^=;\s]+)=([^;\s\x1f]*)")
_OF_A_SESSION = re.compile(rb"(?i)sess|sid|auth|token|csrf|xsrf|login|remember|jwt|key|secret|pass")
_BASIC = re.compile(
    rb"(?:asic\s{1,4}|(?<![A-Za-z0-9])(?i:auth)(?:"
    + Q
    + rb"\s{0,4})?[:=\x1e]\s{0,4}(?:"
    + Q
    + rb")?(?:Basic\s)?)(?P<basic>[A-Za-z0-9+/_-]{6,4096}={0,2})"
)


def find_cookies(text: bytes, start: int, _end: int, _raw: bool) -> list[Span]:
    match = _COOKIES.match(text, start)
    if not match:
        return []
    pairs = _ONE.finditer(text, *match.span("cookies"))
    return [(*one.span(2), "cookie") for one in pairs if _is_secret_cookie(one[1], one[2])]


def _is_secret_cookie(name: bytes, value: bytes) -> bool:
    if judge.looks_random(value) and len(value) >= 12:
        return True
    said = len(value) >= 8 and not judge.is_word(value) and not judge.is_reference(value) and not judge.is_code(value)
    return said and bool(_OF_A_SESSION.search(name)) and not value.isdigit()


def find_basic_login(text: bytes, start: int, _end: int, _raw: bool) -> Span | None:
    match = _BASIC.match(text, start)
    if not match or not is_encoded_login(match["basic"]):
        return None
    return (*match.span("basic"), "authorization")


def is_encoded_login(value: bytes) -> bool:
    """Base64 of `name:password`."""
    try:
        name, colon, password = base64.b64decode(
            value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), altchars=None, validate=True
        ).partition(b":")
    except (binascii.Error, ValueError):
        return False
    return (
        bool(colon and name and password)
        and all(32 < byte < 127 for byte in name)
        and all(32 <= byte < 127 for byte in password)
    )
