"""Runs the real opencode against the scripted model; it has plugins instead of hooks."""

from __future__ import annotations

from .agent import Agent
from .recorder import write_settings


class OpenCode(Agent):
    """`run()` is `opencode run`, which allows every tool."""

    ready = "Ask anything"

    def agent_env(self) -> dict[str, str]:
        """Every switch that keeps it from fetching things."""
        switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in switches}

    def prepare(self) -> None:
        """The scripted model as provider."""
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": self.model.url + "/v1", "apiKey": "scripted"},
            "models": {
                "scripted": {"name": "scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
            },
        }
        settings = {"provider": {"scripted": provider}, "model": "scripted/scripted", "share": "disabled"}
        write_settings(self.home / ".config" / "opencode" / "opencode.json", settings | {"autoupdate": False})

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        return [str(self.executable), "run", *args, prompt]
