"""Cursor, from its documentation and from captures others published: we could not run it (docs/agents.md)."""

from collections.abc import Sequence
from typing import Any

from holdfast.agents import payload_reader, shell_entry
from holdfast.agents.cursor.hooks import ENFORCES, HOOKS, TOOLS, read_event, recognise_payload, write_reply
from holdfast.core.agent import Agent, Hook, Setup


def _hook_entry(hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    return {"command": shell_entry.shell_line(command), "timeout": int(hook.timeout)}


SETUP = Setup(
    files={"user": ".cursor/hooks.json", "project": ".cursor/hooks.json"},
    entry=_hook_entry,
    layout="list",
    blank={"version": 1},
    mcp={"user": ".cursor/mcp.json", "project": ".cursor/mcp.json"},
    folder=".cursor",
    afterwards="Cursor may run the hooks of Claude Code's settings files too; what comes twice is kept once.",
)

AGENT = Agent(
    name="cursor",
    title="Cursor (from its documentation)",
    hooks=HOOKS,
    read=read_event,
    write=write_reply,
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_numbered_ids,
    setup=SETUP,
    headless=("cursor-agent", "-p"),
)
