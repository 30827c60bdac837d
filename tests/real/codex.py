"""Runs the real Codex CLI against the scripted model."""

from __future__ import annotations

import json

from .agent import Agent

BYPASS = "--dangerously-bypass-approvals-and-sandbox"
# Hooks nobody has reviewed are skipped without a word; a test has nobody to review them.
TRUST = "--dangerously-bypass-hook-trust"
CONFIG = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = {url}
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[features]
apps = false
daemon_auto_start = false
plugins = false

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"

[tui]
screen_reader_detection_done = true
show_tooltips = false

[projects.{project}]
trust_level = "trusted"
"""


class Codex(Agent):
    """`run()` is `codex exec`; tools run without asking and outside a sandbox unless `asking` is set."""

    ready = r"GPT-5\.5 \w+ \u00b7"  # its status line; the input line is there earlier, but loses what is typed
    asking = False

    def agent_env(self) -> dict[str, str]:
        """A dummy key; the model's address is in the settings file."""
        return {"SCRIPTED_KEY": "scripted"}

    def prepare(self) -> None:
        """The scripted model as provider, the project trusted."""
        folder = self.home / ".codex"
        folder.mkdir(exist_ok=True)
        # A JSON string is a TOML string too.
        url, project = json.dumps(self.model.url + "/v1"), json.dumps(str(self.project))
        (folder / "config.toml").write_text(CONFIG.format(url=url, project=project))

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """Arguments such as `resume --last` are sub-commands, so they come before the prompt."""
        return [str(self.executable), "exec", *self._switches(), *args, prompt]

    def interactive(self, args: tuple[str, ...]) -> list[str]:
        """The same switches in a terminal."""
        return [str(self.executable), *self._switches(), *args]

    def _switches(self) -> list[str]:
        return [TRUST] if self.asking else [TRUST, BYPASS]
