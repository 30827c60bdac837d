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
    if b"private" not in body.lower():  # thirty times as fast as a pattern that ignores case
        return body
    try:
        payload = msgspec.json.decode(body)
        if not isinstance(payload, dict):
            return body
        spoken = {name: _cut(payload[name]) for name in SPOKEN if name in payload}
        return body if all(payload[n] == v for n, v in spoken.items()) else msgspec.json.encode({**payload, **spoken})
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _PRIVATE_BYTES.sub(INSTEAD.encode(), body)


_PRIVATE_BYTES = re.compile(
    rb"(?:<|\\u003c)\s*private\s*(?:>|\\u003e).*?(?:(?:<|\\u003c)\s*\\?/\s*private\s*(?:>|\\u003e)|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return _PRIVATE.sub(INSTEAD, value)
    return [_cut(one) for one in value] if isinstance(value, list) else value
