"""What a scenario says: the shape of the YAML files under `uat/scenarios/`, and their published JSON Schema."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from holdfast.core.section import Before, Section, Unfit
from holdfast.core.times import DAY
from holdfast.features.uat.drivers.results import CONDITIONS, conditions_of
from holdfast.features.uat.files import RunFolders, slugify_text
from holdfast.features.uat.settings import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CHECKS,
    MOST_SCENARIOS,
    MOST_STEPS,
    clean_line,
)
from holdfast.paths import NotRegular, open_regular_itself

SCHEMA_TITLE = "A UAT scenario of Holdfast"
LONGEST_WAIT_MS = DAY


def _strip_text(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME), Before(_strip_text)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Number = Annotated[int, Meta(ge=1, le=MOST_STEPS)]
Milliseconds = Annotated[int, Meta(ge=1, le=LONGEST_WAIT_MS)]
Status = Annotated[int, Meta(ge=100, le=599)]
Count = Annotated[int, Meta(ge=0, le=1000)]
ExitCode = Annotated[int, Meta(ge=0, le=255)]
Fields = Annotated[dict[str, Any], Meta(max_length=20)]


Variables = Annotated[
    dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][\w-]*$")], str | int | float | bool], Meta(max_length=50)
]
Tag = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.:-]{0,49}$")]


class Step(Section):
    action: Annotated[
        str,
        Meta(max_length=LONGEST_NAME, description="What is done: navigate, fill, click, verify, screenshot, shell…"),
    ] = ""
    use: Annotated[Text, Meta(description="Instead of an action: the steps of shared/NAME.yaml come here.")] = ""
    with_: Annotated[Variables, Meta(description="Variables for the shared steps.")] = msgspec.field(
        default_factory=dict, name="with"
    )
    description: Annotated[Text, Meta(description="For people.")] = ""
    tool: Annotated[Text, Meta(description="A glob over tool names; several with |. Default: by the action.")] = ""
    arguments: Annotated[Fields, Meta(description="What the call's arguments must be: texts are globs.")] = {}
    expected_ms: Annotated[
        Milliseconds | None, Meta(description="How long it should take; a report names slower ones.")
    ] = None
    budget_ms: Annotated[Milliseconds | None, Meta(description="A step that takes longer has failed.")] = None
    calls: Annotated[int, Meta(ge=1, le=100, description="So many successful calls make the step.")] = 1
    public: Annotated[bool, Meta(description="Values typed in this step are no secrets and may be kept.")] = False

    def __post_init__(self) -> None:
        if bool(self.action.strip()) == bool(self.use):
            raise ValueError("a step needs `action`, or `use` with the name of shared steps")


class Condition(Section):
    """Everything named here must hold for one and the same tool result."""

    contains: Annotated[Text | None, Meta(description="This text is in the result.")] = None
    not_contains: Annotated[Text | None, Meta(description="This text is not in the result.")] = None
    url: Annotated[
        Text | None, Meta(description="A glob over the page's address, or its path when it begins with /.")
    ] = None
    title: Annotated[Text | None, Meta(description="A glob over the page's title.")] = None
    status: Annotated[Status | None, Meta(description="The HTTP status.")] = None
    exit_code: Annotated[ExitCode | None, Meta(description="The exit code of a shell command.")] = None
    max_ms: Annotated[Milliseconds | None, Meta(description="The call took at most this long.")] = None
    no_errors: Annotated[bool | None, Meta(description="The tool reported no console or network error.")] = None
    fields: Annotated[Fields | None, Meta(description="a.b.c: value, in a JSON result.")] = None
    clean_console: Annotated[bool | None, Meta(description="The page wrote no error to its console.")] = None
    max_violations: Annotated[
        Count | None, Meta(description="axe found at most so many violations; judged where it ran.")
    ] = None


class Assertion(Condition):
    description: Annotated[Text, Meta(description="What is true when it holds.")] = ""
    step: Annotated[Number | None, Meta(description="Judged on this step's results; without it on any.")] = None

    def __post_init__(self) -> None:
        if not conditions_of(self):
            raise ValueError(f"an assertion needs one of: {', '.join(CONDITIONS)}")


class HealthCheck(Condition):
    type: Annotated[Name, Meta(description="page_load: judged on a step's result; http: a request of our own.")] = (
        "page_load"
    )
    step: Annotated[Number | None, Meta(description="Made when this step ended; without it at the start.")] = None
    path: Annotated[Text | None, Meta(description="http: below base_url.")] = None


class Precondition(Section):
    """What must be true before: told to the agent, and asked of the server where there is a `path`."""

    description: Text = ""
    path: Annotated[Text | None, Meta(description="Asked at the start, below base_url; only on this machine.")] = None
    status: Annotated[Status | None, Meta(description="The HTTP status it must have.")] = None
    contains: Annotated[Text | None, Meta(description="This text is in the answer.")] = None


class Accessibility(Section):
    max_violations: Annotated[int, Meta(ge=0, le=1000, description="Violations that axe may find.")] = 0
    impact: Annotated[
        Literal["minor", "moderate", "serious", "critical"], Meta(description="Less than this is not counted.")
    ] = "serious"


class Scenario(Section, kw_only=True):
    name: Name
    description: Text = ""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=20, description="For `uat run TAG` and the suite page.")] = ()
    variables: Annotated[Variables, Meta(description="{{name}} in any text below stands for the value.")] = {}
    secrets: Annotated[
        dict[str, Annotated[str, Meta(pattern=r"^[A-Za-z_]\w*$")]],
        Meta(
            max_length=20, description="{{secret:name}} stands for this environment variable; its value is never read."
        ),
    ] = {}
    data: Annotated[
        tuple[Variables, ...], Meta(max_length=50, description="A table: the steps are done once for each row.")
    ] = ()
    preconditions: Annotated[tuple[Precondition, ...], Meta(max_length=20)] = ()
    console: Annotated[Literal["any", "clean"], Meta(description="clean: an error on the console fails the run.")] = (
        "any"
    )
    accessibility: Annotated[
        Accessibility | None, Meta(description="axe must have run, and found no more than this.")
    ] = None
    budget_ms: Annotated[Milliseconds | None, Meta(description="A run that takes longer has failed.")] = None
    base_url: Annotated[Text, Meta(description="The address of what is tested.")] = ""
    estimated_ms: Annotated[Milliseconds | None, Meta(description="Default: the sum of the steps' expected_ms.")] = None
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=MOST_STEPS)]
    assertions: Annotated[tuple[Assertion, ...], Meta(max_length=MOST_CHECKS)] = ()
    health_checks: Annotated[tuple[HealthCheck, ...], Meta(max_length=MOST_CHECKS)] = ()


def scenario_schema() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([Scenario], ref_template="#/$defs/{name}")
    whole = parts.pop(Scenario.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": SCHEMA_TITLE,
        "$defs": parts,
    }


# Reading a scenario file: bounded work on any bytes, and the file and line of each mistake.

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


# What `holdfast uat init` writes: a scenario to change, its schema for editors, and what git should leave alone.

SCHEMA_FILE = "scenario.schema.json"
IGNORED = "# Written by Holdfast: runs and their proof. The scenarios are yours to commit.\n"
IGNORED += "sessions/\nscreenshots/\nreports/\narchive/\n"

TEMPLATE = """\
# yaml-language-server: $schema=./{schema}
# What an agent does when it tests this, and what must be true. Check it with: holdfast uat validate
name: {name}
description: User authentication flow testing
base_url: {base_url}
steps:
  - action: navigate
    description: Navigate to login page
    arguments: {{url: "*/login*"}}
    expected_ms: 5000
  - action: fill
    description: Fill login credentials
    expected_ms: 10000
  - action: click
    description: Submit the form
    expected_ms: 10000
  - action: verify
    description: The welcome page is there
    expected_ms: 10000
  - action: screenshot
    description: Keep a picture of it
    expected_ms: 10000
assertions:
  - description: The user is welcomed
    step: 4
    contains: Welcome
health_checks:
  - type: page_load
    step: 1
    no_errors: true
"""


def scenario_file(paths: RunFolders, name: str) -> Path:
    return paths.scenarios / f"{slugify_text(name)}.yaml"


def initial_files(paths: RunFolders, name: str, base_url: str, recorded: str = "") -> Iterator[tuple[Path, bytes]]:
    """`recorded`: the scenario itself, where it was made from a session."""
    quoted = msgspec.json.encode(name).decode() if slugify_text(name) != name else name
    address = msgspec.json.encode(base_url or "http://localhost:3000").decode()
    text = TEMPLATE.format(schema=SCHEMA_FILE, name=quoted, base_url=address)
    yield scenario_file(paths, name), (recorded or text).encode()
    yield paths.scenarios / SCHEMA_FILE, schema_text()
    yield paths.root / ".gitignore", IGNORED.encode()


def schema_text() -> bytes:
    return msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2) + b"\n"
