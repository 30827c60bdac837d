"""GitHub Copilot CLI, as version 1.0.102 behaves (docs/agents.md says how we know)."""

from collections.abc import Sequence
from typing import Any

from holdfast.agents import shell_entry
from holdfast.agents.copilot.hooks import ENFORCES, HOOKS, TOOLS, event_mark, read_event, recognise_payload, write_reply
from holdfast.core.agent import Agent, Hook, Setup
from holdfast.core.lazy import lazy_attribute


def _hook_entry(hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    return {"type": "command", "bash": shell_entry.shell_line(command), "timeoutSec": int(hook.timeout)}


SETUP = Setup(
    files={"user": ".copilot/hooks/holdfast.json", "project": ".github/hooks/holdfast.json"},
    hooks_too=(".github/hooks/*.json",),
    entry=_hook_entry,
    layout="list",
    blank={"version": 1},
    mcp={"user": ".copilot/mcp-config.json", "project": ".github/mcp.json"},
    mcp_format="copilot",
    folder=".copilot",
    oldest=(1, 0, 0),
    afterwards="Copilot runs hooks only in folders you trust; it asks when it starts there.",
)

AGENT = Agent(
    name="copilot",
    title="GitHub Copilot CLI",
    hooks=HOOKS,
    read=read_event,
    write=write_reply,
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=event_mark,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("copilot", "-p"),
    aliases=("github-copilot", "copilot-cli"),
    untold=frozenset(("answer",)),
)
