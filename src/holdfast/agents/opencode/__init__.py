"""opencode, as version 1.18.33 behaves. It has plugins instead of hooks: ours (opencode_plugin.js) runs the hook."""

from collections.abc import Sequence
from typing import Any

from holdfast.agents.opencode.hooks import (
    COMMAND,
    ENFORCES,
    HOOKS,
    PLUGIN,
    TOOLS,
    read_event,
    recognise_payload,
    write_reply,
)
from holdfast.core.agent import Agent, Hook, Setup
from holdfast.core.lazy import lazy_attribute


def _plugin_text(command: Sequence[str]) -> str:
    import json  # Here, because a daemon's start should not wait for it.

    before, _, after = PLUGIN.read_text().partition(f"{COMMAND}[]")
    return f"{before}{COMMAND}{json.dumps(list(command), ensure_ascii=False)}{after}"


def _hook_entry(_hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:])}


SETUP = Setup(
    files={"user": ".config/opencode/plugin/holdfast.js", "project": ".opencode/plugin/holdfast.js"},
    entry=_hook_entry,
    layout="text",
    text=_plugin_text,
    mcp={"user": ".config/opencode/opencode.json", "project": "opencode.json"},
    mcp_format="opencode",
    folder=".config/opencode",
    oldest=(1, 0, 0),
)

AGENT = Agent(
    name="opencode",
    title="opencode",
    hooks=HOOKS,
    read=read_event,
    write=write_reply,
    recognise=recognise_payload,
    enforces=ENFORCES,
    tools=TOOLS,
    setup=SETUP,
    transcripts=lazy_attribute(__name__, "history", "TRANSCRIPTS"),
    headless=("opencode", "run"),
)
