"""Gemini CLI, as version 0.61.0 behaves (docs/agents.md says how we know)."""

from functools import partial

from holdfast.agents import payload_reader, shell_entry
from holdfast.agents.gemini.hooks import ENFORCES, HOOKS, TABLES, TOOLS, recognise_payload, write_reply
from holdfast.core.agent import Agent, Setup
from holdfast.core.lazy import lazy_attribute

SETUP = Setup(
    files={"user": ".gemini/settings.json", "project": ".gemini/settings.json"},
    entry=shell_entry.entry_in_milliseconds(name="holdfast"),
    mcp={"user": ".gemini/settings.json", "project": ".gemini/settings.json"},
    folder=".gemini",
    oldest=(0, 26, 0),
    afterwards="Gemini counts timeouts in milliseconds, so ours look large; a project's hooks need a trusted folder.",
)

AGENT = Agent(
    name="gemini",
    title="Gemini CLI",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=write_reply,
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_time,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("gemini", "-p"),
    aliases=("gemini-cli",),
)
