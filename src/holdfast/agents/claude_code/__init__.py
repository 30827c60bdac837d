"""Claude Code, as version 2.1.325 behaves (docs/agents.md says how we know)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.agents import payload_reader
from holdfast.agents.claude_code.hooks import ANSWERS, ENFORCES, HOOKS, NAME_OF_AGENT, TABLES, TOOLS, recognise_payload
from holdfast.core.agent import Agent, Hook, Setup
from holdfast.core.lazy import lazy_attribute


def _hook_entry(hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    """Exec form: without a shell between, a hook costs less and its parent is the agent itself."""
    program, *arguments = command
    return {"type": "command", "command": program, "args": arguments, "timeout": int(hook.timeout)}


SETUP = Setup(
    files={
        "user": ".claude/settings.json",
        "project": ".claude/settings.json",
        "local": ".claude/settings.local.json",
    },
    entry=_hook_entry,
    mcp={"user": ".claude.json", "project": ".mcp.json"},
    status_line="statusLine",
    folder=".claude",
    oldest=(2, 1, 139),
)

AGENT = Agent(
    name=NAME_OF_AGENT,
    title="Claude Code",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=partial(payload_reader.write_reply, ANSWERS),
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_ids,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("claude", "-p"),
    aliases=("claude",),
)
