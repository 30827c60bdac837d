"""Writes plugin/hooks/hooks.json, the hooks of the Claude Code plugin, from the adapter. `python tools/plugin.py`."""

import json
from pathlib import Path

from holdfast import __version__
from holdfast.agents import AGENTS
from holdfast.core.agent import Hook

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugin"
# Where Holdfast itself is not installed the plugin does nothing; its input is still read, or the agent's pipe breaks.
LINE = (
    "command -v holdfast-hook >/dev/null || {{ cat >/dev/null; {missing}exit 0; }}; "
    "exec holdfast-hook {mode} claude-code {event}"
)
HOW_TO_GET_IT = (
    'echo \'{"systemMessage": "The Holdfast plugin records nothing: the program is not installed. '
    "Run: uv tool install holdfast-agents\"}'; "
)
"""Said once per session, when it starts."""


def hooks_file() -> str:
    hooks = {hook.event: [{"hooks": [_entry(hook)]}] for hook in AGENTS["claude-code"].hooks if hook.register}
    return json.dumps({"description": "Every hook becomes one durable event.", "hooks": hooks}, indent=2) + "\n"


def _entry(hook: Hook) -> dict:
    missing = HOW_TO_GET_IT if hook.kind == "session.started" else ""
    line = LINE.format(mode=hook.mode, event=hook.event, missing=missing)
    return {"type": "command", "command": line, "timeout": int(hook.timeout)}


def manifest() -> str:
    return json.dumps({
        "name": "holdfast",
        "version": __version__,
        "description": "Keeps the state of AI coding sessions: what is open, what was proven, where you were.",
        "license": "Apache-2.0",
        "keywords": ["hooks", "sessions", "gates", "memory"],
    }, indent=2) + "\n"  # fmt: skip


def marketplace() -> str:
    plugin = {"name": "holdfast", "source": "./plugin", "description": "Session state, gates and hand-over for agents."}
    return json.dumps({"name": "holdfast", "owner": {"name": "Holdfast"}, "plugins": [plugin]}, indent=2) + "\n"


FILES = {
    PLUGIN / "hooks" / "hooks.json": hooks_file,
    PLUGIN / ".claude-plugin" / "plugin.json": manifest,
    ROOT / ".claude-plugin" / "marketplace.json": marketplace,
}


def main() -> None:
    for file, text in FILES.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text())


if __name__ == "__main__":
    main()
