"""JSON with the place of every value in its text, so that an edit touches nothing else. Comments are allowed."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 200
COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
NEWLINE = re.compile(r"\r\n|\n|\r")
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_DECODER = json.JSONDecoder()
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BrokenJson(Exception):
    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.problem, self.at = problem, at


@dataclass(frozen=True, eq=False)
class Node:
    """One value. `begin` is where its item begins: at its key in an object, else where the value does."""

    start: int
    end: int
    begin: int
    key: str | None = None
    items: tuple["Node", ...] = field(default=())
    value: Any = None

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, list)

    def named(self, key: str) -> list["Node"]:
        return [item for item in self.items if item.key == key] if self.is_object else []

    def member(self, key: str) -> "Node | None":
        """The last one counts, as in every JSON reader."""
        return next(reversed(self.named(key)), None)


def parse(text: str) -> Node:
    """The root. A byte order mark is skipped; a comma before a closing bracket is let pass."""
    node = _value(text, _skip(text, text.startswith("\ufeff")), 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise BrokenJson("something follows the end", end)
    return node


def line_of(text: str, at: int) -> int:
    return len(NEWLINE.findall(text, 0, at)) + 1


def comments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Only for a stretch between two values, where a comment cannot be part of a string."""
    return [found.span() for found in COMMENT.finditer(text, start, end)]


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int, key: str | None = None, begin: int | None = None) -> Node:
    begin = at if begin is None else begin
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _container(text, at, depth, key, begin)
    if opening == '"':
        value, end = _string(text, at)
        return Node(at, end, begin, key, (), value)
    if found := _PLAIN.match(text, at):
        return Node(at, found.end(), begin, key, (), _number(found[0]))
    raise BrokenJson("a value is missing here" if opening in ("", ",", "}", "]") else "not JSON", at)


def _number(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:  # thousands of digits: nothing of ours, and only compared
        return word


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise BrokenJson(error.msg.lower(), error.pos) from error


def _container(text: str, start: int, depth: int, key: str | None, begin: int) -> Node:
    if depth == DEEPEST:
        raise BrokenJson(f"more than {DEEPEST} levels deep", start)
    closing = "}" if text[start] == "{" else "]"
    items = tuple(_items(text, start + 1, closing, depth + 1))
    end = _skip(text, items[-1].end if items else start + 1)
    if items and text[end : end + 1] == ",":
        end = _skip(text, end + 1)
    if closing == "}":
        return Node(start, end + 1, begin, key, items, {item.key: item.value for item in items})
    return Node(start, end + 1, begin, key, items, [item.value for item in items])


def _items(text: str, at: int, closing: str, depth: int) -> Iterator[Node]:
    at = _skip(text, at)
    while text[at : at + 1] != closing:
        item = _member(text, at, depth) if closing == "}" else _value(text, at, depth)
        yield item
        at = _skip(text, item.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise BrokenJson(f"a comma or {closing} is missing here", at)


def _member(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] != '"':
        raise BrokenJson("a name in quotes is missing here", at)
    key, end = _string(text, at)
    colon = _skip(text, end)
    if text[colon : colon + 1] != ":":
        raise BrokenJson("a colon is missing here", colon)
    return _value(text, _skip(text, colon + 1), depth, key, at)
