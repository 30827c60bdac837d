"""Walks the fields of a settings section."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.core.section import Field, Kind, ListOf, MappingOf, Part, ValuePath
from holdfast.settings.sections import Node


@dataclass(frozen=True, slots=True)
class NamedNode:
    """No fields: no part knows this name."""

    path: ValuePath
    node: Node
    fields: tuple[Field, ...]
    parts: tuple[Part, ...]
    wholes: tuple[ValuePath, ...]
    """The paths of its ancestors that are dropped as a whole."""

    def mark(self, name: str) -> Any:
        """The mark on the field, or on the whole part."""
        for marks in (*(field.marks for field in self.fields), *(part.marks for part in self.parts)):
            if mark_value := marks.get(name):
                return mark_value
        return None

    @property
    def unknown(self) -> bool:
        return not self.fields and not any(part.open for part in self.parts)

    def names(self) -> list[str]:
        return [name for part in self.parts for name in part.fields]


def walk_places(
    kinds: Iterable[Kind], node: Node, path: ValuePath = (), wholes: tuple[ValuePath, ...] = ()
) -> Iterator[NamedNode]:
    leaves = [leaf for kind in kinds for leaf in kind.alternatives]
    if isinstance(node.value, dict):
        # A list that may be written as a single item: the mapping is that item.
        leaves += [
            leaf for kind in leaves if isinstance(kind, ListOf) and kind.alone for leaf in kind.item.alternatives
        ]
        if parts := tuple(leaf for leaf in leaves if isinstance(leaf, Part)):
            yield from _walk_named_fields(parts, node, path, wholes)
        else:
            inner = [leaf.item for leaf in leaves if isinstance(leaf, MappingOf)]
            yield from _walk_children(inner, node.value.items(), path, wholes)
    elif isinstance(node.value, list):
        inner = [leaf.item for leaf in leaves if isinstance(leaf, ListOf)]
        yield from _walk_children(inner, enumerate(node.value), path, wholes)


def _walk_named_fields(
    parts: tuple[Part, ...], node: Node, path: ValuePath, wholes: tuple[ValuePath, ...]
) -> Iterator[NamedNode]:
    if any(part.marks.get("whole") for part in parts):
        wholes = (*wholes, path)
    for name, child in node.value.items():
        fields = tuple(field for part in parts if (field := part.fields.get(name)))
        yield NamedNode((*path, name), child, fields, parts, wholes)
        yield from walk_places([field.kind for field in fields], child, (*path, name), wholes)


def _walk_children(
    inner: list[Kind], children: Iterable[Any], path: ValuePath, wholes: tuple[ValuePath, ...]
) -> Iterator[NamedNode]:
    for step, child in children if inner else ():
        yield from walk_places(inner, child, (*path, step), wholes)
