"""The coding agents Holdfast understands: each is a folder here, and a word in `FOLDERS`."""

from importlib import import_module

from holdfast.core.agent import Agent

FOLDERS = (
    "claude_code", "codex", "gemini", "copilot", "cursor", "opencode", "qwen", "droid", "kimi", "custom",
)  # fmt: skip
_AGENTS: list[Agent] = [import_module(f"{__name__}.{folder}").AGENT for folder in FOLDERS]
AGENTS = {agent.name: agent for agent in _AGENTS}
