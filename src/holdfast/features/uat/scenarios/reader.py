"""Reads a scenario file and reports mistakes with file and line."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.core.section import Unfit
from holdfast.features.uat.scenarios.scenario import Scenario
from holdfast.features.uat.settings import MOST_SCENARIOS, clean_line
from holdfast.paths import NotRegular, open_regular_itself
from holdfast.settings.sections import Node, Notice, Source
from holdfast.settings.yaml_document import parse_document

# Bytes; a parser in Python is slow.
LARGEST_FILE = 64 * 1024
MOST_MISTAKES = 50
ENDINGS = (".yaml", ".yml")
SHARED = "shared"

Place = tuple[Any, ...]
Where = dict[Place, int]
"""The line of every part of a file."""


class Mistake(msgspec.Struct, frozen=True):
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class ScenarioFile(NamedTuple):
    """`scenario` is None where there are mistakes."""

    scenario: Scenario | None
    mistakes: list[Mistake]
    where: Where = {}


def read_scenario(path: Path) -> ScenarioFile:
    """Never raises."""
    try:
        with open(path, "rb", opener=open_regular_itself) as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        text = "not a plain file" if isinstance(error, NotRegular) else f"cannot be read: {error.strerror or error}"
        return ScenarioFile(None, [Mistake(str(path), 0, text)])
    if len(content) > LARGEST_FILE:
        text = f"larger than {LARGEST_FILE // 1024} KB, therefore not read"
        return ScenarioFile(None, [Mistake(str(path), 0, text)])
    return parse_scenario(content, str(path))


def parse_scenario(content: bytes, file: str) -> ScenarioFile:
    root, notices = parse_document(content, Source("scenario", file))
    if notices:
        return ScenarioFile(None, [_mistake_of(notice) for notice in notices])
    where: Where = {(): 1}
    value = _plain_value(root, (), where)
    try:
        scenario = Scenario.of(value)
    except Unfit as error:
        faults = error.faults
    else:
        faults = _misplaced_numbers(scenario)
        if not faults:
            return ScenarioFile(scenario, [], where)
    return ScenarioFile(None, [mistake_at(path, text, where, file) for path, text in faults[:MOST_MISTAKES]])


def _mistake_of(notice: Notice) -> Mistake:
    if notice.message.startswith("must be a mapping"):
        return Mistake(notice.file, 1, "must be a mapping with `name` and `steps`")
    return Mistake(notice.file, notice.line, notice.message)


def _misplaced_numbers(scenario: Scenario) -> list[tuple[Place, str]]:
    """Assertions and checks that name a step which is not in the file."""
    steps = len(scenario.steps)
    parts: dict[str, tuple[Any, ...]] = {"assertions": scenario.assertions, "health_checks": scenario.health_checks}
    return [
        ((what, number, "step"), f"there is no step {part.step}, only {steps}")
        for what, listed in parts.items()
        for number, part in enumerate(listed)
        if part.step and part.step > steps
    ]


def _plain_value(node: Node, path: Place, where: Where) -> Any:
    where[path] = node.line or 1
    if isinstance(node.value, dict):
        return {name: _plain_value(inner, (*path, name), where) for name, inner in node.value.items()}
    if isinstance(node.value, list):
        return [_plain_value(inner, (*path, number), where) for number, inner in enumerate(node.value)]
    return node.value


def scenario_files(folder: Path) -> list[Path]:
    """Scenario files, by name; a folder that is not there is an empty one."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(ENDINGS))
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".")][:MOST_SCENARIOS]


def mistake_at(field_path: Place, text: str, where: Where, file: str) -> Mistake:
    """At the nearest known line: a missing field has no line. People count from 1."""
    name = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in field_path)
    # Up to the nearest part of the file that has a line.
    while field_path and field_path not in where:
        field_path = field_path[:-1]
    return Mistake(file, where.get(field_path, 0), clean_line(f"{name}: {text}" if name else text, 300))
