"""Reads an agent's payload as an event, by the agent's tables, and marks it so that a second delivery is recognised."""

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from holdfast.agents import normalise
from holdfast.agents.definition import Data, HookRow, Tables
from holdfast.agents.normalise import NAME, one_path, text_cleaner
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery
from holdfast.core.event import AT_ONCE, Event
from holdfast.core.ids import bounded_name
from holdfast.core.text import VOICE, without_contexts

name = text_cleaner(NAME)
clean_command = text_cleaner(normalise.COMMAND)


_NO_HOOK = HookRow(kind="unknown")


def read_agent_event(tables: Tables, delivery: Delivery, payload: Payload) -> Event:
    """The caller stores the body: it is redacted and cut the same way for every agent."""
    definition, fields = tables.definition, normalise.mapping_or_empty(payload)
    if definition.renames:
        fields = {definition.renames.get(key, key): value for key, value in fields.items()}
    if tables.prepare:
        fields = tables.prepare(fields)
    native = _first_text(fields, definition.event) or delivery.event
    native = bounded_name(tables.aliases.get(native, native))
    hook = definition.hooks.get(native, _NO_HOOK)
    data = _common_fields(tables, delivery, fields, native)
    data.update(normalise.pick_fields(fields, tables.fields.get(native, ())))
    if hook.tool:
        add_tool(tables, data, fields)
    if hook.lane_untold:
        data["lane_untold"] = True
    if extra := tables.extras.get(native):
        extra(data, fields)
    return Event(
        key=delivery.key,
        kind=_event_kind(tables, hook.kind, data) if isinstance(payload, Mapping) else "unknown",
        at=delivery.at,
        session=bounded_name(_first_text(fields, definition.session)),
        project=_project_of(tables, delivery, fields) or data.get("cwd", ""),
        agent=definition.name,
        tool=bounded_name(tool) if isinstance(tool := fields.get(definition.tool_name), str) else "",
        data=data,
    )


def _event_kind(tables: Tables, kind: str, data: Data) -> str:
    # This agent never reports the end of a compaction, so nobody may wait for it.
    if kind == "compact.started" and not tables.ends_compactions:
        data["end_untold"] = True
    return tables.kind_of(kind, data) if tables.kind_of else kind


def _first_text(fields: Payload, names: Sequence[str]) -> str:
    for key in names:
        if isinstance(value := fields.get(key), str) and value:
            return value
    return ""


def _project_of(tables: Tables, delivery: Delivery, fields: Payload) -> str | None:
    variable, name = tables.definition.project_variable, tables.definition.project
    return one_path(delivery.env.get(variable) if variable else fields.get(name))


def _common_fields(tables: Tables, delivery: Delivery, payload: Payload, native: str) -> Data:
    data = normalise.pick_fields(payload, tables.common)
    if "cwd" not in data and (cwd := one_path(delivery.cwd)):
        data["cwd"] = cwd
    data["native"] = native
    data.update(_agent_process(tables, delivery))
    return data


def _agent_process(tables: Tables, delivery: Delivery) -> dict[str, int]:
    """A shell between the agent and the hook ends at once: then only the id in the environment is known."""
    pid = delivery.env.get(tables.definition.process_variable, "")
    if pid.isdecimal() and len(pid) < 11 and int(pid) != delivery.pid:
        return {"pid": int(pid)}
    return parent_process(delivery)


def parent_process(delivery: Delivery) -> dict[str, int]:
    if not delivery.pid:
        return {}
    return {"pid": delivery.pid, "pid_start": delivery.start} if delivery.start else {"pid": delivery.pid}


def add_tool(tables: Tables, data: Data, payload: Payload) -> None:
    definition = tables.definition
    tool_input = normalise.mapping_or_empty(payload.get(definition.tool_input))
    data["action"] = action = action_of(tables.tools, payload.get(definition.tool_name))
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


def mark_exit(data: Data, code: int | None) -> None:
    """The exit code of a command, where the agent reports one; another tool has none."""
    data["ok"] = True
    if data["action"] == "shell" and code is not None:
        data["exit_code"], data["ok"] = code, code == 0


def mark_failed(data: Data, problem: Any) -> None:
    data["ok"] = False
    if data.get("action") == "shell" and (code := normalise.exit_code_in(problem)) is not None:
        data["exit_code"] = code


def remove_own_words(data: Data, _payload: Payload) -> None:
    """For agents that hand our contexts and reasons back as prompts: without a person's words a prompt is synthetic."""
    prompt: Any = data.get("prompt")
    if isinstance(prompt, str):
        data["prompt"] = prompt = without_contexts(prompt)
    if not prompt or prompt.startswith(VOICE):
        data["synthetic"] = True


# Marks: what distinguishes one happening from another, so that a second registration of our hooks makes no second event.

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
    """For agents that put a time into every payload, the same for all hooks. An end may be reported several times with
    different times; one process ends a session once."""
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


# Environment variables that the hook clients send; `tools/generated_blocks.py` writes the list into both.

HOOK_ENVIRONMENT = (
    "CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_PROJECT", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "CODEX_HOME", "COPILOT_HOME", "CURSOR_VERSION",
    "CURSOR_PROJECT_DIR", "QWEN_PROJECT_DIR", "TERM_PROGRAM", "TMUX_PANE",
    "HOLDFAST_PROJECT", "HOLDFAST_PAUSE", "CLAUDE_SKIP_REQUIREMENTS",
)  # fmt: skip
