"""Manages our MCP server and our status line in an agent's settings file."""

import dataclasses
import json
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

from holdfast.core.agent import Agent, McpFormat
from holdfast.setup.install import hooks_text
from holdfast.setup.install.hooks_text import ensure_json_object
from holdfast.setup.install.json_edit import (
    BrokenJson,
    Node,
    append_items,
    apply_edits,
    line_of,
    parse_json,
    parse_json_object,
    remove_item,
    style_of,
)
from holdfast.setup.install.layouts import Layout
from holdfast.setup.install.locations import HookEntry

NAME, PROGRAM = "holdfast", "holdfast"
SECTIONS: dict[McpFormat, str] = {"opencode": "mcp"}
STANDARD_SECTION = "mcpServers"


def tools_of(agent: Agent) -> Agent | None:
    """The agent as one whose file of MCP servers is written; None without such a file."""
    if not agent.setup or not agent.setup.mcp:
        return None
    return dataclasses.replace(agent, setup=dataclasses.replace(agent.setup, files=agent.setup.mcp, layout="mcp"))


def server_entry(state: Path, written: McpFormat = "standard") -> dict[str, Any]:
    """Absolute, as a hook is. The state directory comes from the environment: it is a program for people, too."""
    beside = (folder / PROGRAM for folder in hooks_text._script_folders())
    # The bare name is the last resort: the agent may have another PATH.
    program = next((str(path) for path in beside if path.is_file() and os.access(path, os.X_OK)), PROGRAM)
    named = hooks_text.state_words(state)
    environment = {"HOLDFAST_STATE": named[1]} if named else {}
    if written == "opencode":
        local = {"type": "local", "command": [program, "mcp"], "enabled": True}
        return {**local, **({"environment": environment} if environment else {})}
    # Copilot and Droid require how a server is started.
    kind = {"copilot": {"type": "local"}, "droid": {"type": "stdio"}}.get(written, {})
    started = {**kind, "command": program, "args": ["mcp"], **({"env": environment} if environment else {})}
    # Copilot requires a list of allowed tools.
    return {**started, "tools": ["*"]} if written == "copilot" else started


def is_ours(value: Any) -> bool:
    """By what it runs: an entry that somebody wrote under our name stays theirs."""
    words = hooks_text.words_of(value)
    return len(words) >= 2 and Path(words[0]).name == PROGRAM and words[1:] == ["mcp"]


class JsonMember(Layout):
    """A JSON file that its owner and the agent write too: ours is one member of a section, or of the file itself."""

    section = ""
    name = NAME

    def entry(self, agent: Agent, state: Path) -> dict[str, Any]:
        raise NotImplementedError

    def is_ours(self, value: Any) -> bool:
        raise NotImplementedError

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        return {self.name: self.entry(agent, state)}

    def with_ours(self, text: str, agent: Agent, state: Path) -> str:
        text = ensure_json_object(text)
        root, holder, there = self._checked(text)
        ours, style = self.entry(agent, state), style_of(text, root)
        if there is not None:
            # Somebody's own entry stays as it is.
            stale = self.is_ours(there.value) and there.value != ours
            return apply_edits(text, [(there.start, there.end, style.dumps(ours))] if stale else [])
        member = style.member(self.name, style.dumps(ours))
        if holder is None:
            holder, member = root, style.section(self.section, [member])
        return apply_edits(text, append_items(text, holder, [member], style))

    def without_ours(self, text: str, before: str) -> str:
        root, holder, there = self._checked(ensure_json_object(text))
        if holder is None or there is None or not self.is_ours(there.value):
            return text
        was_there = bool(before) and parse_json(ensure_json_object(before)).member(self.section) is not None
        # A section that existed before us stays, even when empty.
        alone = holder is not root and len(holder.items) == 1 and not was_there
        where, what = (root, holder) if alone else (holder, there)
        return apply_edits(text, remove_item(text, where, where.items.index(what)))

    def find_entries(self, text: str) -> list[HookEntry]:
        there = self._checked(ensure_json_object(text))[2]
        ours = there is not None and self.is_ours(there.value)
        return [HookEntry(self.name, line_of(text, there.start), there.value)] if there is not None and ours else []

    def foreign(self, text: str) -> Any:
        value = dict(parse_json(ensure_json_object(text)).value)
        held = value.get(self.section) if self.section else value
        if not isinstance(held, dict):
            return value
        others = {name: one for name, one in held.items() if name != self.name or not self.is_ours(one)}
        return put_section(value, self.section, others) if self.section else others

    def _checked(self, text: str) -> tuple[Node, Node | None, Node | None]:
        """The root, the node that holds our member, and the member; None for what is missing."""
        root = parse_json_object(text)
        if self.section:
            hooks_text.only_once(root, self.section)
        holder = root.member(self.section) if self.section else root
        if holder is None:
            return root, None, None
        if not holder.is_object:
            raise BrokenJson(f'"{self.section}" is not an object', holder.start)
        hooks_text.only_once(holder, self.name)
        return root, holder, holder.member(self.name)


