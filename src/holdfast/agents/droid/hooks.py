"""Factory droid, as version 0.225.2 behaves (docs/agents.md says how we know)."""

import re
from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.normalise import number_or_none, one_path, true_or_none
from holdfast.agents.payload_reader import COMPACT, NOTE, OVER, PROMPT, STARTED, Data, name
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Delivery

ASK_TIMEOUT = 15
SESSIONS = "/.factory/sessions/"
STATUS_LINE = re.compile(r"^\[Process exited with code (\d{1,3})\]\s*\Z", re.MULTILINE)
"""Stands behind the output of a command that ran to its end."""

HOOKS = (
    Hook("SessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("SessionEnd", "session.ended"),
    # `droid exec` does not tell of its first prompt.
    Hook("UserPromptSubmit", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("PreToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("Stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("PreCompact", "compact.started"),
    Hook("Notification", "notification"),
    # It names neither the subagent nor its session, which told of its own end already.
    Hook("SubagentStop", "subagent.ended", register=False),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("Create", "Edit", "MultiEdit", "ApplyPatch"), "edit"),
    "Execute": "shell",
    "Read": "read",
    **dict.fromkeys(("LS", "Grep", "Glob", "ToolSearch"), "search"),
    **dict.fromkeys(("WebSearch", "FetchUrl"), "web"),
    **dict.fromkeys(("Task", "TaskOutput", "TaskStop"), "agent"),
    "Skill": "skill",
    "TodoWrite": "todo",
    "ExitSpecMode": "plan",
    "AskUser": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "turn.ended": "retry",
    "tool.finished": "retry",
}


def _add_result(data: Data, payload: Payload) -> None:
    """droid reports no failed call: `sessions.jobs.read_failures` reads it from its file."""
    response = payload.get("tool_response")
    data["ok"] = True
    payload_reader.add_output(data, response)
    code = normalise.exit_code_at_end(response, STATUS_LINE) if data["action"] == "shell" else None
    if code is not None:
        data["exit_code"], data["ok"] = code, code == 0


TABLES = payload_reader.Tables(
    agent="droid",
    kinds=KINDS,
    common=(
        ("cwd", "cwd", one_path),
        ("transcript", "transcript_path", one_path),
        ("mode", "permission_mode", name),
        ("parent", "calling_session_id", name),
    ),
    fields={
        "SessionStart": STARTED,
        "SessionEnd": OVER,
        "UserPromptSubmit": (*PROMPT, ("turn", "message_id", name)),
        "Stop": (("again", "stop_hook_active", true_or_none), ("calls", "tool_execution_count", number_or_none)),
        "SubagentStop": (("message", "task_result", payload_reader.message), ("lane_type", "task_name", name)),
        "PreCompact": COMPACT,
        "Notification": NOTE,
    },
    with_tool=frozenset({"PreToolUse", "PostToolUse"}),
    tools=TOOLS,
    extras={"PostToolUse": _add_result},
)

ANSWERS = payload_reader.Answers(
    context=frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    block=frozenset({"UserPromptSubmit", "PostToolUse", "Stop"}),
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = normalise.mapping_or_empty(payload)
    transcript: Any = fields.get("transcript_path")
    named = isinstance(fields.get("session_id"), str) and isinstance(fields.get("hook_event_name"), str)
    return named and isinstance(transcript, str) and SESSIONS in transcript
