"""Entry points of a project that start check tools: make, npm scripts, just, tox, nox, scripts; and what its files say they run."""

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from holdfast.analysis.shell.analysis import ShellCommand
from holdfast.analysis.shell.execute import ReadFile
from holdfast.analysis.shell.flow import Invocation, Pieces
from holdfast.analysis.shell.recipes import MakeCall, ReadText, parse_make, read_main_file, read_recipe, runners
from holdfast.analysis.shell.redirects import join_path
from holdfast.core.checks import CheckKind, Selection
from holdfast.core.data_files import load_data
from holdfast.features.checks.runners.recognise import Match
from holdfast.features.checks.runners.spec import first_reason
from holdfast.paths import open_regular

_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__|t)/")
# Program text that starts a runner: through its own function, or as a command in a string.
_DRIVER = re.compile(
    r"pytest\.main|unittest\.main|unittest\.(?:TextTestRunner|TestLoader|defaultTestLoader)|[\[(,]\s*['\"](?:pytest|jest|vitest)['\"]"
    r"|(?:system|popen|call|run|check_call|check_output|Popen|execSync|spawnSync|exec|runpy\.run_module)\s*\(\s*(?:\[[^\]]*)?f?['\"][^'\"]*\b(?:pytest|unittest|jest|npm test|make)"
)
# Text that prints a summary itself, or changes one, is no proof of a run.
_SUMMARY_LIKE = re.compile(r"\d+ (?:passed|passing|tests?,)|passed in|Tests: |test result", re.I)
_CHANGES_TEXT = re.compile(r"\bsys\.path\b|\breplace\(|\.sub\(|translate\(|\.split\(|\bgsub|exitcode *=")
_USUAL_SHELL = re.compile(r"^SHELL=(?:(?:/usr(?:/local)?)?/bin/)?(?:ba|da|z|k)?sh$")
# Standard input, a substitution, a home or a folder for everybody.
_FOREIGN_RULES = re.compile(r"[-&~]|/(?:dev|proc|tmp|var)/")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*$")
SEVERAL = re.compile(r"[*?\[!,]|\.\.\.")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# How many words come before the script: `yarn workspace NAME [run] SCRIPT`, `yarn workspaces run SCRIPT`. npm accepts misspellings of `run`.
_SCRIPT_AFTER = {**dict.fromkeys(("run-script", "run", "rum", "urn", "workspaces"), 1), "workspace": 2}

_DATA = load_data(__file__, "entries", dict[str, dict[str, str]])
_KINDS = {CheckKind(kind): re.compile(pattern, re.IGNORECASE) for kind, pattern in _DATA["kinds"].items()}
_WORDS = {name: frozenset(words.split()) for name, words in _DATA["words"].items()}


class Entry(msgspec.Struct):
    """A program that runs whatever the project says."""

    name: str
    kind: CheckKind | None
    directory: str = ""
    nothing: str = ""
    target: str = ""
    runner: str = ""
    """The tool it starts, where the project's files say so."""
    operands: list[str] = []
    """What it gives that tool, where the project's files say so."""
    handed_on: list[str] = []
    """Words of the call that it hands to that tool: `npm test -- a.test.js`."""
    assigned: dict[str, str] = {}
    """Variables of its file that the call sets: `make test ARGS="-k one"`."""
    selection: Selection = Selection.ALL
    """Whether the call narrows what the project's own files select."""
    script: bool = False
    """A file of the project, called a check for its name only."""
    packages: list[str] = []
    """The packages that it was limited to, by path or by name."""
    several: bool = False
    """It goes over several packages, so that one summary is not the whole."""


