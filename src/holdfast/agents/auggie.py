"""Augment's auggie, from its documentation and the code of version 0.36.0. Not verified: it runs only with a login."""

from functools import partial
from typing import Any

from holdfast.agents import normal, payload_reader, shell_entry
from holdfast.agents.normal import one_path
from holdfast.agents.payload_reader import Data, context_of, encode_reply, name, notice_of, reason_of
from holdfast.core.agent import Agent, Enforcement, Hook, Payload, Setup
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

ASK_TIMEOUT = 15

HOOKS = (
    Hook("SessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("SessionEnd", "session.ended"),
    Hook("PromptSubmit", "prompt.submitted", timeout=ASK_TIMEOUT),
    Hook("PreToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("Stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("Notification", "notification"),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("str-replace-editor", "save-file", "remove-files", "apply_patch"), "edit"),
    **dict.fromkeys(("launch-process", "read-process", "write-process", "kill-process"), "shell"),
    **dict.fromkeys(("view", "view-range-untruncated"), "read"),
    **dict.fromkeys(("grep-search", "codebase-retrieval", "search-untruncated"), "search"),
    **dict.fromkeys(("web-fetch", "web-search"), "web"),
    "sub-agent": "agent",
    **dict.fromkeys(("add_tasks", "update_tasks", "view_tasklist"), "todo"),
}

ENFORCES: dict[str, Enforcement] = {"tool.started": "prevent", "turn.ended": "retry", "tool.finished": "retry"}


def _project_root(_delivery: Delivery, payload: Payload) -> str | None:
    roots = payload.get("workspace_roots")
    return one_path(roots[0]) if isinstance(roots, list) and roots else None


def _add_result(data: Data, payload: Payload) -> None:
    problem = payload.get("tool_error")
    data["ok"] = not problem
    payload_reader.add_output(data, payload.get("tool_output"))
    if isinstance(problem, str) and problem:
        data["error"] = normal.cap_text(problem, normal.ERROR)


def _add_answer(data: Data, payload: Payload) -> None:
    """Told only where the settings ask for the conversation."""
    answer = payload_reader.message(normal.mapping_or_empty(payload.get("conversation")).get("agentTextResponse"))
    if answer:
        data["message"] = answer


def _event_kind(kind: str, data: Data) -> str:
    if kind == "turn.ended" and data.get("why") == "interrupted":
        return "turn.interrupted"
    return "tool.failed" if kind == "tool.finished" and data.get("ok") is False else kind


TABLES = payload_reader.Tables(
    agent="auggie",
    kinds=KINDS,
    common=(),
    fields={
        "PromptSubmit": (("prompt", "user_prompt", payload_reader.prompt),),
        "Stop": (("why", "agent_stop_cause", name),),
        "Notification": (
            ("message", "notification_message", payload_reader.message),
            ("topic", "notification_type", name),
        ),
    },
    with_tool=frozenset({"PreToolUse", "PostToolUse"}),
    tools=TOOLS,
    session=lambda payload: payload.get("conversation_id"),
    project=_project_root,
    extras={"PostToolUse": _add_result, "Stop": _add_answer},
    kind_of=_event_kind,
)

BLOCKS = frozenset({"PostToolUse", "Stop"})


def write_reply(event: Event, decision: Decision) -> bytes:
    """All that is said of an event stands below `hookSpecificOutput`, the refusal of a stop too."""
    native = event.get("native")
    specific: dict[str, Any] = {}
    if native == "PreToolUse" and decision.verdict in ("deny", "ask", "allow"):
        specific = {"permissionDecision": decision.verdict, "permissionDecisionReason": reason_of(decision)}
    if native in BLOCKS and decision.verdict == "deny":
        specific = {"decision": "block", "reason": reason_of(decision)}
    if native in ("SessionStart", "PostToolUse") and decision.contexts:
        specific["additionalContext"] = context_of(decision.contexts)
    reply: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": native, **specific}} if specific else {}
    if decision.notices and native in KINDS:
        reply["systemMessage"] = notice_of(decision)
    return encode_reply(reply)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    """Cursor has the same id of a conversation; its events begin with a small letter, and it names its version."""
    fields = normal.mapping_or_empty(payload)
    event = fields.get("hook_event_name")
    named = isinstance(fields.get("conversation_id"), str) and isinstance(event, str) and event in KINDS
    return named and "cursor_version" not in fields and "session_id" not in fields


SETUP = Setup(
    files={"user": ".augment/settings.json", "project": ".augment/settings.json"},
    entry=shell_entry.entry_in_milliseconds(),
    program="auggie",
    folder=".augment",
)

AUGGIE = Agent(
    name="auggie",
    title="Augment auggie",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=write_reply,
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    setup=SETUP,
)
