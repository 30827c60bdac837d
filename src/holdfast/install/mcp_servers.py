"""Our MCP server among the others an agent knows: `mcpServers.holdfast` in a JSON file, everything else untouched."""

import dataclasses
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.core.agent import Agent
from holdfast.install import entries
from holdfast.install.finding import Found
from holdfast.install.hooks_text import fresh
from holdfast.install.json_edit import Style, append, edited, remove, style_of
from holdfast.install.json_text import BrokenJson, Node, line_of, parse

SERVERS, NAME, PROGRAM = "mcpServers", "holdfast", "holdfast"


def tools_of(agent: Agent) -> Agent | None:
    """The same agent, seen as one whose file of MCP servers is to be written; None when it has no such file."""
    if not agent.setup or not agent.setup.mcp:
        return None
    return dataclasses.replace(agent, setup=dataclasses.replace(agent.setup, files=agent.setup.mcp, layout="mcp"))


def can_serve() -> bool:
    return find_spec("mcp") is not None


def entry(state: Path) -> dict[str, Any]:
    """Absolute, as a hook is. The state directory goes by the environment: it is a program for people, too."""
    beside = (folder / PROGRAM for folder in entries._script_folders())
    program = next((str(path) for path in beside if path.is_file() and os.access(path, os.X_OK)), PROGRAM)
    named = entries.state_words(state)
    return {"command": program, "args": ["mcp"], **({"env": {"HOLDFAST_STATE": named[1]}} if named else {})}


def is_ours(value: Any) -> bool:
    """By what it runs: an entry that somebody wrote for himself under our name stays his."""
    words = entries.words_of(value)
    return len(words) >= 2 and Path(words[0]).name == PROGRAM and words[1:] == ["mcp"]


class Servers:
    """A file that its owner, and the agent itself, write too."""

    all_ours = False
    secret_at_home = True

    def wanted(self, _agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        return {NAME: entry(state)}

    def with_ours(self, text: str, _agent: Agent, state: Path) -> str:
        text = fresh(text)
        root, servers = _checked(text)
        style = style_of(text, root)
        there = servers.member(NAME) if servers else None
        if there is not None:
            stale = is_ours(there.value) and there.value != entry(state)
            return edited(text, [(there.start, there.end, style.dumps(entry(state)))] if stale else [])
        member = style.member(NAME, style.dumps(entry(state)))
        if servers is not None:
            return edited(text, append(text, servers, [member], style))
        return edited(text, append(text, root, [_section(member, style)], style))

    def without_ours(self, text: str, before: str) -> str:
        root, servers = _checked(fresh(text))
        ours = servers.member(NAME) if servers else None
        if servers is None or ours is None or not is_ours(ours.value):
            return text
        was_there = bool(before) and parse(fresh(before)).member(SERVERS) is not None
        alone = len(servers.items) == 1 and not was_there
        where, what = (root, servers) if alone else (servers, ours)
        return edited(text, remove(text, where, where.items.index(what)))

    def found(self, text: str) -> list[Found]:
        _, servers = _checked(fresh(text))
        ours = servers.member(NAME) if servers else None
        return [Found(NAME, line_of(text, ours.start), ours.value)] if ours and is_ours(ours.value) else []

    def foreign(self, text: str) -> Any:
        value = dict(parse(fresh(text)).value)
        servers = value.get(SERVERS)
        if not isinstance(servers, dict):
            return value
        others = {name: one for name, one in servers.items() if name != NAME or not is_ours(one)}
        return {**value, SERVERS: others} if others else {k: v for k, v in value.items() if k != SERVERS}

    def outline(self, text: str) -> bytes:
        return b'{"mcpServers": {}}' if SERVERS in parse(fresh(text)).value else b"{}"

    def switched_off(self, _text: str) -> str:
        return ""


def _checked(text: str) -> tuple[Node, Node | None]:
    root = parse(text)
    if not root.is_object:
        raise BrokenJson("the file does not hold an object", root.start)
    servers = root.member(SERVERS)
    for node, key in ((root, SERVERS), (servers, NAME)):
        if node and len(found := node.named(key)) > 1:
            raise BrokenJson(f'"{key}" is there twice', found[1].begin)
    if servers is not None and not servers.is_object:
        raise BrokenJson(f'"{SERVERS}" is not an object', servers.start)
    return root, servers


def _section(member: str, style: Style) -> str:
    if style.inline:
        return style.member(SERVERS, "{" + member + "}")
    outer = style.newline + style.unit
    return style.member(SERVERS, "{" + outer + style.unit + member + outer + "}")