def kind_of(name: str) -> CheckKind | None:
    """What a target or script is for, judged by its name."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), None)


def recognise_entry(command: ShellCommand) -> Entry | None:
    words = command.words
    name = words[0].rpartition("/")[2]
    if recognise := _BY_NAME.get(name):
        return recognise(name, words, command.invocation)
    python = _PYTHON.match(name)
    if python and words[1:2] == ["-m"] and _WORDS["session_tools"].intersection(words[2:3]):
        return _session_entry(words[2], words[2:], command.invocation)
    if python or name in _WORDS["interpreters"]:
        return _driver_entry(name, words, command.invocation)
    return _script_entry(name, words, command.invocation)


def _test_verb_entry(name: str, words: list[str], invocation: Invocation) -> Entry | None:
    """`rye test`, `pdm test`, `manage.py … test`."""
    managed = name == "manage.py"
    if "test" not in (words if managed else words[1:2]):
        return _script_entry(name, words, invocation)
    return Entry(name, CheckKind.TEST, target="test" if managed else "")


def _runs_scripts(wrappers: tuple[str, ...]) -> bool:
    """`pdm run`, `uv run` and the like run the project's own scripts by name."""
    program, _, verb = wrappers[-1].partition(" ") if wrappers else ("", "", "")
    return verb == "run" and program in _WORDS["script_wrappers"]


def _script_entry(name: str, words: list[str], invocation: Invocation) -> Entry | None:
    """A script of the project: by its path, as a plain name may be any installed program, or run by a wrapper."""
    stem = name.partition(".")[0]
    if "/" in words[0] and (kind := kind_of(stem)):
        return Entry(name, kind, target=words[0], nothing=_asks_version(words), script=True)
    if not _runs_scripts(invocation.wrappers) or "." in name:
        return None
    kind = kind_of(name) or kind_of(invocation.environment.get("HATCH_ENV", ""))
    return Entry(name, kind, target=name) if kind else None


def runs_tests_by_hook(match: Match) -> bool:
    """`pre-commit run pytest -v`: a hook that is named like tests prints their summary."""
    return match.runner.name == "pre-commit" and not match.nothing and main_kind(match.operands) is CheckKind.TEST


def _asks_version(words: list[str]) -> str:
    return f"{words[1]} runs no check" if len(words) == 2 and words[1] in _WORDS["help"] else ""


def _first_of(words: list[str], listed: Collection[str], what: str) -> str:
    """Why nothing is run, where one of the words says so."""
    return next((f"{word} runs no {what}" for word in words if word in listed), "")


def _make_entry(_name: str, words: list[str], invocation: Invocation) -> Entry:
    call = parse_make(words)
    nothing = _made_nothing(call, words, invocation.environment)
    assigned = dict(word.split("=", 1) for word in words[1:] if _ASSIGNMENT.match(word))
    return Entry("make", main_kind(call.targets), call.folder, nothing, " ".join(call.targets), assigned=assigned)


def _made_nothing(call: MakeCall, words: list[str], environment: dict[str, str]) -> str:
    # Single letters come first in MAKEFLAGS, without a hyphen.
    flags = environment.get("MAKEFLAGS", "").replace("--no-print-directory", "").lstrip("-")
    flag = call.runs_nothing or call.touches
    return first_reason(
        (re.match(r"^[a-zA-Z]*n", flags), "MAKEFLAGS makes it a dry run"),
        # It prints all rules next to what it runs, so that its output is no summary.
        ("-p" in words, "make -p prints its rules"),
        (flag, f"make {flag} runs no recipe"),
        # Another shell may do anything with the recipe.
        (any(word.startswith("SHELL=") and not _USUAL_SHELL.match(word) for word in words), "SHELL is replaced"),
        # Rules that come with the command, or from outside of the project.
        (call.rules or _FOREIGN_RULES.match(call.makefile), "its rules are not those of the project"),
    )


