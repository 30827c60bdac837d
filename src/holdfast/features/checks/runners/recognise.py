"""Which check tool a program invocation is, and how much it was asked to check."""

import re
from functools import cache

import msgspec

from holdfast.analysis.shell.programs import SHELLS
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.checks import CheckKind, Selection
from holdfast.features.checks.runners.spec import Runner
from holdfast.features.checks.runners.table import load_runners

# `python3.12`, `pypy`, and the launcher `py` of Windows.
_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*$|^py$")
# Flags of Python itself whose value is the next word.
_PYTHON_VALUES = frozenset(("-X", "-W", "--check-hash-based-pycs"))
# Where tools are installed: system folders, homes, node_modules, vendor, virtual environments.
_TOOL_FOLDER = re.compile(
    r"^(?:/usr(?:/local)?(?:/s?bin|/lib/.*)|/s?bin|/opt/.*|~/.*|/home/.*|/root/.*|/Users/.*|(?:.*/)?node_modules/\.bin|(?:.*/)?vendor/bin"
    r"|(?:.*/)?(?:\.?v?env|\.venv[\w.-]*|venv[\w.-]*|\.tox/[^/]+|\.nox/[^/]+|\.direnv/[^/]+)/(?:bin|Scripts)|\$VIRTUAL_ENV/bin|bin)$"
)
# Started from a file of the project by convention, and not suspicious there.
_PROJECT_TOOLS = frozenset(("gradlew", "mvnw", "rails", "rake", "artisan"))
_PHP_TOOLS = frozenset(("phpunit", "pest", "artisan"))
# The package's name in a path below node_modules.
_NODE_MODULE = re.compile(r"(?:^|/)node_modules/(?:\.bin/)?(?:@[\w-]+/)?([\w-]+)(?:/.*)?$")


@cache
def all_test_runners() -> tuple[Runner, ...]:
    return tuple(runner for runner in load_runners() if runner.kind is CheckKind.TEST)


@cache
def _runners_by_program() -> dict[str, list[tuple[tuple[str, ...], Runner]]]:
    """First word → the words that must follow and the runner, longest first."""
    table: dict[str, list[tuple[tuple[str, ...], Runner]]] = {}
    for runner in load_runners():
        # What has no program of its own (unittest) is only started with `-m`.
        for program in runner.programs or runner.modules:
            first, *rest = program.split()
            table.setdefault(first, []).append((tuple(rest), runner))
    for entries in table.values():
        # `cargo llvm-cov nextest` must be tried before `cargo llvm-cov`.
        entries.sort(key=lambda entry: -len(entry[0]))
    return table


@cache
def _runners_by_module() -> dict[str, Runner]:
    """The first runner that names a module wins."""
    return {module: runner for runner in reversed(load_runners()) for module in runner.modules}


class Match(msgspec.Struct):
    """A recognised check tool with its arguments."""

    runner: Runner
    arguments: list[str]
    nothing: str = ""
    """Why nothing is checked."""
    selection: Selection = Selection.ALL
    operands: list[str] = []
    quiet: bool = False
    lenient: str = ""
    """A flag with which exit status 0 proves nothing by itself."""
    foreign: str = ""
    """The program is not where such a tool is installed."""


def recognise_runner(words: list[str], environment: dict[str, str]) -> Match | None:
    """None when the program is no check tool that is known by name."""
    plain, foreign = _normalise_program(words)
    entries = _runners_by_program().get(plain[0]) if plain else None
    for rest, runner in entries or ():
        at = _arguments_start(plain, rest)
        if at is not None:
            return _match_runner(runner, plain[at:], environment, foreign)
    return None


def _normalise_program(words: list[str]) -> tuple[list[str], str]:
    """The words with the program's plain name first: `python -m pytest`, `.venv/bin/pytest`, `node …/.bin/jest`."""
    folder, _, name = words[0].rpartition("/")
    name, rest = name.removeprefix(".\\"), words[1:]
    # For Python only `-m` names a tool; scripts are entry points.
    if _PYTHON.match(name):
        return _python_module(rest), ""
    if started := _started_script(name, rest):
        return started, ""
    for suffix in (".cmd", ".exe", ".bat"):
        name = name.removesuffix(suffix)
    foreign = ""
    if folder and name not in _PROJECT_TOOLS and not _TOOL_FOLDER.match(folder):
        foreign = f"{words[0]} is a file of the project, not the installed tool"
    return [name, *_without_prefix(name, rest)], foreign


def _started_script(name: str, rest: list[str]) -> list[str]:
    """A tool that an interpreter starts by its file, with its arguments; empty where it starts none."""
    if name == "node":
        script = _node_script(rest)
        match = _NODE_MODULE.search(script[0]) if script else None
        return [match[1], *script[1:]] if match else []
    tools = _PROJECT_TOOLS if name in SHELLS else _PHP_TOOLS if name == "php" else ()
    tool = rest[0].rpartition("/")[2] if rest else ""
    return [tool, *rest[1:]] if tool in tools else []


def _without_prefix(name: str, rest: list[str]) -> list[str]:
    # `go -C folder test` is run in that folder.
    if name == "go" and rest[:1] == ["-C"]:
        return rest[2:]
    # `cargo +nightly test` names a toolchain.
    return rest[1:] if name == "cargo" and rest and rest[0].startswith("+") else rest


