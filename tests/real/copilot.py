"""Runs the real GitHub Copilot CLI against the scripted model."""

from __future__ import annotations

from .agent import Agent
from .recorder import write_settings


class Copilot(Agent):
    """`run()` is `copilot -p`; tools run without asking unless `asking` is set."""

    ready = "\u276f"  # the prompt sign of its input line
    asking = False

    def agent_env(self) -> dict[str, str]:
        """A provider of one's own, and no login."""
        return {
            "COPILOT_PROVIDER_BASE_URL": self.model.url + "/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "scripted",
            "COPILOT_MODEL": "scripted",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def prepare(self) -> None:
        """The project trusted: in any other folder it runs no hooks."""
        write_settings(
            self.home / ".copilot" / "config.json", {"trusted_folders": [str(self.project)], "banner": "never"}
        )

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        return [*self.interactive(args), "-p", prompt]

    def interactive(self, args: tuple[str, ...]) -> list[str]:
        """Same permissions as headless."""
        return [str(self.executable), *([] if self.asking else ["--allow-all-tools", "--allow-all-paths"]), *args]
