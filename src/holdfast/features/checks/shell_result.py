"""What is known of a finished shell call: its command, exit status and output, as whole as the event still has them."""

from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.agent_events import CUT_MARK


class ShellResult(msgspec.Struct, frozen=True):
    command: str
    exit_code: int | None
    stdout: str | None
    """None when the agent does not report it."""
    stderr: str | None = None
    why_unknown: str = ""
    """Why nothing can be said of how it ended."""


def read_shell_result(event: Event) -> ShellResult:
    data: ToolEndPayload = event.data
    stdout, stderr = _streams(event, data)
    code = None if data.interrupted or data.detached else data.exit_code
    return ShellResult(data.command, code, stdout, stderr, _why_unknown(data))


def _why_unknown(data: ToolEndPayload) -> str:
    if CUT_MARK in data.command:
        return "the command is longer than what is kept of it"
    if data.detached:
        return "it runs on in the background; how it ended is not known"
    if data.interrupted:
        return "it was interrupted"
    return ""


def _streams(event: Event, data: ToolEndPayload) -> tuple[str | None, str | None]:
    """The normalised output is cut after some thousand characters; the body has more of it."""
    text = data.output or data.error
    if text and CUT_MARK not in text:
        return text, None
    found = _from_body(event.body)
    return found if found != (None, None) else (text or None, None)


def _from_body(body: bytes) -> tuple[str | None, str | None]:
    try:
        payload: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None, None
    if not isinstance(payload, dict):
        return None, None
    response = payload.get("tool_response", payload.get("error"))
    if isinstance(response, str):  # An empty one is as often left out as empty.
        return response or None, None
    if not isinstance(response, dict):
        return None, None
    stdout, stderr = response.get("stdout"), response.get("stderr")
    return stdout if isinstance(stdout, str) else None, stderr if isinstance(stderr, str) else None