_NODE_VALUES = frozenset(("--import", "--require", "-r", "--loader", "--experimental-loader", "-C", "--conditions"))


def _node_script(arguments: list[str]) -> list[str]:
    """The script that node runs, with its arguments: flags of node itself come before it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in _NODE_VALUES else 1
    return arguments[at:]


def _python_module(arguments: list[str]) -> list[str]:
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "-m":
            return _module_words(arguments[at + 1 :])
        # The name may follow `-m` without a space.
        if word.startswith("-m") and not word.startswith("--"):
            return _module_words([word[2:], *arguments[at + 1 :]])
        if word == "-c" or not word.startswith("-") or word == "-":
            return []
        at += 2 if word in _PYTHON_VALUES else 1
    return []


def _module_words(words: list[str]) -> list[str]:
    runner = _runners_by_module().get(words[0]) if words else None
    if runner is None:
        return []
    if words[0] == "unittest":
        return ["unittest", *words[1:]]
    return [runner.programs[0].split()[0], *words[1:]]


def _arguments_start(words: list[str], wanted: tuple[str, ...]) -> int | None:
    """Where the arguments begin when the wanted words come next, with flags between them skipped."""
    at = 1
    for word in wanted:
        # `node --test` may have its flag anywhere before the files.
        if word.startswith("-"):
            return 1 if word in map(_flag_name, words[1:]) else None
        while words[at : at + 1] != [word]:
            if at >= len(words) or not words[at].startswith(("-", "+")):
                return None
            at += 1
        at += 1
    return at


def _match_runner(runner: Runner, arguments: list[str], environment: dict[str, str], foreign: str) -> Match | None:
    extra = environment.get(runner.options_variable, "").split() if runner.options_variable else []
    # An unknown value of the variable could be any flag; then it is left out.
    arguments = [*arguments, *extra] if UNKNOWN not in " ".join(extra) else arguments
    if not _has_required(runner, arguments):
        return None
    match = Match(runner, arguments, foreign=foreign)
    _read_arguments(runner, match)
    match.foreign = match.foreign or _hollow_reason(runner, arguments)
    if runner.kind is not CheckKind.TEST:
        match.operands = match.operands[:20]
    return match


def _has_required(runner: Runner, arguments: list[str]) -> bool:
    pattern, no = runner.requires_pattern, runner.not_required
    if pattern is None:
        return not runner.requires or any(_flag_name(word) in runner.requires for word in arguments)
    # `-x test` leaves the tests out: its value is no task.
    asked = [word for at, word in enumerate(arguments) if not at or arguments[at - 1] not in runner.takes_value]
    return any(pattern.match(word) and not (no and no.search(word)) for word in asked)


def _hollow_reason(runner: Runner, arguments: list[str]) -> str:
    by_flag = {_flag_name(word): word for word in arguments}
    named = [word for flag, word in by_flag.items() if flag in runner.hollow]
    if not named and all(flags & by_flag.keys() for flags in runner.hollow_with):
        named = [by_flag[flag] for flags in runner.hollow_with for flag in sorted(flags & by_flag.keys())[:1]]
    return f"with {' and '.join(named)} neither its exit status nor its summary shows that tests ran" if named else ""


def _flag_name(word: str) -> str:
    return word.partition("=")[0]


def _read_arguments(runner: Runner, match: Match) -> None:
    # pytest still prints its summary with one `-q`, and none with two.
    match.quiet = bool(runner.quiet) and _quiet_level(match.arguments) >= 2
    # Only as the first word: `vitest list` against a test file named `list`.
    if runner.nothing_operands.intersection(match.arguments[:1]):
        match.nothing = f"{match.arguments[0]} runs no check"
    words = iter(match.arguments)
    for word in words:
        _read_meaning(runner, match, word)
        if not word.startswith("-") or word == "-":
            if not runner.whole_operands.match(word):
                match.operands.append(word)
                match.selection = Selection.PART
        elif word in runner.takes_value:
            next(words, None)


def _read_meaning(runner: Runner, match: Match, word: str) -> None:
    flag = _flag_name(word)
    if word in runner.runs_nothing or flag in runner.runs_nothing:
        match.nothing = match.nothing or f"{word} runs no check"
    # `@file` reads further arguments from a file that is not looked at.
    if flag in runner.lenient or word.startswith("@"):
        match.lenient = match.lenient or word
    if flag in runner.selects:
        match.selection = Selection.PART
        match.operands += [word] if word.startswith("-") and word != "-" else []


def selects_tests(word: str) -> bool:
    """Whether any test runner has such a flag for a part of the tests."""
    return _flag_name(word) in _selecting_flags()


@cache
def _selecting_flags() -> frozenset[str]:
    tests = (runner for runner in load_runners() if runner.kind is CheckKind.TEST)
    return frozenset(flag for runner in tests for flag in runner.selects)


def _quiet_level(arguments: list[str]) -> int:
    level = 0
    for word in arguments:
        if re.fullmatch(r"-q+", word):
            level += len(word) - 1
        elif word == "--quiet":
            level += 1
        elif re.fullmatch(r"-v+", word):
            level -= len(word) - 1
    return level
