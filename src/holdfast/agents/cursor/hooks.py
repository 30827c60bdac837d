"""What `agent.toml` cannot say of Cursor's hooks."""

from typing import Any

import msgspec

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.normalise import mapping_or_empty, number_or_none, one_path
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery


def _add_workspace(payload: Payload) -> Payload:
    """A user's hooks run in `~/.cursor`, so the folder of the hook says nothing; the workspace does."""
    roots = payload.get("workspace_roots")
    root = one_path(roots[0]) if isinstance(roots, list) and roots else None
    return {**payload, "workspace": root, "cwd": payload.get("cwd") or root}


def _decoded_output(output: Any) -> Any:
    try:
        return msgspec.json.decode(output) if isinstance(output, str) else output
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _add_result(data: Data, payload: Payload) -> None:
    output = payload.get("tool_output")
    result = mapping_or_empty(_decoded_output(output))
    code = number_or_none(result.get("exitCode"))
    data["ok"] = not code
    payload_reader.add_output(data, result.get("output") if isinstance(result.get("output"), str) else output)
    if data["action"] == "shell" and isinstance(code, int):
        data["exit_code"] = code


def _add_failure(data: Data, payload: Payload) -> None:
    payload_reader.mark_failed(data, payload.get("error_message"))


def _mark_repeated_stop(data: Data, payload: Payload) -> None:
    """Other agents have a flag; Cursor counts the refused stops."""
    if number_or_none(payload.get("loop_count")):
        data["again"] = True


def _add_stop_status(data: Data, payload: Payload) -> None:
    _mark_repeated_stop(data, payload)
    if payload.get("status") == "aborted":
        data["interrupted"] = True


def _event_kind(kind: str, data: Data) -> str:
    return "turn.interrupted" if kind == "turn.ended" and data.get("interrupted") else kind


TABLES = load_tables(
    __file__,
    prepare=_add_workspace,
    extras={
        "postToolUse": _add_result,
        "postToolUseFailure": _add_failure,
        "stop": _add_stop_status,
        "subagentStop": _mark_repeated_stop,
    },
    kind_of=_event_kind,
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = mapping_or_empty(payload)
    return "cursor_version" in fields or isinstance(fields.get("conversation_id"), str)


AGENT = make_agent(__package__, TABLES, recognise_payload)
