"""Which field of which part a value of a file belongs to, through nested parts, lists and mappings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.core.section.groups import Field, ListOf, MappingOf, Part
from holdfast.core.section.leaves import Kind, Path
from holdfast.settings.node import Node


@dataclass(frozen=True, slots=True)
class Place:
    """No fields = no part knows this name."""

    path: Path
    node: Node
    fields: tuple[Field, ...]
    parts: tuple[Part, ...]
    wholes: tuple[Path, ...]
    """The paths of what this is part of and what goes out as a whole."""

    def mark(self, name: str) -> Any:
        """The mark of that name on the field, or on the whole part."""
        for marks in (*(field.marks for field in self.fields), *(part.marks for part in self.parts)):
            if found := marks.get(name):
                return found
        return None

    @property
    def unknown(self) -> bool:
        return not self.fields and not any(part.open for part in self.parts)

    def names(self) -> list[str]:
        return [name for part in self.parts for name in part.fields]


def places(kinds: Iterable[Kind], node: Node, path: Path = (), wholes: tuple[Path, ...] = ()) -> Iterator[Place]:
    leaves = [leaf for kind in kinds for leaf in kind.alternatives]
    if isinstance(node.value, dict):
        leaves += [
            leaf for kind in leaves if isinstance(kind, ListOf) and kind.alone for leaf in kind.item.alternatives
        ]
        if parts := tuple(leaf for leaf in leaves if isinstance(leaf, Part)):
            yield from _named(parts, node, path, wholes)
        else:
            inner = [leaf.item for leaf in leaves if isinstance(leaf, MappingOf)]
            yield from _each(inner, node.value.items(), path, wholes)
    elif isinstance(node.value, list):
        inner = [leaf.item for leaf in leaves if isinstance(leaf, ListOf)]
        yield from _each(inner, enumerate(node.value), path, wholes)


def _named(parts: tuple[Part, ...], node: Node, path: Path, wholes: tuple[Path, ...]) -> Iterator[Place]:
    if any(part.marks.get("whole") for part in parts):
        wholes = (*wholes, path)
    for name, child in node.value.items():
        fields = tuple(field for part in parts if (field := part.fields.get(name)))
        yield Place((*path, name), child, fields, parts, wholes)
        yield from places([field.kind for field in fields], child, (*path, name), wholes)


def _each(inner: list[Kind], children: Iterable, path: Path, wholes: tuple[Path, ...]) -> Iterator[Place]:
    for step, child in children if inner else ():
        yield from places(inner, child, (*path, step), wholes)
