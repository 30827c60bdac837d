"""Reads a scenario file and reports mistakes with file and line."""

import os
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from holdfast.core.section import Unfit
from holdfast.features.uat.scenarios.scenario import Scenario
from holdfast.features.uat.settings import (
    MOST_SCENARIOS,
    clean_line,
)
from holdfast.paths import NotRegular, open_regular_itself

# Bytes, values and levels of a scenario file: any bytes must be read in bounded time.
LARGEST_FILE = 64 * 1024
MOST_VALUES = 2_000
DEEPEST = 12
MOST_MISTAKES = 50
ENDINGS = (".yaml", ".yml")
SHARED = "shared"
CORE = "tag:yaml.org,2002:"
TRUE, FALSE = ("true", "yes", "on"), ("false", "no", "off")

Place = tuple[Any, ...]
Where = dict[Place, int]


class Mistake(msgspec.Struct, frozen=True):
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class _Refused(Exception):
    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


def read_scenario(path: Path) -> tuple[Scenario | None, list[Mistake]]:
    """Never raises."""
    try:
        return parse_scenario(_read_plain_file(path), str(path))
    except OSError as error:
        return None, [Mistake(str(path), 0, f"cannot be read: {error.strerror or error}")]
    except _Refused as error:
        return None, [Mistake(str(path), error.line, str(error))]


def misplaced_numbers(scenario: Scenario) -> list[tuple[Place, str]]:
    """Assertions and checks that name a step which is not in the file."""
    steps = len(scenario.steps)
    parts: dict[str, tuple[Any, ...]] = {"assertions": scenario.assertions, "health_checks": scenario.health_checks}
    return [
        ((what, number, "step"), f"there is no step {part.step}, only {steps}")
        for what, listed in parts.items()
        for number, part in enumerate(listed)
        if part.step and part.step > steps
    ]


def parse_scenario(content: bytes, file: str) -> tuple[Scenario | None, list[Mistake]]:
    try:
        tree = _Tree(content.decode("utf-8-sig"))
    except _Refused as error:
        return None, [Mistake(file, error.line, str(error))]
    except MarkedYAMLError as error:
        mark = error.problem_mark
        return None, [Mistake(file, mark.line + 1 if mark else 0, f"not valid YAML: {clean_line(error.problem)}")]
    except Exception as error:  # a parser's own fault on bytes nobody thought of
        return None, [Mistake(file, 0, f"cannot be read: {clean_line(error, 200) or type(error).__name__}")]
    try:
        scenario = Scenario.of(tree.value)
    except Unfit as error:
        faults = error.faults
    else:
        faults = misplaced_numbers(scenario)
        if not faults:
            return scenario, []
    return None, [mistake_at(field_path, text, tree.where, file) for field_path, text in faults[:MOST_MISTAKES]]


def lines_of(path: Path) -> Where:
    try:
        return _Tree(_read_plain_file(path).decode("utf-8-sig")).where
    except Exception:  # it was read a moment ago; without lines the mistake is still named
        return {}


def scenario_files(folder: Path) -> list[Path]:
    """Scenario files, by name; a folder that is not there is an empty one."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(ENDINGS))
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".")][:MOST_SCENARIOS]


def _read_plain_file(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=open_regular_itself) as file:
            content = file.read(LARGEST_FILE + 1)
    except NotRegular:
        raise _Refused("not a plain file") from None
    if len(content) > LARGEST_FILE:
        raise _Refused(f"larger than {LARGEST_FILE // 1024} KB, therefore not read")
    return content


class _Tree:
    """The plain value, and the line of every part of it. No anchors, no tags: a scenario needs neither."""

    def __init__(self, text: str) -> None:
        self.where: Where = {(): 1}
        self._left = MOST_VALUES
        if "\0" in text:
            raise _Refused("not a text file")
        root = YAML(typ="safe", pure=True).compose(text)
        self._seen: set[int] = set()
        self.value = self._plain(root, (), 0) if root is not None else {}
        if not isinstance(self.value, dict):
            raise _Refused("must be a mapping with `name` and `steps`", 1)

    def _plain(self, node: Any, path: Place, depth: int) -> Any:
        at = node.start_mark.line + 1
        self.where.setdefault(path, at)
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise _Refused(f"more than {MOST_VALUES} values, or deeper than {DEEPEST}", at)
        # A value that is reached twice is an alias, which could grow without limit.
        if id(node) in self._seen or node.anchor:
            raise _Refused("anchors and aliases are not supported", at)
        self._seen.add(id(node))
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [self._plain(item, (*path, n), depth + 1) for n, item in enumerate(node.value)]
        return _scalar_value(node)

    def _mapping(self, node: MappingNode, path: Place, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            at = key.start_mark.line + 1
            if not name or name in fields:
                raise _Refused(f"`{clean_line(name, 60)}` is given twice" if name else "a name must be plain text", at)
            self.where[(*path, name)] = at
            fields[name] = self._plain(value, (*path, name), depth + 1)
        return fields


def _scalar_value(node: Any) -> Any:
    text, kind = str(node.value), str(node.tag).removeprefix(CORE)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in TRUE
    try:
        # YAML allows underscores in numbers.
        return {"int": int, "float": float}[kind](text.replace("_", ""))
    except (KeyError, ValueError):
        return text


def mistake_at(field_path: Place, text: str, where: Where, file: str) -> Mistake:
    """At the nearest line that is known: a missing field has none of its own. People count from 1."""
    name = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in field_path)
    # Up to the nearest part of the file that has a line.
    while field_path and field_path not in where:
        field_path = field_path[:-1]
    return Mistake(file, where.get(field_path, 0), clean_line(f"{name}: {text}" if name else text, 300))