# ── package managers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _split_flags(words: list[str], with_value: Collection[str]) -> Iterator[tuple[str, str]]:
    """(flag, value) of each flag, and ("", word) of each other word; after `--` all are words."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from (("", after) for after in (word, *rest))
        elif not word.startswith("-"):
            yield "", word
        else:
            flag, _, value = word.partition("=")
            yield flag, value or (next(rest, "") if flag in with_value else "")


def _values_of(given: list[tuple[str, str]], flags: Collection[str]) -> list[str]:
    return [value for flag, value in given if flag in flags]


def _package_entry(name: str, words: list[str], _invocation: Invocation) -> Entry | None:
    given = list(_split_flags(words[1:], _WORDS["folder_flags"] | _WORDS["package_flags"]))
    rest = [value or flag for flag, value in given if flag in ("", *_WORDS["shown_flags"])]
    script = _script_name(name, rest)
    if not script or script.startswith("-"):
        return None
    if script in _WORDS["several_packages"]:
        return _task_entry(script, words[words.index(script) :], _invocation)  # `pnpm nx test web`
    packages = _values_of(given, _WORDS["package_flags"]) + (rest[1:2] if rest[0] == "workspace" else [])
    return Entry(
        name,
        kind_of(script),
        "".join(_values_of(given, _WORDS["folder_flags"])[-1:]),
        _first_of(rest, _WORDS["script_nothing"], "test"),
        script,
        handed_on=_words_for_script(name, script, words[1:]),
        packages=packages,
        several=not _is_one(packages) and (bool(_values_of(given, _WORDS["several_flags"])) or rest[0] == "workspaces"),
    )


def _words_for_script(name: str, script: str, words: list[str]) -> list[str]:
    """What follows the script's name; npm keeps the flags in front of `--` for itself."""
    names = {script, *_WORDS["test_verbs"], *_WORDS["install_test_verbs"]}
    behind = next((words[at + 1 :] for at, word in enumerate(words) if word in names), [])
    own, after = _split_at_dashes(behind)
    keeps = _WORDS["folder_flags"] | _WORDS["package_flags"] | _WORDS["several_flags"]
    given = _split_flags(own, _WORDS["folder_flags"] | _WORDS["package_flags"])
    shown = [flag or value for flag, value in given if not flag or (name != "npm" and flag not in keeps)]
    return [*shown, *after]


def _split_at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _is_one(packages: list[str]) -> bool:
    """Whether the words name exactly one package: no pattern, no `...` for what it depends on, no range of commits."""
    return len(packages) == 1 and not SEVERAL.search(packages[0])


def _script_name(name: str, rest: list[str]) -> str:
    if rest[:2] == ["workspaces", "foreach"]:
        rest = rest[2:]  # Its flags are taken off already; `run test` is left.
    verb = rest[0] if rest else ""
    if verb in _SCRIPT_AFTER:
        return next((word for word in rest[_SCRIPT_AFTER[verb] :] if word != "run"), "")
    # Only these two run a script without `run`.
    if name in ("yarn", "pnpm") and verb not in (*_WORDS["yarn_commands"], *_WORDS["test_verbs"]):
        return verb
    return "test" if verb in _WORDS["test_verbs"] or verb in _WORDS["install_test_verbs"] else ""


# ── task runners ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _task_entry(name: str, words: list[str], _invocation: Invocation) -> Entry:
    nothing = _first_of(words[1:], _WORDS["just_nothing"] if name == "just" else _WORDS["task_nothing"], "recipe")
    named = _flag_values(words) if name in ("nx", "lerna") else []
    targets, packages = _targets_and_packages(name, [*named, *_recipe_targets(words[1:])], words[1:])
    # Without a target the default recipe runs, which may hold the tests.
    kind = main_kind(targets) if targets else CheckKind.TEST
    own, after = _split_at_dashes(words[1:])
    # The words behind a recipe are its arguments; other runners are given more targets.
    arguments = _recipe_targets(own)[1:] if name in ("just", "poe") and not named else []
    if name == "nx":
        arguments = [
            word for word in own if word.startswith("--") and word.partition("=")[0] not in _WORDS["target_flags"]
        ]
    return Entry(
        name,
        kind,
        nothing=nothing,
        target=targets[0] if targets else "default",
        handed_on=[*arguments, *after],
        packages=packages,
        several=name in _WORDS["several_packages"] and not _is_one(packages),
    )


def _targets_and_packages(name: str, targets: list[str], words: list[str]) -> tuple[list[str], list[str]]:
    """`nx test web`, `nx run web:test`, `moon run web:test`, `turbo run web#test`, `turbo test --filter web`."""
    if name not in _WORDS["several_packages"]:
        return targets, []
    packages = _values_of(list(_split_flags(words, _WORDS["task_values"])), _WORDS["project_flags"])
    targets = [target for target in targets if name != "nx" or target not in _WORDS["nx_verbs"]]
    if name == "nx" and len(targets) == 2:
        return targets[:1], targets[1:]
    for at, target in enumerate(targets):
        package, mark, task = target.partition("#" if "#" in target else ":")
        if mark and package:
            packages.append(package)
            targets[at] = task
    return targets, packages


