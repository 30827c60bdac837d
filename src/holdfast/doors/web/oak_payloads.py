"""Turns requests of seed 004's endpoints into hook deliveries."""

import hashlib
import socket
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import __version__
from holdfast.client import connect_socket
from holdfast.core.agent import Agent
from holdfast.core.errors import DaemonUnreachable
from holdfast.core.ids import delivery_key
from holdfast.daemon.ingest.frames import ANSWER, LENGTH, as_frame
from holdfast.paths import Paths

PATIENCE_S = 5.0


def forward_hook(paths: Paths, mode: str, agent: str, event: str, payload: dict[str, Any], once: str = "") -> bytes:
    """Return the reply after the commit. `once` makes a repeated request one event."""
    header = {
        # The same text gives the same key, and the log accepts a key once.
        "key": hashlib.sha256(once.encode()).hexdigest()[:32] if once else delivery_key(),
        "mode": mode,
        "agent": agent,
        "event": event,
        "at": str(time.time_ns() // 1_000_000),
        "cwd": payload["cwd"] if isinstance(payload.get("cwd"), str) else "",
        "state": str(paths.state),
        "client": __version__,
        "via": "http",
    }
    try:
        return _exchange_frame(paths, as_frame(header, msgspec.json.encode(payload)))
    except OSError as error:
        raise DaemonUnreachable(str(error), fix="Nothing was recorded; try again.") from error


def _exchange_frame(paths: Paths, frame: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_S)
        connect_socket(sock, paths.hook_socket)
        sock.sendall(frame)
        with sock.makefile("rb") as answer:
            head = answer.read(len(ANSWER) + LENGTH.size)
            if len(head) < len(ANSWER) + LENGTH.size or not head.startswith(ANSWER):
                raise OSError("it closed the connection")
            return answer.read(LENGTH.unpack(head[len(ANSWER) :])[0])


PREFIX = "/api/oak/ci"
ENDPOINTS = {
    "session-start": "session.started",
    "prompt-submit": "prompt.submitted",
    "post-tool-use": "tool.finished",
    "stop": "turn.ended",
    "session-end": "session.ended",
}
DEFAULT, PLAIN = "claude-code", "plain"
FIELDS = {
    "prompt": ("prompt",), "message": ("response_summary", "last_assistant_message"), "cwd": ("cwd", "project_root"),
    "transcript": ("transcript_path",), "call": ("tool_use_id", "call_id"), "turn": ("generation_id", "prompt_id"),
    "source": ("source",), "reason": ("reason",), "model": ("model",), "input": ("tool_input",), "error": ("error",),
}  # fmt: skip
"""Names used by the seed and the agents for each of our fields; the first present one counts."""

Call = tuple[str, str, str, dict[str, Any]]
"""(mode, the agent that reads the payload, its event name, the payload)"""


class UnknownAgent(ValueError):
    """No agent has this name; the message lists the known ones."""


def as_hook(endpoint: str, request_data: Mapping[str, Any], session: str, agents: Mapping[str, Agent]) -> Call:
    """`session` is the given id, or the new one (S4-16)."""
    kind = ENDPOINTS[endpoint]
    agent = agent_named(request_data.get("agent"), agents)
    hook = next((h for h in agent.hooks if h.kind == kind), None)
    payload = {
        "holdfast": 1, "agent": agent.name, "kind": kind, "session": session, "tool": request_data.get("tool_name"),
        "data": _hook_data(request_data, kind, agent),
    }  # fmt: skip
    return hook.mode if hook else "ask", PLAIN, hook.event if hook else endpoint, payload


def agent_named(name: Any, agents: Mapping[str, Agent]) -> Agent:
    """The seed's own scripts for Claude Code name none."""
    agent_name = DEFAULT if name is None else str(name)
    match = next((one for one in agents.values() if agent_name == one.name or agent_name in one.aliases), None)
    if match is None or not match.hooks:
        names = sorted(one for one, agent in agents.items() if agent.hooks)
        raise UnknownAgent(f"there is no agent {str(name)[:40]!r}; known: {', '.join(names)}")
    return match


def _hook_data(request_data: Mapping[str, Any], kind: str, agent: Agent) -> dict[str, Any]:
    data = {ours: value for ours, theirs in FIELDS.items() if (value := _first_value(request_data, theirs)) is not None}
    return {**data, **_tool_end(request_data, agent)} if kind == "tool.finished" else data


def _tool_end(request_data: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    tool_input = request_data.get("tool_input")
    shown = tool_input if isinstance(tool_input, Mapping) else {}
    tool = str(request_data.get("tool_name") or "")
    end: dict[str, Any] = {"action": agent.tools.get(tool) or ("mcp" if tool.startswith("mcp_") else "other")}
    end["output"] = _output_text(_first_value(request_data, ("tool_output", "tool_response")))
    if isinstance(success := request_data.get("success"), bool):
        end["ok"] = success
    if isinstance(command := shown.get("command"), str) and end["action"] == "shell":
        end["command"] = command
    if paths := [path for name in ("file_path", "path") if isinstance(path := shown.get(name), str)]:
        end["paths"] = paths
    return end


def _output_text(output: Any) -> str:
    """A tool's output: text, or the usual fields of an object."""
    if isinstance(output, Mapping):
        parts = (output.get(name) for name in ("stdout", "stderr", "output", "content", "text"))
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    return output if isinstance(output, str) else ""


def _first_value(request_data: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((request_data[name] for name in names if request_data.get(name) is not None), None)


def context_in(answer: Mapping[str, Any]) -> str:
    """The context in an answer, wherever this agent's format has it."""
    inner = answer.get("hookSpecificOutput")
    candidates = [inner.get("additionalContext")] if isinstance(inner, Mapping) else []
    candidates += [answer.get(name) for name in ("additionalContext", "additional_context", "context")]
    return next((text for text in candidates if isinstance(text, str)), "")
