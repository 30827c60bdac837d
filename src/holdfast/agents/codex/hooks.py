"""Codex CLI, as version 0.166.0 behaves (docs/agents.md says how we know)."""

import re
from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.codex.attribution import typed_words
from holdfast.agents.normalise import one_path
from holdfast.agents.payload_reader import COMPACT, ENDED, LANE_ENDED, OVER, PROMPT, STARTED, TOOL, Data, error, name
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Delivery

ASK_TIMEOUT, LAST_TIMEOUT = 15, 3
"""Seconds. Codex allows no more than 3 for SessionEnd and Interrupt."""

HOOKS = (
    Hook("SessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("SessionEnd", "session.ended", timeout=LAST_TIMEOUT),
    Hook("UserPromptSubmit", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("PreToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("PermissionRequest", "permission.requested", "ask", timeout=ASK_TIMEOUT),
    Hook("Stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("Interrupt", "turn.interrupted", timeout=LAST_TIMEOUT),
    Hook("SubagentStart", "subagent.started"),
    Hook("SubagentStop", "subagent.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("PreCompact", "compact.started"),
    Hook("PostCompact", "compact.ended"),
    # One process before and after every call of the model: dearer than what they tell is worth.
    Hook("PreModelRequest", "model.requested", register=False),
    Hook("PostModelRequest", "model.answered", register=False),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    "apply_patch": "edit",
    **dict.fromkeys(("Bash", "shell", "exec_command", "write_stdin", "local_shell"), "shell"),
    **dict.fromkeys(("read_file", "view_image"), "read"),
    **dict.fromkeys(("grep_files", "list_dir", "tool_search"), "search"),
    "web_search": "web",
    **dict.fromkeys(("spawn_agent", "send_input", "wait_agent", "close_agent", "resume_agent"), "agent"),
    **dict.fromkeys(("update_plan", "todo"), "todo"),
    "request_user_input": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "permission.requested": "prevent",
    "turn.ended": "retry",
    "subagent.ended": "retry",
    "tool.finished": "retry",
}

# The header lines of a patch in the format of apply_patch, each with a path.
PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
# Characters of a patch that are searched for paths.
LONGEST_PATCH = 1 << 20
EXIT_CODE = re.compile(r"^Exit code: (\d{1,3})$", re.MULTILINE)


def _token_counts(value: Any) -> dict[str, Any] | None:
    counts = {
        key: number
        for key, number in normalise.mapping_or_empty(value).items()
        if normalise.number_or_none(number) is not None
    }
    return dict(list(counts.items())[:12]) or None


def _add_patch(data: Data, payload: Payload) -> None:
    """The files a patch touches are named only in its text."""
    text = normalise.mapping_or_empty(payload.get("tool_input")).get("command")
    if payload.get("tool_name") == "apply_patch" and isinstance(text, str):
        named = [path.strip() for path in PATCHED.findall(text[:LONGEST_PATCH])]
        if paths := normalise.paths_in({"paths": named}, data.get("cwd", "")):
            data["paths"] = paths


def _add_result(data: Data, payload: Payload) -> None:
    """Failing commands come as ordinary results; only a patch says its exit code."""
    _add_patch(data, payload)
    response = payload.get("tool_response")
    payload_reader.add_output(data, response)
    # Only the first lines: further down the same words may be output of a program.
    code = EXIT_CODE.search(response, 0, 80) if isinstance(response, str) else None
    data["ok"] = not code or code[1] == "0"
    if code:
        data["exit_code"] = int(code[1])


def _mark_synthetic(data: Data, _payload: Payload) -> None:
    prompt = data.get("prompt", "")
    if words := typed_words(prompt):
        data["prompt"] = words
    elif prompt:
        data["synthetic"] = True


TABLES = payload_reader.Tables(
    agent="codex",
    kinds=KINDS,
    common=(
        ("cwd", "cwd", one_path),
        ("lane", "agent_id", name),
        ("lane_type", "agent_type", name),
        ("turn", "turn_id", name),
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
        "PermissionRequest": TOOL,
        "Stop": ENDED,
        "SubagentStop": LANE_ENDED,
        "PreCompact": COMPACT,
        "PostCompact": COMPACT,
        "PostModelRequest": (
            ("status", "status", name),
            ("error", "error", error),
            ("tokens", "token_usage", _token_counts),
        ),
    },
    with_tool=frozenset({"PreToolUse", "PostToolUse", "PermissionRequest"}),
    tools=TOOLS,
    extras={
        "UserPromptSubmit": _mark_synthetic,
        "PreToolUse": _add_patch,
        "PermissionRequest": _add_patch,
        "PostToolUse": _add_result,
    },
)

# Codex drops a reply that has anything in it which it does not know, and then the tool runs.
ANSWERS = payload_reader.Answers(
    context=frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    block=frozenset({"UserPromptSubmit", "PostToolUse", "Stop", "SubagentStop"}),
    permission=frozenset({"PermissionRequest"}),
    verdicts=frozenset({"deny"}),
)

ROLLOUT = re.compile(r"/rollout-[^/]*$")


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = normalise.mapping_or_empty(payload)
    event = fields.get("hook_event_name")
    if not isinstance(event, str) or event not in KINDS or "timestamp" in fields or "conversation_id" in fields:
        return False
    transcript = fields.get("transcript_path")
    return bool(ROLLOUT.search(transcript)) if isinstance(transcript, str) else isinstance(fields.get("turn_id"), str)
