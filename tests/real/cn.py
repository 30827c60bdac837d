"""Runs the real Continue CLI against the scripted model."""

from __future__ import annotations

import json

from .agent import Agent

CONFIG = """\
name: scripted
version: 1.0.0
schema: v1
models:
  - name: scripted
    provider: openai
    model: scripted
    apiBase: {url}
    apiKey: scripted
    roles: [chat]
    capabilities: [tool_use]
"""


class Continue(Agent):
    """`run()` is `cn -p`; tools run without asking."""

    def agent_env(self) -> dict[str, str]:
        """No statistics."""
        return {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_METRICS_ENABLED": "0"}

    def prepare(self) -> None:
        """The scripted model."""
        folder = self.home / ".continue"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(CONFIG.format(url=json.dumps(self.model.url + "/v1")))

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        config = str(self.home / ".continue" / "config.yaml")
        return [str(self.executable), "-p", "--config", config, "--auto", *args, prompt]
