"""Reading a scenario file: bounded work on any bytes, and the file and line of each mistake."""

import os
import stat
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from holdfast.core.section import Unfit
from holdfast.features.uat.model import MOST_SCENARIOS, line
from holdfast.features.uat.names import slug
from holdfast.features.uat.scenario import Scenario
from holdfast.features.uat.scenario_plan import build_plan, misplaced_numbers

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


def read(path: Path) -> tuple[Scenario | None, list[Mistake]]:
    """Never raises."""
    try:
        return parse(_bytes(path), str(path))
    except OSError as error:
        return None, [Mistake(str(path), 0, f"cannot be read: {error.strerror or error}")]
    except _Refused as error:
        return None, [Mistake(str(path), error.line, str(error))]


def parse(content: bytes, file: str) -> tuple[Scenario | None, list[Mistake]]:
    try:
        tree = _Tree(content.decode("utf-8-sig"))
    except _Refused as error:
        return None, [Mistake(file, error.line, str(error))]
    except MarkedYAMLError as error:
        mark = error.problem_mark
        return None, [Mistake(file, mark.line + 1 if mark else 0, f"not valid YAML: {line(error.problem)}")]
    except Exception as error:  # a parser's own fault on bytes nobody thought of
        return None, [Mistake(file, 0, f"cannot be read: {line(error, 200) or type(error).__name__}")]
    try:
        scenario = Scenario.of(tree.value)
    except Unfit as error:
        found = error.faults
    else:
        found = misplaced_numbers(scenario)
        if not found:
            return scenario, []
    return None, [_mistake(place, text, tree.where, file) for place, text in found[:MOST_MISTAKES]]


def read_plan(path: Path) -> tuple[dict[str, Any] | None, list[Mistake]]:
    """The plan of a scenario file, with the shared steps it uses. Never raises."""
    scenario, mistakes = read(path)
    if scenario is None:
        return None, mistakes
    plan, faults = build_plan(scenario, partial(_load_shared, path.parent))
    if faults:
        where = _lines_of(path)
        return None, [_mistake(place, text, where, str(path)) for place, text in faults]
    return plan, []


def _load_shared(folder: Path, name: str) -> tuple[Scenario | None, str]:
    if slug(name) != name.lower():
        return None, f"{line(name, 80)!r} is no name of shared steps: letters, digits and dashes"
    path = folder / SHARED / f"{name}.yaml"
    if not path.is_file():
        return None, f"there are no shared steps {name!r}; they would be in {SHARED}/{name}.yaml"
    shared, mistakes = read(path)
    return shared, str(mistakes[0]) if mistakes else ""


def _lines_of(path: Path) -> Where:
    try:
        return _Tree(_bytes(path).decode("utf-8-sig")).where
    except Exception:  # it was read a moment ago; without lines the mistake is still named
        return {}


def listed(folder: Path) -> list[Path]:
    """Scenario files, by name; a folder that is not there is an empty one."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(ENDINGS))
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".")][:MOST_SCENARIOS]


def _bytes(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _Refused("not a plain file")
        content = file.read(LARGEST_FILE + 1)
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
        if id(node) in self._seen or node.anchor:
            raise _Refused("anchors and aliases are not supported", at)
        self._seen.add(id(node))
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [self._plain(item, (*path, n), depth + 1) for n, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: MappingNode, path: Place, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            at = key.start_mark.line + 1
            if not name or name in found:
                raise _Refused(f"`{line(name, 60)}` is given twice" if name else "a name must be plain text", at)
            self.where[(*path, name)] = at
            found[name] = self._plain(value, (*path, name), depth + 1)
        return found


def _scalar(node: Any) -> Any:
    text, kind = str(node.value), str(node.tag).removeprefix(CORE)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in TRUE
    try:
        return {"int": int, "float": float}[kind](text.replace("_", ""))
    except (KeyError, ValueError):
        return text


def _mistake(place: Place, text: str, where: Where, file: str) -> Mistake:
    """At the nearest line that is known: a missing field has none of its own. People count from 1."""
    name = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in place)
    while place and place not in where:
        place = place[:-1]
    return Mistake(file, where.get(place, 0), line(f"{name}: {text}" if name else text, 300))
