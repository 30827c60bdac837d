"""From an agent's payload to an event, by tables: each adapter says what its fields are called, this reads them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import msgspec

from holdfast.agents import normalise
from holdfast.agents.normalise import NAME, number_or_none, one_path, text_cleaner, true_or_none
from holdfast.core.agent import Payload
from holdfast.core.decision import Context, Decision, Delivery
from holdfast.core.event import AT_ONCE, Event
from holdfast.core.ids import bounded_name
from holdfast.core.text import VOICE, sanitise, sanitise_around_fences, without_contexts, wrap_context

# The reply Claude Code introduced and others took over; each adapter says which parts of it its agent honours.

NO_REASON = "Refused by Holdfast."
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Event names by what a reply to them may say."""

    context: frozenset[str]
    block: frozenset[str]
    permission: frozenset[str] = NOBODY
    before_tool: str = "PreToolUse"
    verdicts: frozenset[str] = frozenset({"deny", "ask", "allow"})
    """What may be answered before a tool. An agent that does not know a verdict may drop the whole reply."""

    def answered(self, native: Any) -> bool:
        return native in self.context or native in self.block or native in self.permission or native == self.before_tool


def write_reply(
    answers: Answers, event: Event, decision: Decision, *, stop_reason: Callable[[Decision], str] | None = None
) -> bytes:
    """`stop_reason` words the refusal of a stop where that has to differ."""
    native = event.get("native")
    # The end of a compaction's own call (Claude Code): there is nobody to answer.
    if not answers.answered(native) or event.get("compaction"):
        return b""
    worded = stop_reason if stop_reason and native == "Stop" else reason_of
    reply = _block_fields(answers, native, decision, worded)
    if specific := _hook_specific_fields(answers, native, decision):
        reply["hookSpecificOutput"] = {"hookEventName": native, **specific}
    if decision.notices:
        reply["systemMessage"] = notice_of(decision)
    return encode_reply(reply)


def encode_reply(reply: dict[str, Any]) -> bytes:
    return msgspec.json.encode(reply) if reply else b""


def _block_fields(
    answers: Answers, native: str, decision: Decision, worded: Callable[[Decision], str]
) -> dict[str, Any]:
    blocks = decision.verdict == "deny" and native in answers.block
    return {"decision": "block", "reason": worded(decision)} if blocks else {}


def _hook_specific_fields(answers: Answers, native: str, decision: Decision) -> dict[str, Any]:
    specific: dict[str, Any] = {}
    if native == answers.before_tool and decision.verdict in answers.verdicts:
        specific["permissionDecision"] = decision.verdict
        if decision.reasons or decision.verdict != "allow":
            specific["permissionDecisionReason"] = reason_of(decision)
    if native in answers.permission and decision.verdict in ("deny", "allow"):
        message = {"message": reason_of(decision)} if decision.verdict == "deny" else {}
        specific["decision"] = {"behavior": decision.verdict, **message}
    if native in answers.context and decision.contexts:
        specific["additionalContext"] = context_of(decision.contexts)
    return specific


def reason_of(decision: Decision) -> str:
    return sanitise_around_fences("\n".join(decision.reasons)) or NO_REASON


def notice_of(decision: Decision) -> str:
    return sanitise("\n".join(decision.notices))


def context_of(contexts: Sequence[Context]) -> str:
    return "\n\n".join(wrap_context(context) for context in contexts)


Data = dict[str, Any]
Fields = tuple[tuple[str, str, Callable[[Any], Any]], ...]
"""(our name, the agent's name, cleaner)"""

name = text_cleaner(NAME)
prompt, message, error = text_cleaner(normalise.PROMPT), text_cleaner(normalise.MESSAGE), text_cleaner(normalise.ERROR)
clean_command = text_cleaner(normalise.COMMAND)


