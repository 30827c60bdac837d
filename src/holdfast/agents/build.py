"""An agent from its tables: what reads its hooks, writes the replies and the entries of its settings file."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.agents import payload_reader
from holdfast.agents.definition import Tables
from holdfast.agents.replies import ReplyRules, write_reply
from holdfast.core.agent import Agent, Hook, Payload, Setup, Untold
from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.lazy import lazy_attribute

_MARKS = {
    "ids": payload_reader.by_ids,
    "numbered_ids": payload_reader.by_numbered_ids,
    "time": payload_reader.by_time,
}


def make_agent(
    package: str,
    tables: Tables,
    recognise: Callable[[Delivery, Payload], bool],
    *,
    mark: Callable[[Event, Payload], str] | None = None,
    **setup_code: Any,
) -> Agent:
    definition = tables.definition
    untold: frozenset[Untold] = msgspec.convert(definition.untold.split(), frozenset[Untold])
    rules, more = ReplyRules(definition.reply), dict[str, Any]()
    if mark := mark or _MARKS.get(definition.mark):
        more["mark"] = mark
    if definition.transcripts:
        more["transcripts"] = lazy_attribute(package, "history", "TRANSCRIPTS")
    return Agent(
        name=definition.name,
        title=definition.title,
        hooks=tuple(
            Hook(event, row.kind, row.mode, row.register, row.timeout, row.matcher)
            for event, row in definition.hooks.items()
        ),
        read=partial(payload_reader.read_agent_event, tables),
        write=partial(write_reply, rules),
        carried=rules.carried,
        recognise=recognise,
        enforces={kind: how for how, kinds in definition.enforces.items() for kind in kinds.split()},
        tools=tables.tools,
        setup=_as_setup(definition.setup, setup_code) if definition.setup else None,
        headless=tuple(definition.headless.split()),
        starts_with_hook=definition.starts_with_hook,
        errands=frozenset(definition.errands.split()),
        aliases=tuple(definition.aliases.split()),
        untold=untold,
        waits=definition.waits,
        **more,
    )


def _as_setup(row: dict[str, Any], code: dict[str, Any]) -> Setup:
    """`entry` is a template of one hook entry."""
    fields = row | code | {"entry": partial(_hook_entry, row["entry"])}
    fields |= {name: tuple(row[name]) for name in ("oldest", "hooks_too") if name in row}
    return Setup(**fields)


def _hook_entry(template: dict[str, Any], hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    program, *arguments = command
    values = {
        "$program": program,
        "$arguments": arguments,
        "$line": shell_line(command),
        "$seconds": int(hook.timeout),
        "$milliseconds": int(hook.timeout * 1000),
    }
    return {name: values.get(value, value) for name, value in template.items()}


def shell_line(command: Sequence[str]) -> str:
    """`exec` spares the shell that would otherwise wait, and makes the agent our parent."""
    return "exec " + shlex.join(command)
