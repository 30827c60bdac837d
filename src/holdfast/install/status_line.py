"""Our status line in an agent's settings: one member, and never in the place of one that is there."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from holdfast.core.agent import Agent
from holdfast.install import hooks_text
from holdfast.install.hooks_text import ensure_json_object
from holdfast.install.json_edit import (
    BrokenJson,
    Node,
    append_items,
    apply_edits,
    line_of,
    parse_json,
    remove_item,
    style_of,
)
from holdfast.install.locations import Found

# The mode in which the hook program prints a line for the screen, and the name of the event.
MODE, EVENT = "show", "statusline"


def status_line_of(agent: Agent) -> Agent | None:
    """The same agent, seen as one whose status line is to be written; None when its settings have none."""
    if not agent.setup or not agent.setup.status_line:
        return None
    return dataclasses.replace(agent, setup=dataclasses.replace(agent.setup, layout="statusline"))


def status_line_entry(agent: Agent, state: Path) -> dict[str, Any]:
    words = [*hooks_text.our_words(state), MODE, agent.name, EVENT]
    return {"type": "command", "command": shlex.join(words)}


class StatusLine:
    all_ours = False
    secret_at_home = False

    def __init__(self, name: str) -> None:
        self.name = name

    def wanted(self, agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
        return {self.name: status_line_entry(agent, state)}

    def with_ours(self, text: str, agent: Agent, state: Path) -> str:
        text = ensure_json_object(text)
        root, there = self._checked(text)
        ours, style = status_line_entry(agent, state), style_of(text, root)
        if there is not None:
            # Somebody's own status line stays as it is.
            stale = hooks_text.is_ours(there.value) and there.value != ours
            return apply_edits(text, [(there.start, there.end, style.dumps(ours))] if stale else [])
        return apply_edits(text, append_items(text, root, [style.member(self.name, style.dumps(ours))], style))

    def without_ours(self, text: str, _before: str) -> str:
        root, there = self._checked(ensure_json_object(text))
        if there is None or not hooks_text.is_ours(there.value):
            return text
        return apply_edits(text, remove_item(text, root, root.items.index(there)))

    def found(self, text: str) -> list[Found]:
        _, there = self._checked(ensure_json_object(text))
        ours = there is not None and hooks_text.is_ours(there.value)
        return [Found(self.name, line_of(text, there.start), there.value)] if there is not None and ours else []

    def foreign(self, text: str) -> Any:
        value = dict(parse_json(ensure_json_object(text)).value)
        return {k: v for k, v in value.items() if k != self.name or not hooks_text.is_ours(v)}

    def outline(self, text: str) -> bytes:
        return text.encode()

    def switched_off(self, _text: str) -> str:
        return ""

    def _checked(self, text: str) -> tuple[Node, Node | None]:
        root = parse_json(text)
        if not root.is_object:
            raise BrokenJson("the file does not hold an object", root.start)
        if len(nodes := root.named(self.name)) > 1:
            raise BrokenJson(f'"{self.name}" is there twice', nodes[1].begin)
        return root, root.member(self.name)
