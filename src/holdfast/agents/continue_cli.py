"""Continue CLI (`cn`), from the types in its package. Not verified: version 1.5.47 runs offline, but fires no hook."""

from functools import partial

from holdfast.agents import normal, payload_reader, shell_entry
from holdfast.agents.normal import one_path
from holdfast.agents.payload_reader import (
    COMPACT,
    FAILURE,
    LANE_ENDED,
    NOTE,
    OVER,
    PROMPT,
    STARTED,
    TOOL,
    Data,
    message,
    name,
)
from holdfast.core.agent import Agent, Enforcement, Hook, Payload, Setup
from holdfast.core.decision import Delivery

ASK_TIMEOUT = 15

HOOKS = (
    Hook("SessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("SessionEnd", "session.ended"),
    Hook("UserPromptSubmit", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("PreToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUseFailure", "tool.failed"),
    Hook("PermissionRequest", "permission.requested", "ask", timeout=ASK_TIMEOUT),
    Hook("Stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("SubagentStart", "subagent.started"),
    Hook("SubagentStop", "subagent.ended"),
    Hook("PreCompact", "compact.started"),
    Hook("Notification", "notification"),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("Write", "Edit", "MultiEdit"), "edit"),
    **dict.fromkeys(("Bash", "CheckBackgroundJob"), "shell"),
    "Read": "read",
    **dict.fromkeys(("List", "Search"), "search"),
    "Fetch": "web",
    "Subagent": "agent",
    "Skills": "skill",
    "Checklist": "todo",
    "AskQuestion": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "turn.ended": "retry",
}


def _add_result(data: Data, payload: Payload) -> None:
    data["ok"] = True
    payload_reader.add_output(data, payload.get("tool_response"))


def _add_failure(data: Data, payload: Payload) -> None:
    payload_reader.mark_failed(data, payload.get("error"))


TABLES = payload_reader.Tables(
    agent="continue",
    kinds=KINDS,
    common=(
        ("cwd", "cwd", one_path),
        ("lane", "agent_id", name),
        ("lane_type", "agent_type", name),
        ("mode", "permission_mode", name),
        ("model", "model", name),
    ),
    fields={
        "SessionStart": STARTED,
        "SessionEnd": OVER,
        "UserPromptSubmit": PROMPT,
        "PreToolUse": TOOL,
        "PostToolUse": TOOL,
        "PostToolUseFailure": FAILURE,
        # Its mark of a refused stop is always set, so it says nothing.
        "Stop": (("message", "last_assistant_message", message),),
        "SubagentStop": LANE_ENDED,
        "PreCompact": COMPACT,
        "Notification": NOTE,
    },
    with_tool=frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"}),
    tools=TOOLS,
    project=lambda delivery, _payload: one_path(delivery.env.get("CLAUDE_PROJECT_DIR")),
    extras={"PostToolUse": _add_result, "PostToolUseFailure": _add_failure},
)

ANSWERS = payload_reader.Answers(
    context=frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    block=frozenset({"UserPromptSubmit", "Stop"}),
    permission=frozenset({"PermissionRequest"}),
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    """As Claude Code's, with an empty path of the transcript. What comes over HTTP has that too, but no mode."""
    fields = normal.mapping_or_empty(payload)
    event = fields.get("hook_event_name")
    named = isinstance(fields.get("session_id"), str) and isinstance(event, str) and event in KINDS
    in_mode = "permission_mode" in fields and "timestamp" not in fields
    return named and fields.get("transcript_path") == "" and in_mode


SETUP = Setup(
    files={
        "user": ".continue/settings.json",
        "project": ".continue/settings.json",
        "local": ".continue/settings.local.json",
    },
    entry=shell_entry.entry_in_seconds,
    program="cn",
    folder=".continue",
)

CONTINUE = Agent(
    name="continue",
    title="Continue CLI",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=partial(payload_reader.write_reply, ANSWERS),
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_ids,
    setup=SETUP,
)
