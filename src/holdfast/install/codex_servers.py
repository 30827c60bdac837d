"""Our MCP server in Codex's `config.toml`: one table at the end of the file, everything else untouched."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from holdfast.core.agent import Agent
from holdfast.install.finding import Found
from holdfast.install.json_text import BrokenJson
from holdfast.install.mcp_servers import NAME, entry, is_ours

SECTION = "mcp_servers"
TABLE = re.compile(rf"(?:\r?\n)?^\[{SECTION}\.{NAME}\][^\n]*\n(?:(?!\s*\[)[^\n]*(?:\n|\Z))*", re.MULTILINE)
"""With the blank line before it, up to the next table."""


class CodexServers:
    """A file that its owner and Codex write too."""

    all_ours = False
    secret_at_home = True

    def wanted(self, _agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        return {NAME: entry(state)}

    def with_ours(self, text: str, _agent: Agent, state: Path) -> str:
        there = _named(_parsed(text))
        if there is not None and (not is_ours(there) or there == entry(state)):
            return text
        rest = _without(text) if there is not None else text
        ending = "" if not rest or rest.endswith("\n") else "\n"
        return _checked(f"{rest}{ending}{chr(10) if rest else ''}{_table(entry(state))}")

    def without_ours(self, text: str, _before: str) -> str:
        return _without(text) if self.found(text) else text

    def found(self, text: str) -> list[Found]:
        there = _named(_parsed(text))
        if there is None or not is_ours(there):
            return []
        header = text.find(f"[{SECTION}.{NAME}]")
        return [Found(NAME, text.count("\n", 0, max(0, header)) + 1, there)]

    def foreign(self, text: str) -> Any:
        value = _parsed(text)
        servers = value.get(SECTION)
        if not isinstance(servers, dict):
            return value
        others = {name: one for name, one in servers.items() if name != NAME or not is_ours(one)}
        return {**value, SECTION: others} if others else {k: v for k, v in value.items() if k != SECTION}

    def outline(self, _text: str) -> bytes:
        return b""

    def switched_off(self, _text: str) -> str:
        return ""


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise BrokenJson(f"not TOML: {error}", 0) from None


def _named(value: dict[str, Any]) -> Any:
    servers = value.get(SECTION, {})
    if not isinstance(servers, dict):
        raise BrokenJson(f"{SECTION} is not a table", 0)
    return servers.get(NAME)


def _checked(text: str) -> str:
    """Servers written as one inline table cannot be added to: then nothing is written."""
    _parsed(text)
    return text


def _without(text: str) -> str:
    return _checked(TABLE.sub("", text, count=1))


def _table(ours: dict[str, Any]) -> str:
    lines = [f"[{SECTION}.{NAME}]", f"command = {json.dumps(ours['command'])}", f"args = {json.dumps(ours['args'])}"]
    if environment := ours.get("env"):
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines) + "\n"
