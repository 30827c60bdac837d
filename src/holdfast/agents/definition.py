"""An agent as data: `agent.toml` in its folder names its hooks, their fields, its tools, its replies and its settings file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from holdfast.agents.fields import Fields, parse_fields
from holdfast.core.agent import Enforcement, Mode, Payload
from holdfast.core.data_files import load_data

Data = dict[str, Any]
"""The fields of an event while it is read."""


class HookRow(msgspec.Struct, forbid_unknown_fields=True):
    """One hook event. `fields` is a text of `ours=theirs:cleaner`, of which only the first is needed."""

    kind: str
    mode: Mode = "tell"
    timeout: float = 10
    register: bool = True
    matcher: str = ""
    fields: str = ""
    tool: bool = False
    """It carries a tool and its input."""
    lane_untold: bool = False
    """It comes from subagents too, which it does not name."""
    alias: str = ""
    """Another spelling of the event."""


class ReplyRow(msgspec.Struct, forbid_unknown_fields=True):
    """What a reply says on some events or kinds (all without `on`) with some verdicts. Empty values are left out."""

    on: str = ""
    verdicts: str = ""
    unless: str = ""
    """A flag of the event with which it says nothing."""
    body: dict[str, Any] = {}
    specific: dict[str, Any] = {}
    """Goes into `hookSpecificOutput`."""


class Definition(msgspec.Struct, forbid_unknown_fields=True):
    """What `agent.toml` holds. Texts of several words are lists."""

    name: str
    title: str
    hooks: dict[str, HookRow]
    tools: dict[str, str]
    enforces: dict[Enforcement, str]
    reply: tuple[ReplyRow, ...]
    fields: str
    headless: str = ""
    starts_with_hook: bool = False
    errands: str = ""
    aliases: str = ""
    untold: str = ""
    mark: str = ""
    tool_name: str = "tool_name"
    tool_input: str = "tool_input"
    session: tuple[str, ...] = ("session_id",)
    event: tuple[str, ...] = ("hook_event_name",)
    """Payload fields with the session's id and the event's name: the first that is filled."""
    project: str = ""
    """The payload field with the project's folder."""
    project_variable: str = ""
    process_variable: str = ""
    """The environment variables with the project's folder and with the agent's process id."""
    renames: dict[str, str] = {}
    """Other spellings of payload fields."""
    setup: dict[str, Any] | None = None
    transcripts: bool = True
    waits: Literal["", "beside", "before"] = ""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A definition, compiled for reading, with the functions for what data cannot say."""

    definition: Definition
    aliases: Mapping[str, str]
    common: Fields
    fields: Mapping[str, Fields]
    tools: Mapping[str, str]
    ends_compactions: bool
    prepare: Callable[[Payload], Payload] | None = None
    """Applied to the payload before it is read."""
    extras: Mapping[str, Callable[[Data, Payload], None]] = field(default_factory=dict)
    """Event → a change to the data."""
    kind_of: Callable[[str, Data], str] | None = None
    """Where the same event can mean two things."""


def load_tables(module_file: str, **code: Any) -> Tables:
    """`code`: the functions of the agent, by the fields of `Tables`."""
    definition = load_data(module_file, "agent", Definition)
    hooks = definition.hooks
    return Tables(
        definition=definition,
        aliases={row.alias: event for event, row in hooks.items() if row.alias},
        common=parse_fields(definition.fields),
        fields={event: parse_fields(row.fields) for event, row in hooks.items()},
        tools={tool: action for action, names in definition.tools.items() for tool in names.split()},
        ends_compactions=any(row.kind == "compact.ended" for row in hooks.values()),
        **code,
    )
