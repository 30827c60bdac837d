"""Claude Code, as version 2.1.325 behaves (docs/agents.md says how we know)."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.normal import ERROR, MESSAGE, NAME, PROMPT, flag, number, one_path, words
from holdfast.core.agent import Agent, Enforcement, Hook, Payload
from holdfast.core.decision import Decision
from holdfast.core.delivery import Delivery
from holdfast.core.event import Event
from holdfast.core.fence import fenced, harmless
from holdfast.core.ids import bounded

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

# ---- reading ----

_name, _prompt, _message, _error = words(NAME), words(PROMPT), words(MESSAGE), words(ERROR)
Fields = tuple[tuple[str, str, Callable[[Any], Any]], ...]

COMMON: Fields = (
    ("cwd", "cwd", one_path),
    ("lane", "agent_id", _name),
    ("lane_type", "agent_type", _name),
    ("turn", "prompt_id", _name),
    ("transcript", "transcript_path", one_path),
    ("mode", "permission_mode", _name),
    ("model", "model", _name),
)


def _count(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def _calls(value: Any) -> list[dict[str, str]] | None:
    fields = (("call", "tool_use_id", _name), ("tool", "tool_name", _name))
    return [normal.picked(normal.mapping(call), fields) for call in value[:100]] if isinstance(value, list) else None


_ENDED: Fields = (
    ("message", "last_assistant_message", _message),
    ("again", "stop_hook_active", flag),
    ("background", "background_tasks", _count),
)
_TASK: Fields = (
    ("task", "task_id", _name),
    ("subject", "task_subject", _message),
    ("description", "task_description", words(2_000)),
)
_SWITCH: Fields = (("old", "from_model", _name), ("new", "to_model", _name), ("source", "source", _name))
_TOOL: Fields = (("call", "tool_use_id", _name), ("ms", "duration_ms", number))

FIELDS: dict[str, Fields] = {
    "SessionStart": (("source", "source", _name), ("idle_s", "seconds_since_last_response", number)),
    "SessionEnd": (("reason", "reason", _name),),
    "UserPromptSubmit": (("prompt", "prompt", _prompt), ("source", "source", _name)),
    "UserPromptExpansion": (
        ("command", "command_name", _name),
        ("args", "command_args", _message),
        ("source", "command_source", _name),
        ("prompt", "prompt", _prompt),
    ),
    "PreToolUse": _TOOL,
    "PostToolUse": _TOOL,
    "PostToolUseFailure": (*_TOOL, ("error", "error", _error), ("interrupted", "is_interrupt", flag)),
    "PostToolBatch": (("calls", "tool_calls", _calls),),
    "PermissionRequest": _TOOL,
    "PermissionDenied": (*_TOOL, ("reason", "reason", _error)),
    "Stop": _ENDED,
    "StopFailure": (("error", "error", _error), ("message", "last_assistant_message", _message)),
    "SubagentStop": (*_ENDED, ("lane_transcript", "agent_transcript_path", one_path)),
    "PreCompact": (("trigger", "trigger", _name), ("instructions", "custom_instructions", _message)),
    "PostCompact": (("trigger", "trigger", _name), ("summary", "compact_summary", _prompt)),
    "Notification": (("message", "message", _message), ("topic", "notification_type", _name)),
    "TaskCreated": _TASK,
    "TaskCompleted": _TASK,
    "Setup": (("trigger", "trigger", _name),),
    "InstructionsLoaded": (
        ("path", "file_path", one_path),
        ("reason", "load_reason", _name),
        ("memory", "memory_type", _name),
    ),
    "CwdChanged": (("old", "old_cwd", one_path), ("new", "new_cwd", one_path)),
    "ConfigChange": (("path", "file_path", one_path), ("source", "source", _name)),
    "DirectoryAdded": (("path", "directory", one_path), ("source", "source", _name)),
    "PreModelSwitch": _SWITCH,
    "PostModelSwitch": _SWITCH,
    "TeammateIdle": (("teammate", "teammate_name", _name), ("team", "team_name", _name)),
    "WorktreeCreate": (("name", "name", _name),),
    "WorktreeRemove": (("path", "worktree_path", one_path),),
    "Elicitation": (("message", "message", _message), ("server", "mcp_server_name", _name)),
    "ElicitationResult": (("server", "mcp_server_name", _name), ("action", "action", _name)),
    "MessageDisplay": (("message", "delta", _message), ("index", "index", number), ("final", "final", flag)),
    "FileChanged": (("path", "file_path", one_path), ("change", "event", _name)),
}
_WITH_TOOL = frozenset(name for name, fields in FIELDS.items() if fields[:2] == _TOOL)


def read(delivery: Delivery, payload: Payload) -> Event:
    """The body is left to whoever stores the event: it is redacted and cut the same way for every agent."""
    known = normal.mapping(payload)
    native = known.get("hook_event_name")
    native = bounded(native) if isinstance(native, str) and native else bounded(delivery.event)
    tool = known.get("tool_name")
    data = _common(delivery, known, native)
    data.update(normal.picked(known, FIELDS.get(native, ())))
    if native in _WITH_TOOL:
        _add_tool(data, known, native)
    elif extra := _EXTRAS.get(native):
        extra(data, known)
    session = known.get("session_id")
    return Event(
        key=delivery.key,
        kind=KINDS.get(native, "unknown") if isinstance(payload, Mapping) else "unknown",
        at=delivery.at,
        session=bounded(session) if isinstance(session, str) else "",
        project=one_path(delivery.env.get("CLAUDE_PROJECT_DIR")) or data.get("cwd", ""),
        agent=NAME_OF_AGENT,
        tool=bounded(tool) if isinstance(tool, str) else "",
        data=data,
    )


def _common(delivery: Delivery, payload: Payload, native: str) -> dict[str, Any]:
    data = normal.picked(payload, COMMON)
    if "cwd" not in data and (cwd := one_path(delivery.cwd)):
        data["cwd"] = cwd
    data["native"] = native
    data.update(_process(delivery))
    return data


def _process(delivery: Delivery) -> dict[str, int]:
    """Where a shell stands between the agent and the hook, the parent dies at once: then only the id is known."""
    told = delivery.env.get("CLAUDE_PID", "")
    if told.isdecimal() and len(told) < 11 and int(told) != delivery.pid:
        return {"pid": int(told)}
    if not delivery.pid:
        return {}
    return {"pid": delivery.pid, "pid_start": delivery.start} if delivery.start else {"pid": delivery.pid}


def _add_tool(data: dict[str, Any], payload: Payload, native: str) -> None:
    tool, given = payload.get("tool_name"), normal.mapping(payload.get("tool_input"))
    data["action"] = action = action_of(tool)
    if given:
        data["input"] = normal.trimmed(given)
    if action == "shell" and (command := words(normal.COMMAND)(given.get("command"))):
        data["command"] = command
    if paths := normal.paths_in(given, data.get("cwd", "")):
        data["paths"] = paths
    if action == "skill" and (skill := _skill(given)):
        data["skill"] = skill
    if server := words(NAME)(normal.mapping(payload.get("mcp_server")).get("name")):
        data["server"] = server
    if native == "PostToolUse":
        _add_result(data, tool, payload.get("tool_response"))
    elif native == "PostToolUseFailure":
        _add_failure(data, payload.get("error"))


def action_of(tool: Any) -> str:
    if not isinstance(tool, str):
        return "other"
    return TOOLS.get(tool) or ("mcp" if tool.startswith("mcp__") else "other")


def _skill(given: Mapping[str, Any]) -> str | None:
    name = given.get("skill") or given.get("command")
    return (
        _name(name.strip().removeprefix("/").split(maxsplit=1)[0])
        if isinstance(name, str) and name.strip(" /")
        else None
    )


def _add_result(data: dict[str, Any], tool: Any, response: Any) -> None:
    found = normal.mapping(response)
    interrupted = found.get("interrupted") is True
    detached = bool(found.get("backgroundTaskId")) or found.get("isAsync") is True
    data["ok"] = not interrupted
    if data["action"] != "edit" and (output := normal.output_text(response)):  # an edit only repeats its input
        data["output"] = output
    if interrupted:
        data["interrupted"] = True
    if detached:
        data["detached"] = True
    # A command still running has no exit code yet, and one that Claude "interprets" (grep found nothing) had not 0.
    if tool == "Bash" and not (interrupted or detached or found.get("returnCodeInterpretation")):
        data["exit_code"] = 0


def _add_failure(data: dict[str, Any], error: Any) -> None:
    data["ok"] = False
    if data["action"] == "shell" and (code := normal.exit_code_in(error)) is not None:
        data["exit_code"] = code


def _mark_synthetic(data: dict[str, Any], _payload: Payload) -> None:
    if data.get("prompt", "").lstrip().startswith("<task-notification>"):
        data["synthetic"] = True


def _mark_compaction(data: dict[str, Any], payload: Payload) -> None:
    """Each compaction ends like a subagent that never began."""
    if payload.get("agent_type") == "":
        data["compaction"] = True


_EXTRAS = {"UserPromptSubmit": _mark_synthetic, "SubagentStop": _mark_compaction}

# ---- writing ----

TAKES_CONTEXT = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"})
TAKES_BLOCK = frozenset({"UserPromptSubmit", "PostToolUse", "Stop", "SubagentStop"})
ANSWERED = TAKES_CONTEXT | TAKES_BLOCK | {"PermissionRequest"}
NO_REASON = "Refused by Holdfast."


def write(event: Event, decision: Decision) -> bytes:
    native = event.get("native")
    if native not in ANSWERED or event.get("compaction"):
        return b""
    reply = _blocking(native, decision)
    if specific := _specific(native, decision):
        reply["hookSpecificOutput"] = {"hookEventName": native, **specific}
    if decision.notices:
        reply["systemMessage"] = harmless("\n".join(decision.notices))
    return msgspec.json.encode(reply) if reply else b""


def _blocking(native: str, decision: Decision) -> dict[str, Any]:
    blocks = decision.verdict == "deny" and native in TAKES_BLOCK
    return {"decision": "block", "reason": _reason(decision)} if blocks else {}


def _specific(native: str, decision: Decision) -> dict[str, Any]:
    specific: dict[str, Any] = {}
    if native == "PreToolUse" and decision.verdict in ("deny", "ask", "allow"):
        specific["permissionDecision"] = decision.verdict
        if decision.reasons or decision.verdict != "allow":
            specific["permissionDecisionReason"] = _reason(decision)
    if native == "PermissionRequest" and decision.verdict in ("deny", "allow"):
        message = {"message": _reason(decision)} if decision.verdict == "deny" else {}
        specific["decision"] = {"behavior": decision.verdict, **message}
    if native in TAKES_CONTEXT and decision.contexts:
        specific["additionalContext"] = "\n\n".join(fenced(context) for context in decision.contexts)
    return specific


def _reason(decision: Decision) -> str:
    return harmless("\n".join(decision.reasons)) or NO_REASON


# ---- recognising ----

FOREIGN_FIELDS = ("timestamp", "conversation_id", "cursor_version", "sessionId")
FOREIGN_ENV = (
    "GEMINI_SESSION_ID",
    "GEMINI_PROJECT_DIR",
    "QWEN_PROJECT_DIR",
    "CURSOR_VERSION",
    "CURSOR_PROJECT_DIR",
    "COPILOT_HOME",
    "CODEX_HOME",
)
_CODEX_TRANSCRIPT = re.compile(r"/rollout-[^/]*$")


def recognise(delivery: Delivery, payload: Payload) -> bool:
    """Payload before environment: an agent started from another one's shell inherits all its variables."""
    known = normal.mapping(payload)
    transcript = known.get("transcript_path")
    if not all(isinstance(known.get(key), str) for key in ("session_id", "hook_event_name", "transcript_path")):
        return False
    if any(key in known for key in FOREIGN_FIELDS) or _CODEX_TRANSCRIPT.search(str(transcript)):
        return False
    return delivery.env.get("CLAUDECODE") == "1" or not any(name in delivery.env for name in FOREIGN_ENV)


CLAUDE_CODE = Agent(
    name=NAME_OF_AGENT,
    title="Claude Code",
    hooks=HOOKS,
    read=read,
    write=write,
    recognise=recognise,
    enforces=ENFORCES,
    tools=TOOLS,
)
