"""Qwen Code, as version 0.24.4 behaves: Claude's events over Gemini's tools (docs/agents.md says how we know)."""

from holdfast.agents import normalise, payload_reader
from holdfast.agents.gemini import hooks as gemini
from holdfast.agents.normalise import number_or_none, one_path, true_or_none
from holdfast.agents.payload_reader import (  # fmt: skip
    COMPACT,
    ENDED,
    LANE_ENDED,
    NOTE,
    OVER,
    PROMPT,
    STARTED,
    Data,
    error,
    message,
    name,
)
from holdfast.core.agent import Enforcement, Hook, Payload
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
    Hook("PermissionDenied", "permission.denied"),
    Hook("Stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("StopFailure", "turn.failed"),
    Hook("SubagentStart", "subagent.started"),
    Hook("SubagentStop", "subagent.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("PreCompact", "compact.started"),
    Hook("PostCompact", "compact.ended"),
    Hook("Notification", "notification"),
    # Once for every call and not for every batch: the ends of the calls say it all.
    Hook("PostToolBatch", "tool.batch", register=False),
    Hook("InstructionsLoaded", "instructions.loaded", register=False),
    Hook("MessageDisplay", "message.displayed", register=False),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **gemini.TOOLS,
    **dict.fromkeys(("agent", "task"), "agent"),
    "skill": "skill",
    "todo_write": "todo",
    **dict.fromkeys(("notebook_edit",), "edit"),
    **dict.fromkeys(("web_search", "web_fetch"), "web"),
    "ask_user_question": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "turn.ended": "retry",
}

TOOL = (("call", "tool_use_id", name), ("ms", "duration_ms", number_or_none))


def _add_result(data: Data, payload: Payload) -> None:
    response = normalise.mapping_or_empty(payload.get("tool_response"))
    payload_reader.add_output(data, response.get("llmContent"))
    # Qwen tells of failed tools by another event, PostToolUseFailure.
    data["ok"] = True
    if data["action"] == "shell" and (code := gemini.exit_code_in(response.get("llmContent"))) is not None:
        data["exit_code"] = code


def _add_failure(data: Data, payload: Payload) -> None:
    data["ok"] = False
    if data["action"] == "shell" and (code := gemini.exit_code_in(payload.get("error"))) is not None:
        data["exit_code"] = code


def _event_kind(kind: str, data: Data) -> str:
    """After every batch of tools a prompt comes without a word in it: it tells that the batch is over."""
    return "tool.batch" if kind == "prompt.submitted" and data.get("synthetic") and not data.get("prompt") else kind


TABLES = payload_reader.Tables(
    agent="qwen",
    kinds=KINDS,
    common=(
        ("cwd", "cwd", one_path),
        ("lane", "agent_id", name),
        ("lane_type", "agent_type", name),
        ("turn", "prompt_id", name),
        ("transcript", "transcript_path", one_path),
        ("mode", "permission_mode", name),
        ("model", "model", name),
    ),
    fields={
        "SessionStart": STARTED,
        "SessionEnd": OVER,
        "UserPromptSubmit": PROMPT,
        "PreToolUse": TOOL,
        "PostToolUse": TOOL,
        "PostToolUseFailure": (*TOOL, ("error", "error", error), ("interrupted", "is_interrupt", true_or_none)),
        "PermissionRequest": TOOL,
        "PermissionDenied": (*TOOL, ("reason", "reason", error)),
        "Stop": ENDED,
        "StopFailure": (("error", "error", error),),
        "SubagentStop": LANE_ENDED,
        "PreCompact": COMPACT,
        "PostCompact": COMPACT,
        "Notification": NOTE,
        "InstructionsLoaded": (("path", "file_path", one_path), ("reason", "load_reason", name)),
        "MessageDisplay": (("message", "displayed_text", message), ("final", "is_final", true_or_none)),
    },
    with_tool=frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"}),
    tools=TOOLS,
    project=lambda delivery, _payload: one_path(delivery.env.get("QWEN_PROJECT_DIR")),
    extras={
        "PostToolUse": _add_result,
        "PostToolUseFailure": _add_failure,
        "UserPromptSubmit": payload_reader.take_out,
    },
    kind_of=_event_kind,
)

ANSWERS = payload_reader.Answers(
    context=frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    block=frozenset({"UserPromptSubmit", "Stop", "SubagentStop"}),
    permission=frozenset({"PermissionRequest"}),
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = normalise.mapping_or_empty(payload)
    texts = ("session_id", "hook_event_name", "transcript_path", "timestamp", "permission_mode")
    return all(isinstance(fields.get(key), str) for key in texts) and "conversation_id" not in fields
