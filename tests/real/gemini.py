"""Runs the real Gemini CLI against the scripted model."""

from __future__ import annotations

from .agent import Agent
from .recorder import write_settings

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "ide": {"hasSeenNudge": True},
    "ui": {"hideTips": True, "hideBanner": True},
}


class Gemini(Agent):
    """`run()` is `gemini -p`; tools run without asking unless an approval mode is given."""

    ready = "Type your message"

    def agent_env(self) -> dict[str, str]:
        """Loopback model and dummy key."""
        return {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": self.model.url}

    def prepare(self) -> None:
        """No dialogs, no statistics, no updates."""
        write_settings(self.home / ".gemini" / "settings.json", SETTINGS)

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        return [*self.interactive(args), "-p", prompt]

    def interactive(self, args: tuple[str, ...]) -> list[str]:
        """Same approval mode as headless."""
        return [str(self.executable), *(args if "--approval-mode" in args else ("--approval-mode", "yolo", *args))]
