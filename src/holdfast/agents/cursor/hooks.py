"""Cursor, from its documentation and from captures others published: we could not run it (docs/agents.md)."""

from typing import Any

import msgspec

from holdfast.agents import normalise, payload_reader
from holdfast.agents.normalise import number_or_none, one_path, true_or_none
from holdfast.agents.payload_reader import (
    OVER,
    PROMPT,
    Data,
    context_of,
    encode_reply,
    error,
    message,
    name,
    notice_of,
    reason_of,
)
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

ASK_TIMEOUT = 15

HOOKS = (
    Hook("sessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("sessionEnd", "session.ended"),
    Hook("beforeSubmitPrompt", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("preToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("postToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("postToolUseFailure", "tool.failed"),
    Hook("stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("subagentStart", "subagent.started"),
    Hook("subagentStop", "subagent.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("preCompact", "compact.started"),
    # The same tools once more, each under a name of its own: registering both would tell everything twice.
    Hook("beforeShellExecution", "tool.started", register=False),
    Hook("afterShellExecution", "tool.finished", register=False),
    Hook("beforeMCPExecution", "tool.started", register=False),
    Hook("afterMCPExecution", "tool.finished", register=False),
    Hook("beforeReadFile", "tool.started", register=False),
    Hook("afterFileEdit", "tool.finished", register=False),
    Hook("afterAgentResponse", "message.displayed", register=False),
    Hook("afterAgentThought", "message.displayed", register=False),
    Hook("workspaceOpen", "setup.ran", register=False),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("Write", "Delete", "StrReplace", "EditNotebook", "ApplyPatch"), "edit"),
    "Shell": "shell",
    **dict.fromkeys(("Read", "ReadLints"), "read"),
    **dict.fromkeys(("Grep", "Glob", "LS", "SemanticSearch"), "search"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
    "Task": "agent",
    "Skill": "skill",
    "TodoWrite": "todo",
    "AskQuestion": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "turn.ended": "retry",
    "subagent.ended": "retry",
}


def _add_result(data: Data, payload: Payload) -> None:
    output = payload.get("tool_output")
    try:
        result = (
            normalise.mapping_or_empty(msgspec.json.decode(output))
            if isinstance(output, str)
            else normalise.mapping_or_empty(output)
        )
    except (msgspec.DecodeError, UnicodeEncodeError):
        result = {}
    code = number_or_none(result.get("exitCode"))
    data["ok"] = not code
    payload_reader.add_output(data, result.get("output") if isinstance(result.get("output"), str) else output)
    if data["action"] == "shell" and isinstance(code, int):
        data["exit_code"] = code


def _add_failure(data: Data, payload: Payload) -> None:
    payload_reader.mark_failed(data, payload.get("error_message"))


def _mark_repeated_stop(data: Data, payload: Payload) -> None:
    """`again` in other agents; here the stops that were refused are counted."""
    if number_or_none(payload.get("loop_count")):
        data["again"] = True


def _add_stop_status(data: Data, payload: Payload) -> None:
    _mark_repeated_stop(data, payload)
    if payload.get("status") == "aborted":
        data["interrupted"] = True


def _event_kind(kind: str, data: Data) -> str:
    return "turn.interrupted" if kind == "turn.ended" and data.get("interrupted") else kind


TOOL = (("call", "tool_use_id", name), ("ms", "duration", number_or_none))
NATIVE_TOOL = (("command", "command", normalise.text_cleaner(normalise.COMMAND)), ("path", "file_path", one_path))

TABLES = payload_reader.Tables(
    agent="cursor",
    kinds=KINDS,
    common=(
        ("cwd", "cwd", one_path),
        ("turn", "generation_id", name),
        ("transcript", "transcript_path", one_path),
        ("model", "model", name),
    ),
    fields={
        "sessionStart": (("mode", "composer_mode", name),),
        "sessionEnd": OVER,
        "beforeSubmitPrompt": PROMPT,
        "preToolUse": TOOL,
        "postToolUse": TOOL,
        "postToolUseFailure": (*TOOL, ("error", "error_message", error), ("interrupted", "is_interrupt", true_or_none)),
        "stop": (("status", "status", name),),
        "subagentStart": (("lane", "subagent_id", name), ("lane_type", "subagent_type", name)),
        "subagentStop": (
            ("lane", "subagent_id", name),
            ("lane_type", "subagent_type", name),
            ("message", "summary", message),
            ("lane_transcript", "agent_transcript_path", one_path),
        ),
        "preCompact": (("trigger", "trigger", name),),
        "beforeShellExecution": NATIVE_TOOL,
        "afterShellExecution": NATIVE_TOOL,
        "beforeReadFile": NATIVE_TOOL,
        "afterFileEdit": NATIVE_TOOL,
        "afterAgentResponse": (("message", "text", message),),
    },
    with_tool=frozenset({"preToolUse", "postToolUse", "postToolUseFailure"}),
    tools=TOOLS,
    session=lambda payload: payload.get("conversation_id") or payload.get("session_id"),
    project=lambda _delivery, payload: _workspace_root(payload),
    extras={
        "postToolUse": _add_result,
        "postToolUseFailure": _add_failure,
        "stop": _add_stop_status,
        "subagentStop": _mark_repeated_stop,
    },
    kind_of=_event_kind,
)


def _workspace_root(payload: Payload) -> str | None:
    roots = payload.get("workspace_roots")
    return one_path(roots[0]) if isinstance(roots, list) and roots else None


def read_event(delivery: Delivery, payload: Payload) -> Event:
    """A user's hooks run in `~/.cursor`, so the folder of the hook says nothing; the workspace does."""
    if isinstance(payload, dict) and not payload.get("cwd") and (root := _workspace_root(payload)):
        payload = {**payload, "cwd": root}
    return payload_reader.read_agent_event(TABLES, delivery, payload)


def write_reply(event: Event, decision: Decision) -> bytes:
    native = event.get("native")
    reply: dict[str, Any] = {}
    if native == "preToolUse" and decision.verdict in ("deny", "ask", "allow"):
        reply["permission"] = decision.verdict
        if decision.verdict != "allow":
            reply |= {"user_message": reason_of(decision), "agent_message": reason_of(decision)}
    if native == "beforeSubmitPrompt" and decision.verdict == "deny":
        reply |= {"continue": False, "user_message": reason_of(decision)}
    # The person stopped this turn: a follow-up message would start it again.
    if native in ("stop", "subagentStop") and decision.verdict == "deny" and event.kind != "turn.interrupted":
        reply["followup_message"] = reason_of(decision)
    if native in ("sessionStart", "postToolUse") and decision.contexts:
        reply["additional_context"] = context_of(decision.contexts)
    # A refusal's reason stands there already and must not be replaced.
    if native in ("preToolUse", "beforeSubmitPrompt") and decision.notices and "user_message" not in reply:
        reply["user_message"] = notice_of(decision)
    return encode_reply(reply)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = normalise.mapping_or_empty(payload)
    return "cursor_version" in fields or isinstance(fields.get("conversation_id"), str)
