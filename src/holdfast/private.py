"""`<private>…</private>` in a prompt is for the agent alone: it is taken out before anything is stored. Pure."""

import re
from typing import Any

import msgspec

SPOKEN = ("prompt", "user_prompt", "userPrompt", "command_args", "last_assistant_message", "prompt_response")
"""Only words between person and agent. What a tool is given stays whole: a gate must see all of a command."""
INSTEAD = "[private]"
_PRIVATE = re.compile(r"<\s*private\s*>.*?(?:<\s*/\s*private\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def without_private(body: bytes) -> bytes:
    """Never raises. A body that has none is the same bytes; one that nobody can read is stored with the words gone."""
    if not _mentioned(body):
        return body
    try:
        payload = msgspec.json.decode(body)
        if not isinstance(payload, dict):
            return body
        spoken = {name: _cut(payload[name]) for name in SPOKEN if name in payload}
        return body if all(payload[n] == v for n, v in spoken.items()) else msgspec.json.encode({**payload, **spoken})
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _PRIVATE_BYTES.sub(INSTEAD.encode(), body)


def _mentioned(body: bytes) -> bool:
    """By the rarest letter of the word: several times as fast as a pattern that ignores case."""
    return bool(_WITH_SMALL_V.search(body)) or (b"V" in body and bool(_WITH_LARGE_V.search(body)))


_WITH_SMALL_V = re.compile(rb"v(?<=[Pp][Rr][Ii]v)[Aa][Tt][Ee]")
_WITH_LARGE_V = re.compile(rb"V(?<=[Pp][Rr][Ii]V)[Aa][Tt][Ee]")
_PRIVATE_BYTES = re.compile(
    rb"(?:<|\\u003c)\s*private\s*(?:>|\\u003e).*?(?:(?:<|\\u003c)\s*\\?/\s*private\s*(?:>|\\u003e)|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return _PRIVATE.sub(INSTEAD, value)
    return [_cut(one) for one in value] if isinstance(value, list) else value
