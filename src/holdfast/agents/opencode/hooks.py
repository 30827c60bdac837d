"""What `agent.toml` cannot say of opencode: its plugin's calls as payloads, and the plugin itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.normalise import mapping_or_empty, number_or_none
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery

PLUGIN = Path(__file__).with_name("plugin.js")
# The installer puts the hook's command behind this text of the plugin.
COMMAND = "const COMMAND = "
IN_A_LANE = {"session.started": "subagent.started", "turn.ended": "subagent.ended", "session.ended": "subagent.ended"}
"""A subagent is a session of its own to opencode; to us it is a lane of the session that began it."""


def _flatten(payload: Payload) -> dict[str, Any]:
    """The arguments of the plugin's functions, side by side."""
    given, returned = mapping_or_empty(payload.get("input")), mapping_or_empty(payload.get("output"))
    message, parent = mapping_or_empty(returned.get("message")), payload.get("parentID")
    child = isinstance(parent, str) and parent
    parts = returned.get("parts")
    return {
        **payload,
        "tool": given.get("tool"),
        # Before a tool its arguments are in the output, where plugins may change them; afterwards in the input.
        "args": returned.get("args") or given.get("args"),
        "call": given.get("callID"),
        "result": returned,
        "lane": payload.get("sessionID") if child else None,
        "sessionID": parent if child else payload.get("sessionID"),
        "turn": message.get("id"),
        "model": mapping_or_empty(message.get("model")).get("modelID"),
        "parts": parts if isinstance(parts, list) else None,
        # Outside of a git repository opencode names `/` as the worktree.
        "worktree": payload.get("worktree") if payload.get("worktree") != "/" else None,
    }


def _add_result(data: Data, payload: Payload) -> None:
    result = mapping_or_empty(payload.get("result"))
    code = number_or_none(mapping_or_empty(result.get("metadata")).get("exit"))
    data["ok"] = not code
    payload_reader.add_output(data, result.get("output"))
    if data["action"] == "shell" and isinstance(code, int):
        data["exit_code"] = code


def _add_failure(data: Data, _payload: Payload) -> None:
    data["ok"] = False


def _add_start_source(data: Data, payload: Payload) -> None:
    data["source"] = "startup" if payload.get("hook") == "session.created" else "resume"


def _mark_interrupted(data: Data, payload: Payload) -> None:
    if mapping_or_empty(payload.get("error")).get("name") == "MessageAbortedError":
        data["interrupted"] = True


def _event_kind(kind: str, data: Data) -> str:
    if kind == "turn.failed" and data.get("interrupted"):
        kind = "turn.interrupted"
    return IN_A_LANE.get(kind, kind) if data.get("lane") else kind


TABLES = load_tables(
    __file__,
    prepare=_flatten,
    extras={
        "chat.message": payload_reader.remove_own_words,
        "tool.execute.after": _add_result,
        "tool.error": _add_failure,
        "session.created": _add_start_source,
        "session.seen": _add_start_source,
        "session.error": _mark_interrupted,
    },
    kind_of=_event_kind,
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    return mapping_or_empty(payload).get("agent") == "opencode"


def _plugin_text(command: Sequence[str]) -> str:
    import json  # Here, because a daemon's start should not wait for it.

    before, _, after = PLUGIN.read_text().partition(f"{COMMAND}[]")
    return f"{before}{COMMAND}{json.dumps(list(command), ensure_ascii=False)}{after}"


AGENT = make_agent(__package__, TABLES, recognise_payload, text=_plugin_text)
