"""GitHub Copilot CLI, as version 1.0.102 behaves (docs/agents.md says how we know).

How an event's name is spelt in the settings selects the payload: `preToolUse` gets `toolName`, `PreToolUse` (also in
Claude's settings file, which it runs too) gets `tool_name`. Both are read, and both are the same happening.
"""

import re
from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.normalise import one_path, true_or_none
from holdfast.agents.payload_reader import (
    OVER,
    PROMPT,
    STARTED,
    Data,
    Fields,
    context_of,
    encode_reply,
    error,
    message,
    name,
    reason_of,
)
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

ASK_TIMEOUT = 15

HOOKS = (
    Hook("sessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("sessionEnd", "session.ended"),
    Hook("userPromptSubmitted", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("preToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("postToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("postToolUseFailure", "tool.failed"),
    Hook("agentStop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("errorOccurred", "turn.failed"),
    Hook("subagentStart", "subagent.started"),
    Hook("subagentStop", "subagent.ended"),
    Hook("preCompact", "compact.started"),
    Hook("notification", "notification"),
    # It comes even when everything is allowed, so it does not tell that anybody is asked.
    Hook("permissionRequest", "permission.requested", register=False),
    Hook("userPromptTransformed", "prompt.expanded", register=False),
)
PASCAL = {
    "SessionStart": "sessionStart",
    "SessionEnd": "sessionEnd",
    "UserPromptSubmit": "userPromptSubmitted",
    "PreToolUse": "preToolUse",
    "PostToolUse": "postToolUse",
    "PostToolUseFailure": "postToolUseFailure",
    "Stop": "agentStop",
    "ErrorOccurred": "errorOccurred",
    "SubagentStart": "subagentStart",
    "SubagentStop": "subagentStop",
    "PreCompact": "preCompact",
    "Notification": "notification",
    "PermissionRequest": "permissionRequest",
}
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("create", "edit", "str_replace_editor", "apply_patch", "Write", "Edit"), "edit"),
    **dict.fromkeys(
        ("bash", "read_bash", "write_bash", "stop_bash", "list_bash", "powershell", "Bash", "PowerShell"), "shell"
    ),
    **dict.fromkeys(("view", "show_file", "Read"), "read"),
    **dict.fromkeys(("grep", "rg", "glob", "Grep", "Glob"), "search"),
    **dict.fromkeys(("web_fetch", "web_search", "WebFetch", "WebSearch"), "web"),
    **dict.fromkeys(("task", "read_agent", "list_agents", "Task", "Agent"), "agent"),
    **dict.fromkeys(("skill", "Skill"), "skill"),
    **dict.fromkeys(("update_todo", "sql", "TodoWrite"), "todo"),
    **dict.fromkeys(("exit_plan_mode", "ExitPlanMode"), "plan"),
    **dict.fromkeys(("ask_user", "AskUserQuestion"), "ask"),
}

ENFORCES: dict[str, Enforcement] = {"tool.started": "prevent", "turn.ended": "retry"}

STATUS_LINE = re.compile(r"^<(?:shellId: [^<>\n]{1,100} completed|exited) with exit code (\d{1,3})>\s*\Z", re.MULTILINE)
"""Stands behind the output of a command that ran to its end; without the shell's id in older versions."""

SAME_FIELDS = {
    "session_id": "sessionId", "agent_id": "agentId", "agent_type": "agentType", "parent_agent_id": "parentAgentId",
    "transcript_path": "transcriptPath", "tool_name": "toolName", "tool_input": "toolArgs", "toolInput": "toolArgs",
    "tool_result": "toolResult", "initial_prompt": "initialPrompt", "stop_reason": "stopReason",
    "custom_instructions": "customInstructions", "error_context": "errorContext",
}  # fmt: skip
"""The other spelling of a field → the one that is read."""


def _one_spelling(payload: Payload) -> Payload:
    return {SAME_FIELDS.get(key, key): value for key, value in payload.items()}


def _native_event_name(delivery: Delivery, payload: Payload) -> Any:
    """A payload in camelCase does not name its event; then the registration has to."""
    event_name = payload.get("hookName") or payload.get("hook_event_name") or delivery.event
    return PASCAL.get(event_name, event_name) if isinstance(event_name, str) else event_name


def _session_id_of(payload: Payload) -> Any:
    """Inside a subagent the id is the subagent's, and the parent is the session."""
    parent = payload.get("parentAgentId")
    return parent if isinstance(parent, str) and parent else payload.get("sessionId")


def _error_text(value: Any) -> str | None:
    return error(normalise.mapping_or_empty(value).get("message") if not isinstance(value, str) else value)


def _add_result(data: Data, payload: Payload) -> None:
    """A failing command is a success with an exit code in its text."""
    result = normalise.mapping_or_empty(payload.get("toolResult"))
    kind = result.get("resultType", result.get("result_type"))
    output = result.get("textResultForLlm", result.get("text_result_for_llm"))
    data["ok"] = kind != "failure"
    payload_reader.add_output(data, output)
    code = normalise.exit_code_at_end(output, STATUS_LINE) if data["action"] == "shell" else None
    if code is not None:
        data["exit_code"], data["ok"] = code, code == 0


def _add_failure(data: Data, payload: Payload) -> None:
    payload_reader.mark_failed(data, payload.get("error"))


def _first_prompt(data: Data, _payload: Payload) -> None:
    # What Copilot calls `new` is `startup` in other agents.
    if data.get("source") == "new":
        data["source"] = "startup"


_ENDED: Fields = (
    ("again", "stop_hook_active", true_or_none),
    ("message", "response", message),
    ("why", "stopReason", name),
)

TABLES = payload_reader.Tables(
    agent="copilot",
    kinds=KINDS,
    common=(
        ("cwd", "cwd", one_path),
        ("lane", "agentId", name),
        ("lane_type", "agentType", name),
        ("transcript", "transcriptPath", one_path),
    ),
    fields={
        "sessionStart": STARTED,
        "sessionEnd": OVER,
        "userPromptSubmitted": PROMPT,
        "userPromptTransformed": (("prompt", "prompt", payload_reader.prompt),),
        "postToolUseFailure": (("error", "error", _error_text),),
        "agentStop": _ENDED,
        "subagentStop": _ENDED,
        "errorOccurred": (("error", "error", _error_text), ("where", "errorContext", name)),
        "preCompact": (("trigger", "trigger", name), ("instructions", "customInstructions", message)),
        "notification": payload_reader.NOTE,
    },
    with_tool=frozenset({"preToolUse", "postToolUse", "postToolUseFailure", "permissionRequest"}),
    tools=TOOLS,
    tool_name="toolName",
    tool_input="toolArgs",
    session=_session_id_of,
    native=_native_event_name,
    extras={
        "postToolUse": _add_result,
        "postToolUseFailure": _add_failure,
        "sessionStart": _first_prompt,
        "userPromptSubmitted": payload_reader.take_out,
    },
)


def read_event(delivery: Delivery, payload: Payload) -> Event:
    return payload_reader.read_agent_event(
        TABLES, delivery, _one_spelling(payload) if isinstance(payload, dict) else payload
    )


TAKES_CONTEXT = frozenset({"sessionStart", "userPromptSubmitted", "postToolUse"})


def write_reply(event: Event, decision: Decision) -> bytes:
    native = event.get("native")
    reply: dict[str, Any] = {}
    if native == "preToolUse" and decision.verdict in ("deny", "ask", "allow"):
        reply = {"permissionDecision": decision.verdict, "permissionDecisionReason": reason_of(decision)}
    if native == "agentStop" and decision.verdict == "deny":
        reply = {"decision": "block", "reason": payload_reader.spoken_reason(decision)}
    if native in TAKES_CONTEXT and decision.contexts:
        reply["additionalContext"] = context_of(decision.contexts)
    return encode_reply(reply)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = normalise.mapping_or_empty(payload)
    # Cursor names a conversation.
    if "conversation_id" in fields:
        return False
    if isinstance(fields.get("sessionId"), str):
        return "timestamp" in fields
    event = fields.get("hook_event_name")
    pascal = isinstance(fields.get("session_id"), str) and isinstance(event, str) and event in PASCAL
    transcript = fields.get("transcript_path")
    # Copilot's own transcript is called events.jsonl.
    elsewhere = isinstance(transcript, str) and not transcript.endswith("/events.jsonl")
    return pascal and isinstance(fields.get("timestamp"), str) and not elsewhere


def event_mark(event: Event, payload: Payload) -> str:
    """Milliseconds since 1970 in one spelling, ISO in the other; it is made once for all hooks of an event."""
    stamp = payload.get("timestamp")
    if isinstance(stamp, str):
        stamp = normalise.milliseconds_of(stamp)
    if not isinstance(stamp, int):
        return ""
    data = event.data
    # Only what both spellings of the payload carry, or one happening would get two marks.
    about = {key: data[key] for key in ("input", "prompt", "error", "message") if key in data}
    return f"@{stamp}{payload_reader.facts_checksum(about)}"
