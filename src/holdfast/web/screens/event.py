"""One event whole: what the tool was given, what it gave back, what it changed, and why Holdfast said what it said."""

from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.web.changes import changes
from holdfast.web.screen import Screen, Visit

HIDDEN = frozenset(("input", "output", "contexts", "reasons", "notices", "details", "prompt", "message", "error"))
LONG = ("prompt", "message", "error", "summary", "text")
QUIET = frozenset(("pid", "pid_start", "same", "transcript", "repo", "native", "client"))


def page(visit: Visit) -> dict[str, Any]:
    seq = visit.path["seq"]
    if not seq.isdecimal() or len(seq) > 16:
        raise CommandRefused(f"there is no event {seq[:40]!r}")
    event = visit.view("log.event", seq=int(seq))
    data, payload = event["data"], _payload(event["body"])
    tool_input = payload.get("tool_input") or data.get("input") or {}
    edits = changes(tool_input) or changes(data.get("input"))
    return {
        "event": event,
        "data": data,
        "given": _given(tool_input, bool(edits)),
        "changes": edits,
        "texts": [(name, data[name]) for name in LONG if isinstance(data.get(name), str) and data[name]],
        "facts": [(name, _short(value)) for name, value in data.items() if name not in HIDDEN | QUIET and value],
        "raw": msgspec.json.format(msgspec.json.encode(payload), indent=2).decode() if payload else event["body"],
    }


def _payload(body: str) -> dict[str, Any]:
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _given(tool_input: Any, edited: bool) -> list[tuple[str, str]]:
    """What a tool was given, as name and text. What the diff shows already is left out."""
    if not isinstance(tool_input, dict):
        return [("input", _short(tool_input))] if tool_input else []
    shown = ("old_string", "new_string", "content", "edits", "old_str", "new_str", "file_text", "patch")
    return [(str(name), _text(value)) for name, value in tool_input.items() if not (edited and name in shown)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _short(value: Any) -> str:
    return _text(value)[:600]


SCREEN = Screen(name="event", title="Event", path="/event/{seq}", page=page)
