"""Factory droid, as version 0.225.2 behaves (docs/agents.md says how we know)."""

from functools import partial

from holdfast.agents import payload_reader, shell_entry
from holdfast.agents.droid.hooks import ANSWERS, ENFORCES, HOOKS, TABLES, TOOLS, recognise_payload
from holdfast.core.agent import Agent, Setup
from holdfast.core.lazy import lazy_attribute

SETUP = Setup(
    files={"user": ".factory/settings.json", "project": ".factory/settings.json"},
    entry=shell_entry.entry_in_seconds,
    mcp={"user": ".factory/mcp.json", "project": ".factory/mcp.json"},
    mcp_format="droid",
    folder=".factory",
    oldest=(0, 225, 0),
    afterwards="droid reads these only where there is no hooks.json beside: move them there if you have one.",
)

AGENT = Agent(
    name="droid",
    title="Factory droid",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=partial(payload_reader.write_reply, ANSWERS),
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_ids,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("droid", "exec"),
    untold=frozenset(("answer", "failure")),
)
