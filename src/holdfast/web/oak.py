"""The five endpoints of seed 004 (S4-2): its JSON becomes the plain payload of a hook, under the agent it names. Pure."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.agent import Agent

PREFIX = "/api/oak/ci"
ENDPOINTS = {
    "session-start": "session.started",
    "prompt-submit": "prompt.submitted",
    "post-tool-use": "tool.finished",
    "stop": "turn.ended",
    "session-end": "session.ended",
}
ALIASES = {
    "claude": "claude-code", "gemini-cli": "gemini", "qwen-code": "qwen", "codex-cli": "codex",
    "github-copilot": "copilot", "copilot-cli": "copilot", "kimi-code": "kimi", "continue-cli": "continue",
}  # fmt: skip
"""Other names of agents that scripts use."""
DEFAULT, PLAIN = "claude-code", "plain"
FIELDS = {
    "prompt": ("prompt",), "message": ("response_summary", "last_assistant_message"), "cwd": ("cwd", "project_root"),
    "transcript": ("transcript_path",), "call": ("tool_use_id", "call_id"), "turn": ("generation_id", "prompt_id"),
    "source": ("source",), "reason": ("reason",), "model": ("model",), "input": ("tool_input",), "error": ("error",),
}  # fmt: skip
"""Our field → what the seed and the agents call it, the first that is there."""

Call = tuple[str, str, str, dict[str, Any]]
"""(mode, who reads the payload, the agent's own event name, the payload)"""


class UnknownAgent(ValueError):
    """No agent has this name. It says which there are."""


def as_hook(endpoint: str, told: Mapping[str, Any], session: str, agents: Mapping[str, Agent]) -> Call:
    """`session` is the id that was given, or the new one (S4-16)."""
    kind = ENDPOINTS[endpoint]
    agent = agent_named(told.get("agent"), agents)
    hook = next((h for h in agent.hooks if h.kind == kind), None)
    payload = {
        "holdfast": 1, "agent": agent.name, "kind": kind, "session": session, "tool": told.get("tool_name"),
        "data": _data(told, kind, agent),
    }  # fmt: skip
    return hook.mode if hook else "ask", PLAIN, hook.event if hook else endpoint, payload


def agent_named(name: Any, agents: Mapping[str, Agent]) -> Agent:
    """The seed's own scripts for Claude Code name none."""
    known = DEFAULT if name is None else ALIASES.get(str(name), str(name))
    found = agents.get(known)
    if found is None or not found.hooks:
        names = sorted(one for one, agent in agents.items() if agent.hooks)
        raise UnknownAgent(f"there is no agent {str(name)[:40]!r}; known: {', '.join(names)}")
    return found


def _data(told: Mapping[str, Any], kind: str, agent: Agent) -> dict[str, Any]:
    data = {ours: value for ours, theirs in FIELDS.items() if (value := _first(told, theirs)) is not None}
    return {**data, **_tool_end(told, agent)} if kind == "tool.finished" else data


def _tool_end(told: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    given = told.get("tool_input")
    shown = given if isinstance(given, Mapping) else {}
    tool = str(told.get("tool_name") or "")
    end: dict[str, Any] = {"action": agent.tools.get(tool) or ("mcp" if tool.startswith("mcp_") else "other")}
    end["output"] = _text(_first(told, ("tool_output", "tool_response")))
    if isinstance(success := told.get("success"), bool):
        end["ok"] = success
    if isinstance(command := shown.get("command"), str) and end["action"] == "shell":
        end["command"] = command
    if paths := [path for name in ("file_path", "path") if isinstance(path := shown.get(name), str)]:
        end["paths"] = paths
    return end


def _text(output: Any) -> str:
    """What a tool printed: text, or the usual fields of an object."""
    if isinstance(output, Mapping):
        parts = (output.get(name) for name in ("stdout", "stderr", "output", "content", "text"))
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    return output if isinstance(output, str) else ""


def _first(told: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((told[name] for name in names if told.get(name) is not None), None)


def context_in(answer: Mapping[str, Any]) -> str:
    """The context in an answer, wherever this agent's answers have it."""
    inner = answer.get("hookSpecificOutput")
    found = [inner.get("additionalContext")] if isinstance(inner, Mapping) else []
    found += [answer.get(name) for name in ("additionalContext", "additional_context", "context")]
    return next((text for text in found if isinstance(text, str)), "")
