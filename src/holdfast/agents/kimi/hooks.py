"""Kimi Code, as version 2.1.0 behaves (docs/agents.md says how we know).

Its hooks stand in `config.toml`, which a person edits: nothing is installed there. Hooks of a subagent carry the id of
the session and no mark of their own: the feature `sessions` finds out whose they are, where that can be known.
"""

from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.normalise import one_path, true_or_none
from holdfast.agents.payload_reader import COMPACT, NOTE, OVER, Data, context_of, encode_reply, name, reason_of
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

CLIENT = "kimi_code"
"""How its name of the client begins."""

HOOKS = (
    Hook("SessionStart", "session.started", "start"),
    Hook("SessionEnd", "session.ended"),
    Hook("UserPromptSubmit", "prompt.submitted", "ask"),
    Hook("PreToolUse", "tool.started", "ask"),
    Hook("PostToolUse", "tool.finished"),
    Hook("PostToolUseFailure", "tool.failed"),
    Hook("PermissionRequest", "permission.requested"),
    Hook("Stop", "turn.ended", "ask"),
    Hook("StopFailure", "turn.failed"),
    Hook("Interrupt", "turn.interrupted"),
    Hook("SubagentStart", "subagent.started"),
    Hook("SubagentStop", "subagent.ended"),
    Hook("PreCompact", "compact.started"),
    Hook("PostCompact", "compact.ended"),
    Hook("Notification", "notification"),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("Write", "Edit"), "edit"),
    "Bash": "shell",
    "Read": "read",
    **dict.fromkeys(("Glob", "Grep"), "search"),
    **dict.fromkeys(("FetchURL", "WebSearch"), "web"),
    **dict.fromkeys(("Agent", "AgentSwarm", "TaskOutput", "TaskStop", "TaskList"), "agent"),
    "Skill": "skill",
    **dict.fromkeys(("EnterPlanMode", "ExitPlanMode"), "plan"),
    "TodoList": "todo",
    "AskUserQuestion": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "turn.ended": "retry",
}


def _prompt_text(value: Any) -> str | None:
    """A prompt comes as parts."""
    parts = value if isinstance(value, list) else [{"text": value}]
    texts = [part.get("text") for part in map(normalise.mapping_or_empty, parts[:100])]
    return payload_reader.prompt("\n".join(text for text in texts if isinstance(text, str)))


def _error_text(value: Any) -> str | None:
    return payload_reader.error(value if isinstance(value, str) else normalise.mapping_or_empty(value).get("message"))


def _add_result(data: Data, payload: Payload) -> None:
    data["ok"] = True
    payload_reader.add_output(data, payload.get("tool_output"))
    # Failures come as another event, PostToolUseFailure.
    if data["action"] == "shell":
        data["exit_code"] = 0


def _add_failure(data: Data, _payload: Payload) -> None:
    payload_reader.mark_failed(data, data.get("error"))


TOOL = (("call", "tool_call_id", name),)
# A subagent has a name only; it stands for both.
LANE = (("lane", "agent_name", name), ("lane_type", "agent_name", name))
WITH_TOOL = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"})
WITHOUT_LANE = WITH_TOOL | {"Stop", "StopFailure"}
TABLES = payload_reader.Tables(
    agent="kimi",
    kinds=KINDS,
    common=(("cwd", "cwd", one_path), ("model", "model", name)),
    fields={
        "SessionStart": (("source", "source", name),),
        "SessionEnd": OVER,
        "UserPromptSubmit": (("prompt", "prompt", _prompt_text),),
        "PreToolUse": TOOL,
        "PostToolUse": TOOL,
        "PostToolUseFailure": (*TOOL, ("error", "error", _error_text)),
        "PermissionRequest": TOOL,
        "Stop": (("again", "stop_hook_active", true_or_none),),
        "StopFailure": (("error", "error_message", payload_reader.error),),
        "SubagentStart": LANE,
        "SubagentStop": (*LANE, ("message", "response", payload_reader.message)),
        "PreCompact": COMPACT,
        "PostCompact": COMPACT,
        "Notification": NOTE,
    },
    with_tool=WITH_TOOL,
    tools=TOOLS,
    lane_untold=WITHOUT_LANE,
    extras={"PostToolUse": _add_result, "PostToolUseFailure": _add_failure},
)

REFUSES = frozenset({"PreToolUse", "UserPromptSubmit", "Stop"})


def write_reply(event: Event, decision: Decision) -> bytes:
    """One form of refusal for every event; a context is only taken with a prompt."""
    native = event.get("native")
    reply: dict[str, Any] = {}
    if decision.verdict == "deny" and native in REFUSES:
        refusal = {"permissionDecision": "deny", "permissionDecisionReason": reason_of(decision)}
        reply["hookSpecificOutput"] = {"hookEventName": native, **refusal}
    elif decision.contexts and native == "UserPromptSubmit":
        reply["message"] = context_of(decision.contexts)
    return encode_reply(reply)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    client = normalise.mapping_or_empty(payload).get("client_type")
    return isinstance(client, str) and client.startswith(CLIENT)
