"""One event whole: what the tool was given, what it gave back, what it changed, and why Holdfast said what it said."""

from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.web.changes import list_changes
from holdfast.web.screen import Screen, Visit

HIDDEN = frozenset(("input", "output", "contexts", "reasons", "notices", "details", "prompt", "message", "error"))
LONG = ("prompt", "message", "error", "summary", "text")
QUIET = frozenset(("pid", "pid_start", "same", "transcript", "repo", "native", "client"))


def event_page(visit: Visit) -> dict[str, Any]:
    seq = visit.path["seq"]
    if not seq.isdecimal() or len(seq) > 16:
        raise CommandRefused(f"there is no event {seq[:40]!r}")
    event = visit.view("log.event", seq=int(seq))
    data, payload = event["data"], _decode_payload(event["body"])
    tool_input = payload.get("tool_input") or data.get("input") or {}
    edits = list_changes(tool_input) or list_changes(data.get("input"))
    return {
        "event": event,
        "data": data,
        "given": _input_fields(tool_input, bool(edits)),
        "changes": edits,
        "texts": [(name, data[name]) for name in LONG if isinstance(data.get(name), str) and data[name]],
        "facts": [(name, _short_text(value)) for name, value in data.items() if name not in HIDDEN | QUIET and value],
        "raw": msgspec.json.format(msgspec.json.encode(payload), indent=2).decode() if payload else event["body"],
    }


def _decode_payload(body: str) -> dict[str, Any]:
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _input_fields(tool_input: Any, edited: bool) -> list[tuple[str, str]]:
    """What a tool was given, as name and text. What the diff shows already is left out."""
    if not isinstance(tool_input, dict):
        return [("input", _short_text(tool_input))] if tool_input else []
    shown = ("old_string", "new_string", "content", "edits", "old_str", "new_str", "file_text", "patch")
    return [(str(name), _as_text(value)) for name, value in tool_input.items() if not (edited and name in shown)]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _short_text(value: Any) -> str:
    return _as_text(value)[:600]


SCREEN = Screen(name="event", title="Event", path="/event/{seq}", page=event_page)
