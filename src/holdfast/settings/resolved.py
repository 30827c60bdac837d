"""The settings in force for one project, with their origins."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.section import Section
from holdfast.settings.sections import DEFAULT, Node, Notice, Origin, dotted_path


class Resolved(dict[str, Any]):
    """Models by section name. A plain dict, because every hook reads it."""

    def __init__(self, sections: Mapping[str, Any], trees: Mapping[str, Node], notices: Sequence[Notice]) -> None:
        super().__init__(sections)
        self.trees, self.notices = trees, tuple(notices)

    def origin(self, path: str) -> Origin:
        """The origin of `section.name`, or of anything below or above it."""
        section, *steps = path.split(".")
        tree = self.trees.get(section)
        if tree is None or (not tree.value and not tree.top):
            return DEFAULT
        # Numeric parts of a path index list items.
        node, depth = tree.at([int(step) if step.isdecimal() and len(step) < 9 else step for step in steps])
        complete = depth == len(steps) or not isinstance(node.value, dict)
        return (node.top or node).origin if complete else DEFAULT

    def flat(self) -> Iterator[tuple[str, Any, Origin]]:
        """(dotted name, value, origin) of every setting, for `config show`."""
        for name, section in self.items():
            plain = section.plain() if isinstance(section, Section) else section
            for path, value in _leaf_values(plain, (name,)):
                yield path, value, self.origin(path)


def _leaf_values(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaf_values(inner, (*path, name))
    else:
        yield dotted_path(path), value
