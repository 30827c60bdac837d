"""From an agent's payload to an event, by tables: each adapter says what its fields are called, this reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.agents import normal
from holdfast.agents.normal import NAME, flag, number, one_path, words
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.ids import bounded

Data = dict[str, Any]
Fields = tuple[tuple[str, str, Callable[[Any], Any]], ...]
"""(our name, the agent's name, cleaner)"""

name = words(NAME)
prompt, message, error = words(normal.PROMPT), words(normal.MESSAGE), words(normal.ERROR)


def count(value: Any) -> int | None:
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
    process: Callable[[Delivery], Mapping[str, int]] = lambda delivery: parent_process(delivery)
    extras: Mapping[str, Callable[[Data, Payload], None]] = field(default_factory=dict)
    """Event → what the tables cannot say, as a change to the data."""
    kind_of: Callable[[str, Data], str] | None = None
    """Where the same event can mean two things."""


def read(tables: Tables, delivery: Delivery, payload: Payload) -> Event:
    """The body is left to whoever stores the event: it is redacted and cut the same way for every agent."""
    known = normal.mapping(payload)
    native = tables.native(delivery, known)
    native = bounded(native) if isinstance(native, str) and native else bounded(delivery.event)
    data = _common(tables, delivery, known, native)
    data.update(normal.picked(known, tables.fields.get(native, ())))
    if native in tables.with_tool:
        add_tool(tables, data, known)
    if extra := tables.extras.get(native):
        extra(data, known)
    session, tool = tables.session(known), known.get(tables.tool_name)
    kind = tables.kinds.get(native, "unknown") if isinstance(payload, Mapping) else "unknown"
    return Event(
        key=delivery.key,
        kind=tables.kind_of(kind, data) if tables.kind_of else kind,
        at=delivery.at,
        session=bounded(session) if isinstance(session, str) else "",
        project=tables.project(delivery, known) or data.get("cwd", ""),
        agent=tables.agent,
        tool=bounded(tool) if isinstance(tool, str) else "",
        data=data,
    )


def _common(tables: Tables, delivery: Delivery, payload: Payload, native: str) -> Data:
    data = normal.picked(payload, tables.common)
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
    given = normal.mapping(payload.get(tables.tool_input))
    data["action"] = action = action_of(tables.tools, payload.get(tables.tool_name))
    if given:
        data["input"] = normal.trimmed(given)
    if action == "shell" and (command := words(normal.COMMAND)(given.get("command"))):
        data["command"] = command
    if paths := normal.paths_in(given, data.get("cwd", "")):
        data["paths"] = paths
    if action == "skill" and (skill := _skill(given)):
        data["skill"] = skill


def action_of(tools: Mapping[str, str], tool: Any) -> str:
    if not isinstance(tool, str):
        return "other"
    return tools.get(tool) or ("mcp" if tool.startswith(("mcp__", "mcp_", "MCP:")) else "other")


def _skill(given: Mapping[str, Any]) -> str | None:
    named = given.get("skill") or given.get("name") or given.get("command")
    if not isinstance(named, str) or not named.strip(" /"):
        return None
    return name(named.strip().removeprefix("/").split(maxsplit=1)[0])


def add_output(data: Data, response: Any) -> None:
    """An edit only repeats its input."""
    if data.get("action") != "edit" and (output := normal.output_text(response)):
        data["output"] = output


def failed(data: Data, problem: Any) -> None:
    data["ok"] = False
    if data.get("action") == "shell" and (code := normal.exit_code_in(problem)) is not None:
        data["exit_code"] = code


TOOL: Fields = (("call", "tool_use_id", name), ("ms", "duration_ms", number))
ENDED: Fields = (
    ("message", "last_assistant_message", message),
    ("again", "stop_hook_active", flag),
    ("background", "background_tasks", count),
)
COMPACT: Fields = (("trigger", "trigger", name), ("instructions", "custom_instructions", message))
STARTED: Fields = (("source", "source", name),)
OVER: Fields = (("reason", "reason", name),)
NOTE: Fields = (("message", "message", message), ("topic", "notification_type", name))
FAILURE: Fields = (*TOOL, ("error", "error", error), ("interrupted", "is_interrupt", flag))
LANE_ENDED: Fields = (*ENDED, ("lane_transcript", "agent_transcript_path", one_path))
PROMPT: Fields = (("prompt", "prompt", prompt),)
