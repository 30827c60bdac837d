"""Gemini CLI, as version 0.61.0 behaves (docs/agents.md says how we know)."""

import itertools
from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.normalise import one_path, true_or_none
from holdfast.agents.payload_reader import (
    COMPACT,
    NOTE,
    OVER,
    PROMPT,
    STARTED,
    Data,
    context_of,
    encode_reply,
    message,
    notice_of,
    reason_of,
)
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

ASK_TIMEOUT = 15

HOOKS = (
    Hook("SessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("SessionEnd", "session.ended"),
    Hook("BeforeAgent", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("AfterAgent", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("BeforeTool", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("AfterTool", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("Notification", "notification"),
    # It fires with `auto` before every call of the model, whether or not anything is compressed.
    Hook("PreCompress", "compact.started", matcher="manual"),
    Hook("BeforeModel", "model.requested", register=False),
    Hook("AfterModel", "model.answered", register=False),
    Hook("BeforeToolSelection", "model.requested", register=False),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("write_file", "replace", "edit", "smart_edit"), "edit"),
    "run_shell_command": "shell",
    **dict.fromkeys(("read_file", "read_many_files"), "read"),
    **dict.fromkeys(("glob", "grep_search", "search_file_content", "list_directory"), "search"),
    **dict.fromkeys(("web_fetch", "google_web_search"), "web"),
    **dict.fromkeys(("invoke_agent", "delegate_to_agent", "codebase_investigator", "cli_help"), "agent"),
    "activate_skill": "skill",
    **dict.fromkeys(("enter_plan_mode", "exit_plan_mode"), "plan"),
    **dict.fromkeys(("write_todos", "tracker_create_task", "tracker_update_task"), "todo"),
    "ask_user": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "turn.ended": "retry",
    "tool.finished": "retry",
}


# Around a command's output stand tags, and behind it lines of Gemini's own.
WRAPPED = "<untrusted_context>\n"
OWN_LINES = ("Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")


def _add_result(data: Data, payload: Payload) -> None:
    """It fires for failing commands too, and says their exit code only in the text for the model."""
    response = normalise.mapping_or_empty(payload.get("tool_response"))
    problem = normalise.mapping_or_empty(response.get("error")).get("message") or response.get("error")
    data["ok"] = not problem
    output = response.get("llmContent")
    payload_reader.add_output(data, plain_output(output))
    if isinstance(problem, str) and problem:
        data["error"] = normalise.cap_text(problem, normalise.ERROR)
    if data["action"] == "shell" and (code := exit_code_in(output)) is not None:
        data["exit_code"], data["ok"] = code, code == 0


def plain_output(told: Any) -> Any:
    """What a command printed, without the tags and lines that Gemini puts around it for its model."""
    if not isinstance(told, str) or not told.startswith(WRAPPED):
        return told
    lines = told.removeprefix(WRAPPED).removesuffix("</untrusted_context>").strip().splitlines()
    while lines and lines[-1].startswith(OWN_LINES):
        lines.pop()
    text = "\n".join(lines).removeprefix("Output: ")
    return "" if text == "(empty)" else text


def exit_code_in(output: Any) -> int | None:
    """Behind the output stand lines of Gemini's own: one with the exit code unless it was 0, and at last the group's
    number, which only a command that ran to its end has."""
    if not isinstance(output, str):
        return None
    lines = output[-400:].removesuffix("</untrusted_context>").rstrip().splitlines()
    own = list(itertools.takewhile(lambda line: line.startswith(OWN_LINES), reversed(lines)))
    if exit_line := next((line for line in own if line.startswith("Exit Code: ")), None):
        return normalise.exit_code_in(exit_line)
    ended = bool(own) and own[0].startswith("Process Group PGID: ")
    return 0 if ended and not any(line.startswith(("Signal: ", "Error: ")) for line in own) else None


def _one_word(data: Data, _payload: Payload) -> None:
    """The same topic means the same in every agent."""
    if data.get("topic") == "ToolPermission":
        data["topic"] = "permission_prompt"


def _event_kind(kind: str, data: Data) -> str:
    # Comes through registrations without our matcher `manual`.
    return "model.requested" if kind == "compact.started" and data.get("trigger") == "auto" else kind


TABLES = payload_reader.Tables(
    agent="gemini",
    kinds=KINDS,
    common=(("cwd", "cwd", one_path), ("transcript", "transcript_path", one_path)),
    fields={
        "SessionStart": STARTED,
        "SessionEnd": OVER,
        "BeforeAgent": PROMPT,
        "AfterAgent": (("message", "prompt_response", message), ("again", "stop_hook_active", true_or_none)),
        "Notification": NOTE,
        "PreCompress": COMPACT,
    },
    with_tool=frozenset({"BeforeTool", "AfterTool"}),
    # Hooks of a subagent look like those of its session.
    lane_untold=frozenset({"BeforeTool", "AfterTool"}),
    tools=TOOLS,
    project=lambda delivery, _payload: one_path(delivery.env.get("GEMINI_PROJECT_DIR")),
    extras={"BeforeAgent": payload_reader.take_out, "AfterTool": _add_result, "Notification": _one_word},
    kind_of=_event_kind,
)

TAKES_CONTEXT = frozenset({"SessionStart", "BeforeAgent", "AfterTool"})
TAKES_DENIAL = frozenset({"BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"})


def write_reply(event: Event, decision: Decision) -> bytes:
    native = event.get("native")
    reply: dict[str, Any] = {}
    if decision.verdict == "deny" and native in TAKES_DENIAL:
        reason = payload_reader.spoken_reason(decision) if native == "AfterAgent" else reason_of(decision)
        reply = {"decision": "deny", "reason": reason}
    if decision.verdict == "ask" and native == "BeforeTool":
        reply = {"decision": "ask", "reason": reason_of(decision)}
    if decision.contexts and native in TAKES_CONTEXT:
        reply["hookSpecificOutput"] = {"hookEventName": native, "additionalContext": context_of(decision.contexts)}
    if decision.notices and native in TAKES_CONTEXT | TAKES_DENIAL:
        reply["systemMessage"] = notice_of(decision)
    return encode_reply(reply)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    """Qwen Code sends the same and a permission mode; Copilot names no transcript where the names are shared."""
    fields = normalise.mapping_or_empty(payload)
    texts = ("session_id", "hook_event_name", "transcript_path", "timestamp")
    if not all(isinstance(fields.get(key), str) for key in texts) or "permission_mode" in fields:
        return False
    return fields["hook_event_name"] in KINDS and "conversation_id" not in fields
