"""How an agent's file holds our hooks: among other settings, or as a file that is all ours."""

import json
from pathlib import Path
from typing import Any, Protocol

from holdfast.core.agent import Agent
from holdfast.install import hooks_text
from holdfast.install.json_edit import BrokenJson, line_of, parse_json
from holdfast.install.locations import Found
from holdfast.install.mcp_servers import CodexServers, Servers
from holdfast.install.status_line import StatusLine

COMMAND = "const COMMAND = "
MARK = "// Holdfast "


class Layout(Protocol):
    all_ours: bool
    secret_at_home: bool
    """The user's own such file may hold keys: no copy of it is kept."""

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]: ...
    def with_ours(self, text: str, agent: Agent, state: Path) -> str: ...
    def without_ours(self, text: str, before: str) -> str: ...
    def found(self, text: str) -> list[Found]: ...
    def foreign(self, text: str) -> Any: ...
    def outline(self, text: str) -> bytes:
        """As much of a file whose copy is not kept as `without_ours` needs to know."""
        ...

    def switched_off(self, text: str) -> str: ...


class Settings:
    """A JSON file with everything else the user has set."""

    all_ours = False
    secret_at_home = False

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

    def found(self, text: str) -> list[Found]:
        root = hooks_text.parse_checked(hooks_text.ensure_json_object(text))
        ours = hooks_text.ours_in(root)
        return [Found(event, line_of(text, at.items[i].start), at.items[i].value) for event, at, i in ours]

    def foreign(self, text: str) -> Any:
        """The version that a new file must have is nobody's."""
        return {key: value for key, value in hooks_text.foreign_values(text).items() if key != "version"}

    def outline(self, text: str) -> bytes:
        return text.encode()

    def switched_off(self, text: str) -> str:
        value = parse_json(hooks_text.ensure_json_object(text)).value
        general = value.get("hooksConfig")
        if value.get("disableAllHooks") is True:
            return "disableAllHooks is on"
        return "hooksConfig.enabled is off" if isinstance(general, dict) and general.get("enabled") is False else ""


class OwnFile:
    """A program file that we wrote. Nobody else's is ever replaced."""

    all_ours = True
    secret_at_home = False

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        command, *words = hooks_text.our_words(state)
        return {"plugin": {"command": command, "args": words}} if agent.setup else {}

    def with_ours(self, text: str, agent: Agent, state: Path) -> str:
        if text.strip() and not self.found(text):
            raise BrokenJson("there is another file of this name", 0)
        return agent.setup.text(hooks_text.our_words(state)) if agent.setup and agent.setup.text else ""

    def without_ours(self, text: str, _before: str) -> str:
        return "" if self.found(text) else text

    def found(self, text: str) -> list[Found]:
        lines = text.splitlines() if text.startswith(MARK) else []
        for number, line in enumerate(lines, 1):
            if line.startswith(COMMAND):
                return [Found("plugin", number, _parse_command_line(line))]
        return []

    def foreign(self, text: str) -> Any:
        return "" if self.found(text) else text.strip()

    def outline(self, text: str) -> bytes:
        return text.encode()

    def switched_off(self, _text: str) -> str:
        return ""


def _parse_command_line(line: str) -> dict[str, Any]:
    try:
        words = json.loads(line.removeprefix(COMMAND))
        return {"command": words[0], "args": words[1:]}
    except (ValueError, LookupError, TypeError):
        return {"command": "", "args": []}


def layout_of(agent: Agent) -> Layout:
    if agent.setup and agent.setup.layout == "mcp":
        return CodexServers() if agent.setup.mcp_format == "codex" else Servers(agent.setup.mcp_format)
    if agent.setup and agent.setup.layout == "statusline":
        return StatusLine(agent.setup.status_line)
    return OwnFile() if agent.setup and agent.setup.layout == "text" else Settings()