def _recipe_targets(words: list[str]) -> list[str]:
    """The recipes that are named, without flags, their values and variables."""
    named, _ = _split_at_dashes(words)
    operands = [value for flag, value in _split_flags(named, _WORDS["task_values"]) if not flag]
    # `run` is the verb of some of these tools, not a recipe.
    return [word for word in operands if "=" not in word and word not in ("run", "default")]


def _flag_values(words: list[str]) -> list[str]:
    """`nx run-many -t test`: the target is the value of a flag there."""
    values = [value for flag, value in _split_flags(words, _WORDS["target_flags"]) if flag in _WORDS["target_flags"]]
    return [target for value in values for target in value.split(",") if target]


def main_kind(targets: list[str]) -> CheckKind | None:
    """What several targets are for together: tests where any of them is."""
    kinds = [kind_of(target) for target in targets]
    return CheckKind.TEST if CheckKind.TEST in kinds else next((kind for kind in kinds if kind), None)


def _deno_entry(name: str, words: list[str], invocation: Invocation) -> Entry | None:
    if words[1:2] != ["task"]:
        return _driver_entry(name, words, invocation)
    return _task_entry(name, [name, *words[2:]], invocation) if len(words) > 2 else None


def _hooks_entry(name: str, words: list[str], _invocation: Invocation) -> Entry:
    return Entry(name, CheckKind.TEST, target=" ".join(words[2:]))


def _session_entry(name: str, words: list[str], _invocation: Invocation) -> Entry | None:
    if name == "hatch" and words[1:2] not in (["test"], ["run"]):
        return None
    own, after = _split_at_dashes(words[1:])
    target = " ".join(word for word in own if not word.startswith("-"))
    nothing = _first_of(own, _WORDS["session_nothing"], "session")
    return Entry(name, _session_kind(name, target), "", nothing, target, handed_on=after)


def _session_kind(name: str, target: str) -> CheckKind:
    """tox runs tests in whatever environment is named; sessions of nox may be anything."""
    kind = main_kind(target.replace(",", " ").split()) if name == "nox" else None
    if name == "tox" and not _KINDS[CheckKind.TEST].search(target):
        kind = kind_of(target)
    return kind or CheckKind.TEST


# ── interpreters ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _driver_entry(name: str, words: list[str], invocation: Invocation) -> Entry | None:
    """A program text that starts tests, or a script whose name says so."""
    if code := _program_text(words, invocation.stdin):
        # A driver that prints or rewrites text could make up the summary.
        starts = _DRIVER.search(code) and not _SUMMARY_LIKE.search(code) and not _CHANGES_TEXT.search(code)
        return Entry("driver", CheckKind.TEST) if starts else None
    return _interpreted_entry(name, words)


def _interpreted_entry(name: str, words: list[str]) -> Entry | None:
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    # `-m` is for the runners known by name; `bash -n` only checks the syntax.
    if not script or "-m" in words[1:] or words[1] == "-n":
        return None
    if "test" in words and script.endswith("manage.py"):
        return Entry("manage.py", CheckKind.TEST, target="test")
    # Without `test` it builds or installs.
    builds = script.endswith("setup.py") and "test" not in words
    kind = None if builds else _script_kind(script)
    return Entry(name, kind, target=script, nothing=_asks_version(words[1:]), script=True) if kind else None


def _script_kind(script: str) -> CheckKind | None:
    """By its name, `a.test.js` as well as `test_a.py`, or its folder."""
    file = script.rpartition("/")[2]
    kind = kind_of(file.rpartition(".")[0] or file)
    return CheckKind.TEST if kind is None and _TEST_FOLDER.search(script) else kind


