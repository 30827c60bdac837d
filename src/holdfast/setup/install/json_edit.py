"""Edits JSON text and keeps its formatting, so that additions can be removed without a trace."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

# JSON with the position of every value, so that an edit touches nothing else. Comments are allowed.

# Levels; the parser is recursive.
DEEPEST = 200
COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
NEWLINE = re.compile(r"\r\n|\n|\r")
# Blanks and comments, which may appear between any two parts.
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_DECODER = json.JSONDecoder()
# Numbers and the three words, exactly as JSON defines them.
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BrokenJson(Exception):
    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.problem, self.at = problem, at


@dataclass(frozen=True, eq=False)
class Node:
    """One value. `begin` is the start of its item: its key in an object, else the value itself."""

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


def parse_json(text: str) -> Node:
    """The root. A byte order mark is skipped; a trailing comma is accepted."""
    node = _parse_value(text, _skip_blanks(text, text.startswith("\ufeff")), 0)
    end = _skip_blanks(text, node.end)
    if end != len(text):
        raise BrokenJson("something follows the end", end)
    return node


def parse_json_object(text: str) -> Node:
    """The root of a settings file: anything but an object is refused."""
    root = parse_json(text)
    if not root.is_object:
        raise BrokenJson("the file does not hold an object", root.start)
    return root


def line_of(text: str, at: int) -> int:
    return len(NEWLINE.findall(text, 0, at)) + 1


def find_comments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Only for a stretch between two values, where a comment cannot be part of a string."""
    return [match.span() for match in COMMENT.finditer(text, start, end)]


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _parse_value(text: str, at: int, depth: int, key: str | None = None, begin: int | None = None) -> Node:
    begin = at if begin is None else begin
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _parse_container(text, at, depth, key, begin)
    if opening == '"':
        value, end = _parse_string(text, at)
        return Node(at, end, begin, key, (), value)
    if match := _PLAIN.match(text, at):
        return Node(at, match.end(), begin, key, (), _parse_number(match[0]))
    raise BrokenJson("a value is missing here" if opening in ("", ",", "}", "]") else "not JSON", at)


