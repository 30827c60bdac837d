"""Runs the real Qwen Code against the scripted model."""

from __future__ import annotations

from .agent import Agent
from .recorder import write_settings

SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
    "general": {"disableAutoUpdate": True, "disableUpdateNag": True, "enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "ui": {"hideTips": True, "hideBanner": True},
}


class Qwen(Agent):
    """`run()` is `qwen -p`; tools run without asking unless an approval mode is given."""

    ready = "Type your message"

    def agent_env(self) -> dict[str, str]:
        """Loopback model and dummy key."""
        address = {"OPENAI_BASE_URL": self.model.url + "/v1", "OPENAI_API_KEY": "scripted"}
        return address | {"OPENAI_MODEL": "scripted"}

    def prepare(self) -> None:
        """No dialogs, no statistics, no updates."""
        write_settings(self.home / ".qwen" / "settings.json", SETTINGS)

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        return [*self.interactive(args), "-p", prompt]

    def interactive(self, args: tuple[str, ...]) -> list[str]:
        """Same approval mode as headless."""
        return [str(self.executable), *(args if "--approval-mode" in args else ("--approval-mode", "yolo", *args))]
