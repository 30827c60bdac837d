"""Qwen Code, as version 0.24.4 behaves: Claude's events over Gemini's tools (docs/agents.md says how we know)."""

from functools import partial

from holdfast.agents import payload_reader, shell_entry
from holdfast.agents.qwen.hooks import ANSWERS, ENFORCES, HOOKS, TABLES, TOOLS, recognise_payload
from holdfast.core.agent import Agent, Setup
from holdfast.core.lazy import lazy_attribute

SETUP = Setup(
    files={"user": ".qwen/settings.json", "project": ".qwen/settings.json"},
    entry=shell_entry.entry_in_seconds,
    mcp={"user": ".qwen/settings.json", "project": ".qwen/settings.json"},
    folder=".qwen",
    oldest=(0, 20, 0),
)

AGENT = Agent(
    name="qwen",
    title="Qwen Code",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=partial(payload_reader.write_reply, ANSWERS, stop_reason=payload_reader.spoken_reason),
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_time,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("qwen", "-p"),
    aliases=("qwen-code",),
)
