"""Runs the real Factory droid against the scripted model."""

from __future__ import annotations

from .agent import Agent
from .recorder import write_settings

MODEL = "custom:scripted-0"


class Droid(Agent):
    """`run()` is `droid exec`; tools run without asking."""

    def agent_env(self) -> dict[str, str]:
        """Its own switch for machines without a network; without it even a model of one's own needs a login."""
        return {"FACTORY_AIRGAP_ENABLED": "true", "FACTORY_DISABLE_KEYRING": "true", "FACTORY_API_KEY": "fk-scripted"}

    def prepare(self) -> None:
        """The scripted model as a custom one."""
        model = {
            "model": "scripted",
            "displayName": "scripted",
            "id": MODEL,
            "index": 0,
            "baseUrl": self.model.url + "/v1",
            "apiKey": "scripted",
            "provider": "generic-chat-completion-api",
            "maxOutputTokens": 8000,
        }
        settings = {"customModels": [model], "sessionDefaultSettings": {"model": MODEL}, "cloudSessionSync": False}
        write_settings(self.home / ".factory" / "settings.json", settings)

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """One prompt without a terminal."""
        return [str(self.executable), "exec", "-m", MODEL, "--skip-permissions-unsafe", *args, prompt]
