"""Runs the real Claude Code against the scripted model."""

from __future__ import annotations

import json

from .agent import Agent

KEY = "sk-ant-scripted-0123456789abcdef0123456789"
# The default mode, "auto", asks a classifier on the provider's side and refuses everything when run offline.
MODE = "--permission-mode"


class ClaudeCode(Agent):
    """`run()` is `claude -p`, `tui()` the terminal; tools run without asking unless a permission mode is given."""

    ready = "\u276f"  # the prompt sign of its input line

    def agent_env(self) -> dict[str, str]:
        """Loopback model, dummy key, and every switch that keeps it from calling home."""
        switches = (
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL",
            "DISABLE_AUTOUPDATER",
            "DISABLE_BUG_COMMAND",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
            "IS_SANDBOX",  # or it refuses to skip permissions as root
        )
        return {"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": KEY} | dict.fromkeys(switches, "1")

    def prepare(self) -> None:
        """Answers to every question of the first start."""
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(state))
        settings = self.home / ".claude" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps({"skipDangerousModePermissionPrompt": True}))

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """The prompt comes first: some options take any number of values and would swallow it."""
        return [str(self.executable), "-p", prompt, *_with_mode(args)]

    def interactive(self, args: tuple[str, ...]) -> list[str]:
        """Same permission mode as headless."""
        return [str(self.executable), *_with_mode(args)]


def _with_mode(args: tuple[str, ...]) -> tuple[str, ...]:
    return args if MODE in args else (MODE, "bypassPermissions", *args)
