"""A value that stands before its name: `please use … as the api key`."""

import re

from holdfast.redact import judge
from holdfast.redact.judge import Span

_AS_A = re.compile(rb"(?: in| here| there)? as (?:the |a |my |your |our )?(?:[\w.-]{1,30} ){0,4}$", re.IGNORECASE)
_USING = (
    b"use",
    b"set",
    b"store",
    b"save",
    b"keep",
    b"make",
    b"put",
    b"take",
    b"try",
    b"with",
    b"using",
    b"enter",
    b"choose",
)
_USED = re.compile(rb" [\"'`]?(?P<secret>[^\s\"'`]{6,300})[\"'`]?$")


def find_used(text: bytes, start: int, before: bytes) -> Span | None:
    """`please use … as the api key`: the value stands before the name."""
    match = _AS_A.search(before)
    if not match:
        return None
    end = start - len(before) + match.start()
    # The value has no space in it, so the last one stands before it.
    space = text.rfind(b" ", max(0, end - 304), end)
    if space < 0:
        return None
    used = _USED.match(text, space, end)
    if not text[max(0, space - 6) : space].lower().endswith(_USING) and not (
        used and judge.is_wild_password(used["secret"])
    ):
        return None
    return (*used.span("secret"), "password") if used and _is_used_password(used["secret"]) else None


def _is_used_password(value: bytes) -> bool:
    """`use OAuth2Client as the token source` names a class."""
    if judge.is_algorithm(value):
        return False
    return judge.is_mixed_password(value) and (not judge.is_camel_case(value) or value[-2:].isdigit())