def _parse_number(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:  # thousands of digits: nothing of ours, and only compared
        return word


def _parse_string(text: str, at: int) -> tuple[str, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise BrokenJson(error.msg.lower(), error.pos) from error


def _parse_container(text: str, start: int, depth: int, key: str | None, begin: int) -> Node:
    if depth == DEEPEST:
        raise BrokenJson(f"more than {DEEPEST} levels deep", start)
    closing = "}" if text[start] == "{" else "]"
    items = tuple(_parse_items(text, start + 1, closing, depth + 1))
    end = _skip_blanks(text, items[-1].end if items else start + 1)
    if items and text[end : end + 1] == ",":
        end = _skip_blanks(text, end + 1)
    if closing == "}":
        return Node(start, end + 1, begin, key, items, {item.key: item.value for item in items})
    return Node(start, end + 1, begin, key, items, [item.value for item in items])


def _parse_items(text: str, at: int, closing: str, depth: int) -> Iterator[Node]:
    at = _skip_blanks(text, at)
    while text[at : at + 1] != closing:
        item = _parse_member(text, at, depth) if closing == "}" else _parse_value(text, at, depth)
        yield item
        at = _skip_blanks(text, item.end)
        if text[at : at + 1] == ",":
            at = _skip_blanks(text, at + 1)
        elif text[at : at + 1] != closing:
            raise BrokenJson(f"a comma or {closing} is missing here", at)


def _parse_member(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] != '"':
        raise BrokenJson("a name in quotes is missing here", at)
    key, end = _parse_string(text, at)
    colon = _skip_blanks(text, end)
    if text[colon : colon + 1] != ":":
        raise BrokenJson("a colon is missing here", colon)
    return _parse_value(text, _skip_blanks(text, colon + 1), depth, key, at)


# Start, end and the new text.
Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Style:
    """How this file is formatted. `inline`: all on one line."""

    newline: str = "\n"
    unit: str = "  "
    inline: bool = False
    gap: str = " "

    def dumps(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=("," + self.gap, ":" + self.gap))

    def member(self, key: str, value: str) -> str:
        return f"{json.dumps(key, ensure_ascii=False)}:{self.gap}{value}"

    def section(self, key: str, members: Iterable[str]) -> str:
        """An object in the root, with one member a line."""
        outer = "" if self.inline else self.newline + self.unit
        inner = "" if self.inline else outer + self.unit
        between = f",{self.gap}" if self.inline else f",{inner}"
        return self.member(key, "{" + inner + between.join(members) + outer + "}")


def style_of(text: str, root: Node) -> Style:
    newline = NEWLINE.search(text)
    ending = newline[0] if newline else "\n"
    if not root.items:
        return Style(ending)
    indent = own_line(text, root.items[0].begin)
    first = root.items[0]
    # Without a space after its colon the file is written compactly.
    tight = text[first.start - 1] == ":" if root.is_object else False
    return Style(ending, "  " if indent is None else indent, indent is None, "" if tight else " ")


def own_line(text: str, at: int) -> str | None:
    """The indentation of what begins here, or None if something else precedes it on its line."""
    indent = re.compile(r"[ \t]*").match(text, _line_start(text, at))
    # The first line has nothing before it that could be an indentation.
    return indent[0] if indent and indent.end() == at and _line_start(text, at) > 0 else None


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def line_indent(text: str, at: int) -> str:
    match = re.compile(r"[ \t]*").match(text, _line_start(text, at))
    return match[0] if match else ""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    # From the end to the start, so that other positions stay valid.
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def append_items(text: str, container: Node, pieces: Sequence[str], style: Style) -> list[Edit]:
    """After the last item, formatted like the first one."""
    if not container.items:
        return [_fill_container(text, container, pieces, style)]
    last, indent = container.items[-1], own_line(text, container.items[0].begin)
    lead = style.gap if indent is None else style.newline + indent
    body = f",{lead}".join(pieces)
    note = _comment_behind(text, last.end, container.end - 1)
    # A comment on the line of the last item belongs to it: new items come after the comment.
    if indent is None or note is None:
        return [(last.end, last.end, f",{lead}{body}")]
    # A trailing comma may exist already.
    comma = [] if _find_comma(text, last.end, note) is not None else [(last.end, last.end, ",")]
    return [*comma, (note, note, lead + body)]


def _fill_container(text: str, container: Node, pieces: Sequence[str], style: Style) -> Edit:
    inside = container.start + 1, container.end - 1
    notes = find_comments(text, *inside)
    # After the last comment, because a `//` comment would swallow what follows on its line.
    at = notes[-1][1] if notes else inside[0]
    rest = text[at : inside[1]]
    if style.inline and not notes:
        return (*inside, f",{style.gap}".join(pieces))
    base = line_indent(text, container.start)
    lead = style.newline + base + style.unit
    body = lead + f",{lead}".join(pieces)
    # If there is a line break already, only the items are inserted.
    return (at, at, body) if NEWLINE.search(rest) else (at, inside[1], body + style.newline + base)


def _comment_behind(text: str, start: int, end: int) -> int | None:
    """Where a comment on the same line ends: it belongs to what precedes it."""
    stop = NEWLINE.search(text, start, end)
    behind = [b for a, b in find_comments(text, start, end) if not stop or a < stop.start()]
    return behind[-1] if behind else None


def _find_comma(text: str, start: int, end: int) -> int | None:
    masked = text[start:end]
    for a, b in find_comments(text, start, end):
        # Commas inside comments do not count.
        masked = masked[: a - start] + " " * (b - a) + masked[b - start :]
    at = masked.find(",")
    return None if at < 0 else start + at


def remove_item(text: str, container: Node, index: int) -> list[Edit]:
    """The item with its comma and blanks; comments around it stay."""
    item, items = container.items[index], container.items
    if len(items) == 1:
        return _remove_only(text, container, item)
    if index < len(items) - 1:
        return _remove_before(text, item, items[index + 1])
    return _remove_last(text, container, items[index - 1], item)


def _remove_only(text: str, container: Node, item: Node) -> list[Edit]:
    inside = container.start + 1, container.end - 1
    if not find_comments(text, inside[0], item.begin) and not find_comments(text, item.end, inside[1]):
        return [(*inside, "")]
    comma = _find_comma(text, item.end, inside[1])
    cut = [] if comma is None else [(comma, comma + 1, "")]
    return [(_blank_before(text, inside[0], item, inside[1]), item.end, ""), *cut]


def _remove_before(text: str, item: Node, following: Node) -> list[Edit]:
    # Without comments one cut removes the item, its comma and the blanks up to the next one.
    if not find_comments(text, item.end, following.begin):
        return [(item.begin, following.begin, "")]
    comma = _find_comma(text, item.end, following.begin)
    return [(item.begin, item.end, ""), *([] if comma is None else [(comma, comma + 1, "")])]


def _remove_last(text: str, container: Node, previous: Node, item: Node) -> list[Edit]:
    if not find_comments(text, previous.end, item.begin):
        return [(previous.end, item.end, "")]
    comma = _find_comma(text, previous.end, item.begin)
    start = _blank_before(text, previous.end, item, container.end - 1)
    # A comma after the start of the cut is removed with the item.
    cut = [] if comma is None or comma >= start else [(comma, comma + 1, "")]
    return [*cut, (start, item.end, "")]


def _blank_before(text: str, start: int, item: Node, end: int) -> int:
    """From the end of the last comment, unless that would draw the closing bracket into a `//` comment."""
    notes = find_comments(text, start, item.begin)
    if not notes:
        return start
    if text.startswith("/*", notes[-1][0]):
        return notes[-1][1]
    closes_on_a_new_line = re.compile(r"[ \t]*,?[ \t]*[\r\n]").match(text, item.end, end)
    return notes[-1][1] if closes_on_a_new_line else item.begin
