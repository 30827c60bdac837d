"""A YAML settings file as a tree whose every value knows its line."""

import io
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent
from ruamel.yaml.nodes import ScalarNode

from holdfast.settings.bytes import MOST_BYTES, Refused
from holdfast.settings.sections import Node, Notice, Source, printable_name

# A Python parser is slow, and aliases can expand few bytes to very much.
MOST_VALUES = 5_000
DEEPEST = 20
# The parser scans nested brackets repeatedly before its first event.
_TOO_DEEP = re.compile(rf"(?:[\[{{]\s*){{{DEEPEST + 1}}}")
CORE = "tag:yaml.org,2002:"


def parse_document(content: bytes, source: Source) -> tuple[Node, list[Notice]]:
    """Never raises: an unusable file is an empty one with a notice."""
    notices: list[Notice] = []
    try:
        if len(content) > MOST_BYTES:
            raise Refused(f"larger than {MOST_BYTES // 1024} KB, therefore not read")
        # Windows editors put a byte order mark before the text.
        text = content.decode("utf-8-sig")
        if _TOO_DEEP.search(text):
            raise Refused(f"nested deeper than {DEEPEST} levels")
        root = _Composer(text, source, notices).document()
        if not isinstance(root.value, dict):
            raise Refused("must be a mapping of sections, such as `context:`")
        return root, notices
    except Exception as error:
        return Node({}, source), [*notices, _unreadable_notice(error, source.file)]


def _unreadable_notice(error: Exception, file: str) -> Notice:
    line, column, message = _describe_error(error)
    message = "".join(c if c.isprintable() else "?" for c in message[:200])
    return Notice(file, line, column, message, "The whole file is left out until this is corrected.")


def _describe_error(error: Exception) -> tuple[int, int, str]:
    if isinstance(error, Refused):
        return error.line, error.column, str(error)
    if isinstance(error, MarkedYAMLError) and (mark := error.problem_mark):
        return mark.line + 1, mark.column + 1, f"not valid YAML: {error.problem}"
    first = (str(error).splitlines() or [""])[0]
    return 0, 0, f"cannot be read: {first or type(error).__name__}"


class _Composer:
    """Builds the tree from parser events, so that it can stop at any of them."""

    def __init__(self, text: str, source: Source, notices: list[Notice]) -> None:
        yaml = YAML(typ="safe", pure=True)
        self.events = yaml.parse(io.StringIO(text))
        self.resolver, self.constructor = yaml.resolver, yaml.constructor
        self.source, self.notices = source, notices
        self.values = 0
        self.anchors: dict[str, Node] = {}

    def document(self) -> Node:
        next(self.events)  # the start of the stream
        if type(next(self.events)).__name__ == "StreamEndEvent":
            return Node({}, self.source)
        root = self._node(next(self.events), 0)
        next(self.events)  # the end of the document
        after = next(self.events)
        if type(after).__name__ == "DocumentStartEvent":
            raise Refused("more than one document in the file", after.start_mark)
        return Node({}, self.source) if root.value is None else root

    def _node(self, event: Any, depth: int) -> Node:
        mark = event.start_mark
        self._count(1, mark)
        if depth > DEEPEST:
            raise Refused(f"nested deeper than {DEEPEST} levels", mark)
        if isinstance(event, AliasEvent):
            return self._alias(event)
        # Tags can create objects of any class.
        if event.tag:
            raise Refused(f"tags such as {event.tag} are not supported", mark)
        line, column = mark.line + 1, mark.column + 1
        node = Node(self._value(event, depth), self.source, line, column, line, column)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _count(self, more: int, mark: Any) -> None:
        self.values += more
        if self.values > MOST_VALUES:
            raise Refused(f"more than {MOST_VALUES} values (aliases expanded)", mark)

    def _alias(self, event: Any) -> Node:
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            raise Refused(f"unknown alias *{event.anchor}", event.start_mark)
        # Counted as expanded: nested aliases grow exponentially.
        self._count(anchored.size(), event.start_mark)
        return anchored.copy()

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if isinstance(event, SequenceStartEvent):
            return list(self._items(depth))
        if isinstance(event, MappingStartEvent):
            return self._mapping(depth)
        raise Refused("cannot be understood here", event.start_mark)

    def _items(self, depth: int) -> Iterator[Node]:
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            yield self._node(event, depth + 1)

    def _mapping(self, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while type(event := next(self.events)).__name__ != "MappingEndEvent":
            # A key counts as a value too, so that long mappings reach the limit.
            key = self._node(event, depth + 1)
            node = self._node(next(self.events), depth + 1)
            node.line, node.column = key.line, key.column
            name = self._name(event)
            if name in entries:
                twice = f"`{printable_name(name)}` is given twice; the first one counts."
                self.notices.append(node.notice(twice, "Remove one of the two."))
            else:
                entries[name] = node
        return entries

    def _name(self, event: Any) -> str:
        if not isinstance(event, ScalarEvent):
            raise Refused("a name must be plain text", event.start_mark)
        return str(event.value)

    def _scalar(self, event: Any) -> Any:
        # Quoted text stays text, including `"true"` and `"12"`.
        if not event.implicit[0]:  # quoted
            return event.value
        kind = str(self.resolver.resolve(ScalarNode, event.value, event.implicit)).removeprefix(CORE)
        if kind not in ("null", "bool", "int", "float"):
            return event.value
        node = ScalarNode(CORE + kind, event.value, event.start_mark, event.end_mark)
        return getattr(self.constructor, f"construct_yaml_{kind}")(node)


def parse_text(text: str, source: Source) -> Any:
    """Parse a value typed by a person or set in the environment; invalid YAML is text."""
    try:
        return _Composer(text, source, []).document().value
    except Exception:
        return text
