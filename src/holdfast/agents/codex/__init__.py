"""Codex CLI, as version 0.166.0 behaves (docs/agents.md says how we know)."""

from functools import partial

from holdfast.agents import payload_reader, shell_entry
from holdfast.agents.codex.hooks import ANSWERS, ENFORCES, HOOKS, TABLES, TOOLS, recognise_payload
from holdfast.agents.codex.trust import hold_up
from holdfast.core.agent import Agent, Setup
from holdfast.core.lazy import lazy_attribute

SETUP = Setup(
    files={"user": ".codex/hooks.json", "project": ".codex/hooks.json"},
    hooks_too=(".codex/config.toml",),
    entry=shell_entry.entry_in_seconds,
    mcp={"user": ".codex/config.toml", "project": ".codex/config.toml"},
    mcp_format="toml",
    folder=".codex",
    oldest=(0, 153, 0),
    hold_up=hold_up,
    review="start codex, type /hooks, and trust Holdfast's",
    afterwards="Codex runs new hooks only after you reviewed them: start `codex`, type /hooks and trust Holdfast's. "
    "`codex exec` skips unreviewed hooks without a word.",
)

AGENT = Agent(
    name="codex",
    title="Codex CLI",
    hooks=HOOKS,
    read=partial(payload_reader.read_agent_event, TABLES),
    write=partial(payload_reader.write_reply, ANSWERS),
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    mark=payload_reader.by_numbered_ids,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("codex", "exec"),
    aliases=("codex-cli",),
    untold=frozenset(("exit_code",)),
)
