"""The five endpoints of seed 004 (S4-2): its JSON becomes what the agent itself would have sent to a hook. Pure."""

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
NAMES = {"claude": "claude-code", "gemini": "gemini-cli"}
DEFAULT = "claude-code"
CURSOR, SPELLED_WITH_TIME = "cursor", ("gemini-cli", "qwen-code")

Call = tuple[str, str, str, dict[str, Any]]
"""(mode, agent, the agent's own event name, its payload)"""


def as_hook(endpoint: str, told: Mapping[str, Any], session: str, agents: Mapping[str, Agent], at: str) -> Call:
    """`session` is the id that was given, or the new one (S4-16); `at` is the time as agents write it."""
    kind = ENDPOINTS[endpoint]
    agent = agent_named(told.get("agent"), agents)
    hook = next((h for h in agent.hooks if h.kind == kind), None)
    if hook is None:
        agent = agents[DEFAULT]
        hook = next(h for h in agent.hooks if h.kind == kind)
    payload = {**_fields(told), **_signature(agent.name, session, at), "hook_event_name": hook.event}
    return hook.mode, agent.name, hook.event, payload


def agent_named(name: Any, agents: Mapping[str, Agent]) -> Agent:
    known = NAMES.get(str(name), str(name))
    return agents.get(known) or agents[DEFAULT]


def _fields(told: Mapping[str, Any]) -> dict[str, Any]:
    """The seed's own names, where they are not the agents'."""
    payload = {name: value for name, value in told.items() if name != "agent"}
    for theirs, ours in (
        ("tool_output", "tool_response"),
        ("project_root", "cwd"),
        ("response_summary", "last_assistant_message"),
        ("generation_id", "prompt_id"),
    ):
        if theirs in payload:
            payload.setdefault(ours, payload[theirs])
    return payload


def _signature(agent: str, session: str, at: str) -> dict[str, Any]:
    """What each agent's payloads are recognised by."""
    common = {"session_id": session}
    if agent == CURSOR:
        return {**common, "conversation_id": session}
    if agent in SPELLED_WITH_TIME:
        return {**common, "transcript_path": "", "timestamp": at}
    return {**common, "transcript_path": ""}