def put_section(value: dict[str, Any], section: str, others: dict[str, Any]) -> dict[str, Any]:
    """A section without entries makes no difference."""
    return {**value, section: others} if others else {k: v for k, v in value.items() if k != section}


class Servers(JsonMember):
    # Entries of other servers may hold keys.
    secret_at_home = True

    def __init__(self, written: McpFormat = "standard") -> None:
        self.written, self.section = written, SECTIONS.get(written, STANDARD_SECTION)

    def entry(self, _agent: Agent, state: Path) -> dict[str, Any]:
        return server_entry(state, self.written)

    def is_ours(self, value: Any) -> bool:
        return is_ours(value)

    def outline(self, text: str) -> bytes:
        there = self.section in parse_json(ensure_json_object(text)).value
        # Only whether there is a section is kept: the rest of the file may hold keys.
        return json.dumps({self.section: {}} if there else {}).encode()


SECTION = "mcp_servers"
TABLE = re.compile(rf"(?:\r?\n)?^\[{SECTION}\.{NAME}\][^\n]*\n(?:(?!\s*\[)[^\n]*(?:\n|\Z))*", re.MULTILINE)
"""With the blank line before it, up to the next table."""


class TomlServers(Layout):
    """A TOML file that its owner and the agent write too: ours is one table at its end."""

    secret_at_home = True

    def wanted(self, _agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        return {NAME: server_entry(state)}

    def with_ours(self, text: str, _agent: Agent, state: Path) -> str:
        there = _our_server(_parse_toml(text))
        if there is not None and (not is_ours(there) or there == server_entry(state)):
            return text
        # Replaced as a whole, because no TOML editor here keeps comments.
        rest = _remove_table(text) if there is not None else text
        ending = "" if not rest or rest.endswith("\n") else "\n"
        # A blank line separates the table from what precedes it.
        return _check_toml(f"{rest}{ending}{chr(10) if rest else ''}{_server_table(server_entry(state))}")

    def without_ours(self, text: str, _before: str) -> str:
        return _remove_table(text) if self.find_entries(text) else text

    def find_entries(self, text: str) -> list[HookEntry]:
        there = _our_server(_parse_toml(text))
        if there is None or not is_ours(there):
            return []
        header = text.find(f"[{SECTION}.{NAME}]")
        return [HookEntry(NAME, text.count("\n", 0, max(0, header)) + 1, there)]

    def foreign(self, text: str) -> Any:
        value = _parse_toml(text)
        servers = value.get(SECTION)
        if not isinstance(servers, dict):
            return value
        others = {name: one for name, one in servers.items() if name != NAME or not is_ours(one)}
        return put_section(value, SECTION, others)

    def outline(self, _text: str) -> bytes:
        return b""


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise BrokenJson(f"not TOML: {error}", 0) from None


def _our_server(value: dict[str, Any]) -> Any:
    servers = value.get(SECTION, {})
    if not isinstance(servers, dict):
        raise BrokenJson(f"{SECTION} is not a table", 0)
    return servers.get(NAME)


def _check_toml(text: str) -> str:
    """Servers written as one inline table cannot be extended: then nothing is written."""
    _parse_toml(text)
    return text


def _remove_table(text: str) -> str:
    return _check_toml(TABLE.sub("", text, count=1))


def _server_table(ours: dict[str, Any]) -> str:
    lines = [f"[{SECTION}.{NAME}]", f"command = {json.dumps(ours['command'])}", f"args = {json.dumps(ours['args'])}"]
    if environment := ours.get("env"):
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


# Our status line in an agent's settings: one member, never replacing an existing one.

# The mode in which the hook program prints a line for the screen, and the name of the event.
MODE, EVENT = "show", "statusline"


def status_line_of(agent: Agent) -> Agent | None:
    """The agent as one whose status line is written; None if its settings have none."""
    if not agent.setup or not agent.setup.status_line:
        return None
    return dataclasses.replace(agent, setup=dataclasses.replace(agent.setup, layout="statusline"))


def status_line_entry(agent: Agent, state: Path) -> dict[str, Any]:
    words = [*hooks_text.our_words(state), MODE, agent.name, EVENT]
    return {"type": "command", "command": shlex.join(words)}


class StatusLine(JsonMember):
    def __init__(self, name: str) -> None:
        self.name = name

    def entry(self, agent: Agent, state: Path) -> dict[str, Any]:
        return status_line_entry(agent, state)

    def is_ours(self, value: Any) -> bool:
        return hooks_text.is_ours(value)