def list_length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def no_project(_delivery: Delivery, _payload: Payload) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Tables:
    """How one agent writes down what happened."""

    agent: str
    kinds: Mapping[str, str]
    common: Fields
    fields: Mapping[str, Fields]
    with_tool: frozenset[str] = frozenset()
    tools: Mapping[str, str] = field(default_factory=dict)
    tool_name: str = "tool_name"
    tool_input: str = "tool_input"
    session: Callable[[Payload], Any] = lambda payload: payload.get("session_id")
    native: Callable[[Delivery, Payload], Any] = lambda _delivery, payload: payload.get("hook_event_name")
    project: Callable[[Delivery, Payload], str | None] = no_project
    # A lambda, because the function is defined further down.
    process: Callable[[Delivery], Mapping[str, int]] = lambda delivery: parent_process(delivery)
    extras: Mapping[str, Callable[[Data, Payload], None]] = field(default_factory=dict)
    """Event → what the tables cannot say, as a change to the data."""
    lane_untold: frozenset[str] = frozenset()
    """Events that come from subagents too, without a word of it."""
    kind_of: Callable[[str, Data], str] | None = None
    """Where the same event can mean two things."""


def read_agent_event(tables: Tables, delivery: Delivery, payload: Payload) -> Event:
    """The body is left to whoever stores the event: it is redacted and cut the same way for every agent."""
    fields = normalise.mapping_or_empty(payload)
    native = tables.native(delivery, fields)
    native = bounded_name(native) if isinstance(native, str) and native else bounded_name(delivery.event)
    data = _common_fields(tables, delivery, fields, native)
    data.update(normalise.pick_fields(fields, tables.fields.get(native, ())))
    if native in tables.with_tool:
        add_tool(tables, data, fields)
    if native in tables.lane_untold:
        data["lane_untold"] = True
    if extra := tables.extras.get(native):
        extra(data, fields)
    session, tool = tables.session(fields), fields.get(tables.tool_name)
    kind = tables.kinds.get(native, "unknown") if fields is payload else "unknown"
    # This agent never tells that a compaction is over: whoever waits for the end must know.
    if kind == "compact.started" and "compact.ended" not in tables.kinds.values():
        data["end_untold"] = True
    return Event(
        key=delivery.key,
        kind=tables.kind_of(kind, data) if tables.kind_of else kind,
        at=delivery.at,
        session=bounded_name(session) if isinstance(session, str) else "",
        project=tables.project(delivery, fields) or data.get("cwd", ""),
        agent=tables.agent,
        tool=bounded_name(tool) if isinstance(tool, str) else "",
        data=data,
    )


def _common_fields(tables: Tables, delivery: Delivery, payload: Payload, native: str) -> Data:
    data = normalise.pick_fields(payload, tables.common)
    if "cwd" not in data and (cwd := one_path(delivery.cwd)):
        data["cwd"] = cwd
    data["native"] = native
    data.update(tables.process(delivery))
    return data


def parent_process(delivery: Delivery) -> dict[str, int]:
    if not delivery.pid:
        return {}
    return {"pid": delivery.pid, "pid_start": delivery.start} if delivery.start else {"pid": delivery.pid}


def add_tool(tables: Tables, data: Data, payload: Payload) -> None:
    tool_input = normalise.mapping_or_empty(payload.get(tables.tool_input))
    data["action"] = action = action_of(tables.tools, payload.get(tables.tool_name))
    if tool_input:
        data["input"] = normalise.trim_input(tool_input)
    if action == "shell" and (command := clean_command(tool_input.get("command"))):
        data["command"] = command
    if paths := normalise.paths_in(tool_input, data.get("cwd", "")):
        data["paths"] = paths
    if action == "skill" and (skill := _skill_name(tool_input)):
        data["skill"] = skill


def action_of(tools: Mapping[str, str], tool: Any) -> str:
    if not isinstance(tool, str):
        return "other"
    # How agents spell tools of MCP servers.
    return tools.get(tool) or ("mcp" if tool.startswith(("mcp__", "mcp_", "MCP:")) else "other")


def _skill_name(tool_input: Mapping[str, Any]) -> str | None:
    named = tool_input.get("skill") or tool_input.get("name") or tool_input.get("command")
    if not isinstance(named, str) or not named.strip(" /"):
        return None
    return name(named.strip().removeprefix("/").split(maxsplit=1)[0])


def add_output(data: Data, response: Any) -> None:
    """An edit only repeats its input."""
    if data.get("action") != "edit" and (output := normalise.output_text(response)):
        data["output"] = output


def mark_failed(data: Data, problem: Any) -> None:
    data["ok"] = False
    if data.get("action") == "shell" and (code := normalise.exit_code_in(problem)) is not None:
        data["exit_code"] = code


