"""Claude Code, as version 2.1.325 behaves (docs/agents.md says how we know)."""

from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.claude_code.attribution import is_notice, typed_words
from holdfast.agents.normalise import number_or_none, one_path, text_cleaner, true_or_none
from holdfast.agents.payload_reader import (  # fmt: skip
    COMPACT,
    ENDED,
    FAILURE,
    LANE_ENDED,
    NOTE,
    OVER,
    TOOL,
    Data,
    Fields,
    error,
    message,
    name,
    prompt,
)
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Delivery

NAME_OF_AGENT = "claude-code"
ASK_TIMEOUT = 15
"""Seconds. The client gives up long before; this is for a machine that cannot even start it."""
END_TIMEOUT = 30
"""Without one SessionEnd hooks are killed after 1.5 s, when a spooled event may still be waiting for its disk."""

HOOKS = (
    Hook("SessionStart", "session.started", "start", timeout=ASK_TIMEOUT),
    Hook("SessionEnd", "session.ended", timeout=END_TIMEOUT),
    Hook("UserPromptSubmit", "prompt.submitted", "ask", timeout=ASK_TIMEOUT),
    Hook("UserPromptExpansion", "prompt.expanded"),
    Hook("PreToolUse", "tool.started", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUse", "tool.finished", "ask", timeout=ASK_TIMEOUT),
    Hook("PostToolUseFailure", "tool.failed"),
    Hook("PostToolBatch", "tool.batch"),
    Hook("PermissionRequest", "permission.requested", "ask", timeout=ASK_TIMEOUT),
    Hook("PermissionDenied", "permission.denied"),
    Hook("Stop", "turn.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("StopFailure", "turn.failed"),
    Hook("SubagentStart", "subagent.started"),
    Hook("SubagentStop", "subagent.ended", "ask", timeout=ASK_TIMEOUT),
    Hook("PreCompact", "compact.started"),
    Hook("PostCompact", "compact.ended"),
    Hook("Notification", "notification"),
    Hook("TaskCreated", "task.created"),
    Hook("TaskCompleted", "task.completed"),
    Hook("Setup", "setup.ran"),
    Hook("InstructionsLoaded", "instructions.loaded"),
    Hook("CwdChanged", "cwd.changed"),
    Hook("ConfigChange", "config.changed"),
    Hook("DirectoryAdded", "directory.added"),
    Hook("PreModelSwitch", "model.switching"),
    Hook("PostModelSwitch", "model.switched"),
    Hook("TeammateIdle", "teammate.idle"),
    # A hook here replaces what Claude Code would do itself, so a mere observer would break it.
    Hook("WorktreeCreate", "worktree.created", register=False),
    Hook("WorktreeRemove", "worktree.removed", register=False),
    Hook("Elicitation", "elicitation.requested", register=False),
    Hook("ElicitationResult", "elicitation.answered", register=False),
    # One process for every piece of an answer, and files only where somebody asked for them: noise.
    Hook("MessageDisplay", "message.displayed", register=False),
    Hook("FileChanged", "file.changed", register=False),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Bash", "PowerShell", "Monitor"), "shell"),
    **dict.fromkeys(("Read", "NotebookRead"), "read"),
    **dict.fromkeys(("Glob", "Grep", "LS", "LSP", "ToolSearch"), "search"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
    **dict.fromkeys(("Agent", "Task"), "agent"),
    **dict.fromkeys(("Skill", "SlashCommand"), "skill"),
    **dict.fromkeys(("ListMcpResourcesTool", "ReadMcpResourceTool"), "mcp"),
    **dict.fromkeys(("EnterPlanMode", "ExitPlanMode"), "plan"),
    **dict.fromkeys(("TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList"), "todo"),
    "AskUserQuestion": "ask",
}

ENFORCES: dict[str, Enforcement] = {
    "tool.started": "prevent",
    "prompt.submitted": "prevent",
    "permission.requested": "prevent",
    "turn.ended": "retry",
    "subagent.ended": "retry",
    "tool.finished": "retry",
}

COMMON: Fields = (
    ("cwd", "cwd", one_path),
    ("lane", "agent_id", name),
    ("lane_type", "agent_type", name),
    ("turn", "prompt_id", name),
    ("transcript", "transcript_path", one_path),
    ("mode", "permission_mode", name),
    ("model", "model", name),
)


def _tool_calls(value: Any) -> list[dict[str, str]] | None:
    fields = (("call", "tool_use_id", name), ("tool", "tool_name", name))
    return (
        [normalise.pick_fields(normalise.mapping_or_empty(call), fields) for call in value[:100]]
        if isinstance(value, list)
        else None
    )


_TASK: Fields = (
    ("task", "task_id", name),
    ("subject", "task_subject", message),
    ("description", "task_description", text_cleaner(2_000)),
)
_SWITCH: Fields = (("old", "from_model", name), ("new", "to_model", name), ("source", "source", name))

FIELDS: dict[str, Fields] = {
    "SessionStart": (("source", "source", name), ("idle_s", "seconds_since_last_response", number_or_none)),
    "SessionEnd": OVER,
    "UserPromptSubmit": (("prompt", "prompt", prompt), ("source", "source", name)),
    "UserPromptExpansion": (
        ("command", "command_name", name),
        ("args", "command_args", message),
        ("source", "command_source", name),
        ("prompt", "prompt", prompt),
    ),
    "PreToolUse": TOOL,
    "PostToolUse": TOOL,
    "PostToolUseFailure": FAILURE,
    "PostToolBatch": (("calls", "tool_calls", _tool_calls),),
    "PermissionRequest": TOOL,
    "PermissionDenied": (*TOOL, ("reason", "reason", error)),
    "Stop": ENDED,
    "StopFailure": (("error", "error", error), ("message", "last_assistant_message", message)),
    "SubagentStop": LANE_ENDED,
    "PreCompact": COMPACT,
    "PostCompact": (("trigger", "trigger", name), ("summary", "compact_summary", prompt)),
    "Notification": NOTE,
    "TaskCreated": _TASK,
    "TaskCompleted": _TASK,
    "Setup": (("trigger", "trigger", name),),
    "InstructionsLoaded": (
        ("path", "file_path", one_path),
        ("reason", "load_reason", name),
        ("memory", "memory_type", name),
    ),
    "CwdChanged": (("old", "old_cwd", one_path), ("new", "new_cwd", one_path)),
    "ConfigChange": (("path", "file_path", one_path), ("source", "source", name)),
    "DirectoryAdded": (("path", "directory", one_path), ("source", "source", name)),
    "PreModelSwitch": _SWITCH,
    "PostModelSwitch": _SWITCH,
    "TeammateIdle": (("teammate", "teammate_name", name), ("team", "team_name", name)),
    "WorktreeCreate": (("name", "name", name),),
    "WorktreeRemove": (("path", "worktree_path", one_path),),
    "Elicitation": (("message", "message", message), ("server", "mcp_server_name", name)),
    "ElicitationResult": (("server", "mcp_server_name", name), ("action", "action", name)),
    "MessageDisplay": (
        ("message", "delta", message),
        ("index", "index", number_or_none),
        ("final", "final", true_or_none),
    ),
    "FileChanged": (("path", "file_path", one_path), ("change", "event", name)),
}
# Events whose fields begin with TOOL carry a tool and its input.
_WITH_TOOL = frozenset(event for event, fields in FIELDS.items() if fields[:2] == TOOL)


def _agent_process(delivery: Delivery) -> dict[str, int]:
    """Where a shell stands between the agent and the hook, the parent dies at once: then only the id is known."""
    pid_text = delivery.env.get("CLAUDE_PID", "")
    if pid_text.isdecimal() and len(pid_text) < 11 and int(pid_text) != delivery.pid:
        return {"pid": int(pid_text)}
    return payload_reader.parent_process(delivery)


def _add_server(data: Data, payload: Payload) -> None:
    if server := name(normalise.mapping_or_empty(payload.get("mcp_server")).get("name")):
        data["server"] = server


def _add_result(data: Data, payload: Payload) -> None:
    _add_server(data, payload)
    response = payload.get("tool_response")
    payload_reader.add_output(data, response)
    add_ending(data, payload.get("tool_name"), normalise.mapping_or_empty(response))


def add_ending(data: Data, tool: Any, result: Payload) -> None:
    """How a call ended that did not fail; a transcript has the same fields."""
    interrupted = result.get("interrupted") is True
    detached = bool(result.get("backgroundTaskId")) or result.get("isAsync") is True
    data["ok"] = not interrupted
    if interrupted:
        data["interrupted"] = True
    if detached:
        data["detached"] = True
    # A command still running has no exit code yet, and one that Claude "interprets" (grep found nothing) had not 0.
    if tool == "Bash" and not (interrupted or detached or result.get("returnCodeInterpretation")):
        data["exit_code"] = 0


def _add_failure(data: Data, payload: Payload) -> None:
    _add_server(data, payload)
    payload_reader.mark_failed(data, payload.get("error"))


def _mark_synthetic(data: Data, _payload: Payload) -> None:
    """Claude Code reports a finished background task to its model by a prompt of its own."""
    prompt = data.get("prompt", "")
    words = "" if is_notice(prompt) else typed_words(prompt)
    if words:
        data["prompt"] = words
    elif prompt:
        data["synthetic"] = True


def _mark_compaction(data: Data, payload: Payload) -> None:
    """Each compaction ends like a subagent that never began."""
    if payload.get("agent_type") == "":
        data["compaction"] = True


def _event_kind(kind: str, data: Data) -> str:
    """The end of a compaction's own call is no end of a subagent."""
    return "model.answered" if kind == "subagent.ended" and data.get("compaction") else kind


TABLES = payload_reader.Tables(
    agent=NAME_OF_AGENT,
    kinds=KINDS,
    common=COMMON,
    fields=FIELDS,
    with_tool=_WITH_TOOL,
    tools=TOOLS,
    project=lambda delivery, _payload: one_path(delivery.env.get("CLAUDE_PROJECT_DIR")),
    process=_agent_process,
    extras={
        "PreToolUse": _add_server,
        "PostToolUse": _add_result,
        "PostToolUseFailure": _add_failure,
        "PermissionRequest": _add_server,
        "PermissionDenied": _add_server,
        "UserPromptSubmit": _mark_synthetic,
        "SubagentStop": _mark_compaction,
    },
    kind_of=_event_kind,
)

ANSWERS = payload_reader.Answers(
    context=frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}),
    block=frozenset({"UserPromptSubmit", "PostToolUse", "Stop", "SubagentStop"}),
    permission=frozenset({"PermissionRequest"}),
)

# Never sent by Claude Code, but by agents that took over its hooks.
FOREIGN_FIELDS = frozenset(("timestamp", "conversation_id", "cursor_version", "sessionId"))
FOREIGN_ENV = frozenset(
    (
        "GEMINI_SESSION_ID",
        "GEMINI_PROJECT_DIR",
        "QWEN_PROJECT_DIR",
        "CURSOR_VERSION",
        "CURSOR_PROJECT_DIR",
        "COPILOT_HOME",
        "CODEX_HOME",
    )
)


def _is_foreign_transcript(path: str) -> bool:
    """None at all, a rollout file of Codex, or a session of Factory's Droid."""
    return not path or path.startswith("/rollout-", path.rfind("/")) or "/.factory/sessions/" in path


def recognise_payload(delivery: Delivery, payload: Payload) -> bool:
    """Payload before environment: an agent started from another one's shell inherits all its variables."""
    known = normalise.mapping_or_empty(payload)
    transcript = known.get("transcript_path")
    named = isinstance(known.get("session_id"), str) and isinstance(known.get("hook_event_name"), str)
    if not named or not isinstance(transcript, str):
        return False
    if not FOREIGN_FIELDS.isdisjoint(known) or _is_foreign_transcript(transcript):
        return False
    return delivery.env.get("CLAUDECODE") == "1" or FOREIGN_ENV.isdisjoint(delivery.env)
