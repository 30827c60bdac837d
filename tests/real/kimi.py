"""Runs the real Kimi Code against the scripted model."""

from __future__ import annotations

import json
import os

from .agent import Agent

CONFIG = """\
default_model = "scripted"

[providers.scripted]
type = "openai"
api_key = "scripted"
base_url = {url}

[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 200000

"""


class Kimi(Agent):
    """`run()` is `kimi -p`; tools run without asking. It wants node 22, which npm brings along."""

    def agent_env(self) -> dict[str, str]:
        """Its newer node first on the PATH, and no updates."""
        node = self.executable.parent
        return {"PATH": f"{node}:{os.environ.get('PATH', os.defpath)}", "KIMI_CODE_NO_AUTO_UPDATE": "1"}

    def prepare(self) -> None:
        """The scripted model as provider."""
        folder = self.home / ".kimi-code"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(CONFIG.format(url=json.dumps(self.model.url + "/v1")))

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        return [str(self.executable), *args, "-p", prompt]