TOOL: Fields = (("call", "tool_use_id", name), ("ms", "duration_ms", number_or_none))
ENDED: Fields = (
    ("message", "last_assistant_message", message),
    ("again", "stop_hook_active", true_or_none),
    ("background", "background_tasks", list_length),
)
COMPACT: Fields = (("trigger", "trigger", name), ("instructions", "custom_instructions", message))
STARTED: Fields = (("source", "source", name),)
OVER: Fields = (("reason", "reason", name),)
NOTE: Fields = (("message", "message", message), ("topic", "notification_type", name))
FAILURE: Fields = (*TOOL, ("error", "error", error), ("interrupted", "is_interrupt", true_or_none))
LANE_ENDED: Fields = (*ENDED, ("lane_transcript", "agent_transcript_path", one_path))
PROMPT: Fields = (("prompt", "prompt", prompt),)


# Our own words that an agent hands back: contexts put before a prompt, and the reason of a refused stop as a prompt.


def spoken_reason(decision: Decision) -> str:
    return VOICE + reason_of(decision)


def take_out(data: Data, _payload: Payload) -> None:
    """For a prompt: contexts are cut off, and what is left without a person's words is nobody's."""
    prompt: Any = data.get("prompt")
    if isinstance(prompt, str):
        data["prompt"] = prompt = without_contexts(prompt)
    if not prompt or prompt.startswith(VOICE):
        data["synthetic"] = True


# What tells one happening from another, so that two registrations of ours do not make two events of it.

WHOLE_SESSION = frozenset({"session.started", "session.ended"})


def by_ids(event: Event, _payload: Payload) -> str:
    """For agents that number their tool calls and turns.

    A turn may end several times (a refused end is followed by another) and ask for the same permission again: with no
    number of its own such a happening is only the same when it comes at once.
    """
    data = event.data
    if call := data.get("call"):
        return f"c{call}"
    turn = data.get("turn", "")
    if turn and event.kind == "prompt.submitted":
        return f"t{turn}{facts_checksum(data)}"
    if event.kind in WHOLE_SESSION and data.get("pid_start"):
        return f"p{data['pid']}.{data['pid_start']}{data.get('source', '')}"
    return "" if not turn or event.kind == "permission.requested" else f"{AT_ONCE}{turn}{facts_checksum(data)}"


def by_numbered_ids(event: Event, payload: Payload) -> str:
    """The same where the model makes up the numbers of its calls, and may count from 0 again."""
    mark = by_ids(event, payload)
    return mark + facts_checksum(event.data) if mark.startswith("c") else mark


def by_time(event: Event, payload: Payload) -> str:
    """For agents that put a time into every payload: it is made once, however many hooks then get it. An end may be told
    several times, each with its own time; one process ends a session once."""
    stamp = payload.get("timestamp")
    data = event.data
    if event.kind == "session.ended" and data.get("pid_start"):
        return f"p{data['pid']}.{data['pid_start']}{data.get('reason', '')}"
    return f"@{stamp}{data.get('call', '')}{facts_checksum(data)}" if isinstance(stamp, str | int) and stamp else ""


SHORT = ("source", "reason", "topic", "task", "trigger", "status", "calls", "again")
LONG = ("prompt", "message", "error", "output")


def facts_checksum(data: Any) -> str:
    """The facts that vary, as a number; one turn has many events."""
    facts: list[Any] = [data[name] for name in SHORT if name in data]
    facts += [data[name] for name in LONG if name in data]
    facts.append(data.get("command") or data.get("input"))
    return f"#{crc32(repr(facts).encode('utf-8', 'replace')):x}"


# What the hook clients send along of their environment. Both have the list written in by `tools/generated_blocks.py`.

HOOK_ENVIRONMENT = (
    "CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_PROJECT", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "CODEX_HOME", "COPILOT_HOME", "CURSOR_VERSION",
    "CURSOR_PROJECT_DIR", "QWEN_PROJECT_DIR", "TERM_PROGRAM", "TMUX_PANE",
    "HOLDFAST_PROJECT", "HOLDFAST_PAUSE", "CLAUDE_SKIP_REQUIREMENTS",
)  # fmt: skip