def _program_text(words: list[str], stdin: Pieces | None) -> str:
    """The program that is given in a flag or on standard input."""
    codes = [words[words.index(flag) + 1] for flag in ("-c", "-e", "--eval") if flag in words[1:-1]]
    if any(codes) or not stdin or words[1:2] not in ([], ["-"]):
        return codes[-1] if codes else ""
    return "".join(piece.text for piece in stdin)


_BY_NAME: dict[str, Callable[[str, list[str], Invocation], Entry | None]] = {
    **dict.fromkeys(("make", "gmake"), _make_entry),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _package_entry),
    **dict.fromkeys(_WORDS["task_runners"], _task_entry),
    **dict.fromkeys(_WORDS["session_tools"], _session_entry),
    **dict.fromkeys(("rye", "pdm", "manage.py"), _test_verb_entry),
    **dict.fromkeys(("pre-commit", "prek"), _hooks_entry),
    "deno": _deno_entry,
}


# Files of the repository that say what an entry point runs. Only small regular files inside of it are read.

MAX_BYTES = 64_000
# `NAME = value` with `=`, `:=` or `?=`.
_MAKE_VARIABLE = re.compile(r"^([A-Za-z_]\w*)[ \t]*[:?]?=[ \t]*(.*)$", re.MULTILINE)
# `$(NAME)` and `${NAME}` of make, `{{ name }}` of just, `{{.CLI_ARGS}}` of task, `{posargs:tests}` of tox.
_REFERENCE = re.compile(r"\$[({](\w+)[)}]|\{\{-?\s*\.?(\w+)\s*-?\}\}")
_POSITIONAL = re.compile(r"\{posargs(?::([^}]*))?\}")
_INI_COMMANDS = re.compile(r"^commands\s*=\s*((?:.*\n)(?:[ \t]+.*\n?)*)", re.MULTILINE)


class RepositoryFiles:
    """Reads text files below one folder and nowhere else."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def read(self, path: str) -> str | None:
        full = os.path.realpath(os.path.join(self.root, path))
        # After links were followed: a link must not lead out of the repository.
        if not full.startswith(f"{self.root}{os.sep}"):
            return None
        try:
            with open(full, "rb", opener=open_regular) as file:
                data = file.read(MAX_BYTES + 1)
        except (OSError, ValueError):
            return None
        # Nothing reliable can be read from a part of a file, or a binary one.
        return None if len(data) > MAX_BYTES or b"\0" in data else data.decode("utf-8", "replace")


class EntryText(NamedTuple):
    """The shell text that an entry point runs."""

    written: str = ""
    """As the project's file says it; empty when it cannot be found."""
    called: str = ""
    """The same with what this call adds to it."""


def read_entry_text(entry: Entry, folder: str, read: ReadFile) -> EntryText:
    def read_text(path: str) -> str:
        return read(path) or ""

    recipe = _recipe_of(entry.name, entry.target, folder, read_text)
    variables = dict(_MAKE_VARIABLE.findall(read_main_file(entry.name, folder, read_text)))
    called = _fill_references(recipe, variables | entry.assigned)
    return EntryText(_fill_references(recipe, variables), _add_words(entry, called)) if recipe else EntryText()


def _recipe_of(name: str, target: str, folder: str, read_text: ReadText) -> str:
    if name == "tox":
        match = _INI_COMMANDS.search(read_text(join_path(folder, "tox.ini")))
        return match[1] if match else ""
    recipe = read_recipe(name, target.split()[0] if target else "", folder, read_text) if name in runners() else ""
    if not recipe and ("/" in target or target.endswith((".sh", ".bash", ".py"))):
        return read_text(join_path(folder, target))
    return recipe


def _add_words(entry: Entry, text: str) -> str:
    words = shlex.join(entry.handed_on)
    if entry.name in _WORDS["hand_on_at_end"]:
        return f"{text.rstrip()} {words}"
    # References that are still open stand for the arguments of a recipe.
    return _REFERENCE.sub(lambda _: words, _POSITIONAL.sub(lambda given: words or given[1] or "", text))


def _fill_references(text: str, variables: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda reference: variables.get(reference[1] or reference[2], reference[0]), text)
