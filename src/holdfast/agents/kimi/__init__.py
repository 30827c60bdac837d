"""Kimi Code, as version 2.1.0 behaves (docs/agents.md says how we know)."""

from functools import partial

from holdfast.agents import payload_reader
from holdfast.agents.kimi.hooks import ENFORCES, HOOKS, TABLES, TOOLS, recognise_payload, write_reply
from holdfast.core.agent import Agent
from holdfast.core.lazy import lazy_attribute

AGENT = Agent(
    name="kimi",
    title="Kimi Code",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=write_reply,
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_numbered_ids,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("kimi", "-p"),
    aliases=("kimi-code",),
    untold=frozenset(("answer", "transcript")),
)
