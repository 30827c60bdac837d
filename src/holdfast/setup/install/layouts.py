"""How an agent's file holds our hooks: among other settings, or as a program of our own."""

import json
from pathlib import Path
from typing import Any

from holdfast.core.agent import Agent
from holdfast.setup.install import hooks_text
from holdfast.setup.install.json_edit import BrokenJson, line_of, parse_json
from holdfast.setup.install.locations import HookEntry

COMMAND = "const COMMAND = "
MARK = "// Holdfast "


class Layout:
    """How an agent's file holds what is ours."""

    all_ours = False
    secret_at_home = False
    """The user's own such file may hold keys: no copy of it is kept."""

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        raise NotImplementedError

    def with_ours(self, text: str, agent: Agent, state: Path) -> str:
        raise NotImplementedError

    def without_ours(self, text: str, before: str) -> str:
        raise NotImplementedError

    def find_entries(self, text: str) -> list[HookEntry]:
        raise NotImplementedError

    def foreign(self, text: str) -> Any:
        raise NotImplementedError

    def outline(self, text: str) -> bytes:
        """What `without_ours` needs to know of a file whose copy is not kept."""
        return text.encode()

    def switched_off(self, _text: str) -> str:
        """Why the agent runs no hook of this file; empty if it does."""
        return ""


class Settings(Layout):
    """A JSON file with the user's other settings."""

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        return {event: hooks_text.entry_of(item) for event, item in hooks_text.wanted_entries(agent, state).items()}

    def with_ours(self, text: str, agent: Agent, state: Path) -> str:
        return hooks_text.with_ours(self._begun(text, agent), hooks_text.wanted_entries(agent, state))

    def _begun(self, text: str, agent: Agent) -> str:
        blank = agent.setup.blank if agent.setup else {}
        return text if not blank or text.strip("\ufeff \t\r\n") else json.dumps(blank, indent=2) + "\n"

    def without_ours(self, text: str, before: str) -> str:
        keep = hooks_text.parts_of(before) if before else ()
        return hooks_text.without_ours(hooks_text.ensure_json_object(text), keep)

    def find_entries(self, text: str) -> list[HookEntry]:
        root = hooks_text.parse_checked(hooks_text.ensure_json_object(text))
        ours = hooks_text.ours_in(root)
        return [HookEntry(event, line_of(text, at.items[i].start), at.items[i].value) for event, at, i in ours]

    def foreign(self, text: str) -> Any:
        """The version field that a new file requires is not foreign."""
        return {key: value for key, value in hooks_text.foreign_values(text).items() if key != "version"}

    def switched_off(self, text: str) -> str:
        value = parse_json(hooks_text.ensure_json_object(text)).value
        general = value.get("hooksConfig")
        if value.get("disableAllHooks") is True:
            return "disableAllHooks is on"
        return "hooksConfig.enabled is off" if isinstance(general, dict) and general.get("enabled") is False else ""


class OwnFile(Layout):
    """A program file that we wrote. Nobody else's is ever replaced."""

    all_ours = True

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        command, *words = hooks_text.our_words(state)
        return {"plugin": {"command": command, "args": words}} if agent.setup else {}

    def with_ours(self, text: str, agent: Agent, state: Path) -> str:
        if text.strip() and not self.find_entries(text):
            raise BrokenJson("there is another file of this name", 0)
        return agent.setup.text(hooks_text.our_words(state)) if agent.setup and agent.setup.text else ""

    def without_ours(self, text: str, _before: str) -> str:
        return "" if self.find_entries(text) else text

    def find_entries(self, text: str) -> list[HookEntry]:
        lines = text.splitlines() if text.startswith(MARK) else []
        for number, line in enumerate(lines, 1):
            if line.startswith(COMMAND):
                return [HookEntry("plugin", number, _parse_command_line(line))]
        return []

    def foreign(self, text: str) -> Any:
        return "" if self.find_entries(text) else text.strip()


def _parse_command_line(line: str) -> dict[str, Any]:
    try:
        words = json.loads(line.removeprefix(COMMAND))
        return {"command": words[0], "args": words[1:]}
    except (ValueError, LookupError, TypeError):
        return {"command": "", "args": []}
