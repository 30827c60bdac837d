"""Other places where a section of the settings may be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.settings.sections import Node


@dataclass(frozen=True)
class OtherPlacements:
    names: tuple[str, ...] = ()
    """Names of the section that may also appear at the top level."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that hold the whole section, by layer."""


@dataclass(frozen=True)
class SectionFile:
    layer: str
    section: str
    path: Path


def section_files(sections: Mapping[str, OtherPlacements], home: Path, project: str | Path) -> list[SectionFile]:
    files = []
    for section, elsewhere in sections.items():
        for layer, name in elsewhere.files.items():
            if layer == "user" or str(project):
                files.append(SectionFile(layer, section, (home if layer == "user" else Path(project)) / name))
    return files


def as_section(root: Node, section: str) -> Node:
    return Node({section: root} if root.value else {}, root.source)


def move_into_sections(root: Node, sections: Mapping[str, OtherPlacements]) -> Node:
    """`requirements:` at the top level becomes `gates: requirements:`; the section's own values win."""
    for section, elsewhere in sections.items():
        for name in elsewhere.names:
            if name in root.value:
                _move_into_section(root, section, name)
    return root


def _move_into_section(root: Node, section: str, name: str) -> None:
    node = root.value.pop(name)
    below = root.value.setdefault(section, Node({}, node.source, node.line, node.column))
    if below.value is None:
        below.value = {}
    if isinstance(below.value, dict):
        already = below.value.get(name)
        if already is not None and isinstance(already.value, dict) and isinstance(node.value, dict):
            # The section's own names win over those at the top level.
            already.value = {**node.value, **already.value}
        else:
            below.value.setdefault(name, node)
