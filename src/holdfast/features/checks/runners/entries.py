"""Entry points of a project that start check tools: make, npm scripts, just, tox, nox, scripts; and the files that tell what they run."""

import os
import re

import msgspec

from holdfast.analysis.shell.analysis import ShellCommand
from holdfast.analysis.shell.execute import ReadFile
from holdfast.analysis.shell.flow import Pieces
from holdfast.analysis.shell.recipes import parse_make, read_main_file, read_recipe, runners
from holdfast.analysis.shell.redirects import join_path
from holdfast.core.checks import CheckKind
from holdfast.features.checks.runners.recognise import Match
from holdfast.paths import open_regular

# Entry points of a project that start check tools: make, npm scripts, just, tox, nox, scripts, drivers in Python.

# Whole words for short ones (`t`, `ci`, `all`), and parts of words that are clear by themselves.
_TESTS = re.compile(
    r"(?:^|[^a-z])(?:tests?|spec|specs|ci|check|checks|verify|validate|unit|integration|e2e|cov|coverage|qa|t|all)(?:[^a-z]|$)|test|jest|mocha|playwright|cypress|karma|rspec|^ava$",
    re.I,
)
_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__|t)/")
_LINT = re.compile(r"lint|ruff|eslint|flake|style|clippy", re.I)
_TYPES = re.compile(r"type|mypy|tsc|pyright", re.I)
_FORMAT = re.compile(r"format|fmt|prettier|black", re.I)
_BUILD = re.compile(r"build|compile|bundle|dist|package", re.I)
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
_VERSION = frozenset(("--version", "-v", "-V", "--help", "-h", "help"))
_JUST_NOTHING = frozenset(
    (
        "--list",
        "-l",
        "--dry-run",
        "-n",
        "--show",
        "-s",
        "--summary",
        "--dump",
        "--evaluate",
        "--fmt",
        "--choose",
        "--variables",
    )
)
_TASK_NOTHING = frozenset(("--list", "-l", "--list-all", "-a", "--dry", "-n", "--summary", "--status", "--init"))
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_PACKAGE_VALUES = frozenset(("--prefix", "-w", "--workspace", "-C", "--dir", "--filter", "-F", "--cwd"))
_PACKAGE_FLAGS = frozenset(("-w", "--workspace", "--filter", "-F"))
# With yarn and pnpm any other word is the name of a script.
_YARN_COMMANDS = frozenset(
    "add install remove upgrade init config cache why list info link unlink pack publish set plugin node dedupe import audit version "
    "outdated login logout store create patch rebuild prune root bin pkg view search ci i exec dlx x up update".split()
)


class Entry(msgspec.Struct):
    """A program that runs whatever the project says."""

    name: str
    kind: CheckKind | None
    directory: str = ""
    nothing: str = ""
    target: str = ""
    runner: str = ""
    """The tool it starts, where the project's files tell."""
    operands: list[str] = []
    """What it gives that tool, where the project's files tell."""
    script: bool = False
    """A file of the project, called a check for its name only."""
    packages: list[str] = []
    """Folders of the packages that it was limited to, where they are named by path."""
    several: bool = False
    """It goes over several packages, so that one summary is not the whole."""


def kind_of(name: str) -> CheckKind | None:
    """What a target or script is for, judged by its name."""
    # Tests come after linters: `lint:test` lints. Builds come last: `build-tests` is about tests.
    for pattern, kind in (
        (_LINT, CheckKind.LINT),
        (_TYPES, CheckKind.TYPES),
        (_FORMAT, CheckKind.FORMAT),
        (_TESTS, CheckKind.TEST),
        (_BUILD, CheckKind.BUILD),
    ):
        if pattern.search(name):
            return kind
    return None


def recognise_entry(command: ShellCommand) -> Entry | None:
    words = command.words
    name = words[0].rpartition("/")[2]
    if name in ("make", "gmake"):
        return _make_entry(words, command.invocation.environment)
    if name in _PACKAGE_MANAGERS:
        return _package_script(name, words)
    if name in (
        "just",
        "task",
        "go-task",
        "mise",
        "invoke",
        "inv",
        "rake",
        "composer",
        "turbo",
        "nx",
        "lerna",
        "moon",
        "poe",
        "doit",
        "rush",
        "wsrun",
        "bazel",
        "bazelisk",
    ):
        return _task_entry(name, words)
    if name == "deno" and words[1:2] == ["task"]:
        return _task_entry(name, [name, *words[2:]]) if len(words) > 2 else None
    if name in ("pre-commit", "prek"):
        return Entry(name, CheckKind.TEST, target=" ".join(words[2:]))
    if name in ("rye", "pdm") and words[1:2] == ["test"]:
        return Entry(name, CheckKind.TEST)
    if name == "manage.py" and "test" in words:
        return Entry(name, CheckKind.TEST, target="test")
    if name in ("tox", "nox", "hatch") or (
        re.match(r"python[\d.]*$", name) and words[1:3] and words[1] == "-m" and words[2] in ("tox", "nox", "hatch")
    ):
        return _session_tool(words)
    if re.match(r"(?:python|pypy)[\d.]*$", name) or name in (
        "node",
        "ruby",
        "perl",
        "php",
        "bash",
        "sh",
        "zsh",
        "deno",
        "bun",
    ):
        return _driver_entry(words, command.invocation.stdin)
    # Only as a path: a plain name may be any installed program.
    if "/" in words[0] and kind_of(name.partition(".")[0]):
        kind = kind_of(name.partition(".")[0])
        return Entry(name, kind, target=words[0], nothing=_asks_version(words), script=True)
    # These run the project's own scripts by name.
    wrapped = command.invocation.wrappers[-1:] and command.invocation.wrappers[-1] in (
        "pdm run",
        "hatch run",
        "poetry run",
        "rye run",
        "pipenv run",
        "uv run",
    )
    kind = kind_of(name) or kind_of(command.invocation.environment.get("HATCH_ENV", ""))
    if wrapped and "." not in name and kind:
        return Entry(name, kind, target=name)
    return None


def runs_tests_by_hook(match: Match) -> bool:
    """`pre-commit run pytest -v`: a hook that is named like tests prints their summary."""
    return match.runner.name == "pre-commit" and not match.nothing and main_kind(match.operands) is CheckKind.TEST


def _asks_version(words: list[str]) -> str:
    return f"{words[1]} runs no check" if len(words) == 2 and words[1] in ("--version", "--help", "-h") else ""


def _make_entry(words: list[str], environment: dict[str, str]) -> Entry:
    call = parse_make(words)
    flag = call.runs_nothing or call.touches
    nothing = f"make {flag} runs no recipe" if flag else ""
    # It prints all rules beside what it runs, so that its output is no summary.
    if "-p" in words:
        nothing = "make -p prints its rules"
    # Single letters come first in MAKEFLAGS, without a hyphen.
    if re.match(r"^[a-zA-Z]*n", environment.get("MAKEFLAGS", "").replace("--no-print-directory", "").lstrip("-")):
        nothing = "MAKEFLAGS makes it a dry run"
    # Another shell may do anything with the recipe.
    tampered = any(word.startswith("SHELL=") and not _USUAL_SHELL.match(word) for word in words)
    entry = Entry("make", main_kind(call.targets), call.folder, nothing, " ".join(call.targets))
    entry.nothing = entry.nothing or ("SHELL is replaced" if tampered else "")
    # Rules that come with the command, or from outside of the project, are not the project's.
    if call.rules or _FOREIGN_RULES.match(call.makefile):
        entry.nothing = entry.nothing or "its rules are not those of the project"
    return entry


def _package_script(name: str, words: list[str]) -> Entry | None:
    rest, directory, several, at = [], "", False, 1
    packages: list[str] = []
    while at < len(words):
        word = words[at]
        if word == "--":
            rest += words[at:]
            break
        flag, _, value = word.partition("=")
        if flag in ("--prefix", "-C", "--dir", "--cwd"):
            directory = value or (words[at + 1] if at + 1 < len(words) else "")
        elif flag in _PACKAGE_FLAGS:
            packages.append((value or next(iter(words[at + 1 :]), "")).strip("{}.^"))
        several = several or flag in ("--workspaces", "-ws", "-r", "--recursive", "--filter", "-F")
        at += 2 if flag in _PACKAGE_VALUES and not value else 1
        if (not word.startswith("-") and flag not in _PACKAGE_VALUES) or word in (
            "--listTests",
            "--version",
            "--help",
            "-h",
        ):
            rest.append(word)
    entry = _package_entry(name, rest, directory, several)
    # A name without a slash is that of a package, and where it lies is not known.
    if entry is not None and all("/" in one and not one.startswith("@") for one in packages):
        entry.packages = [one.removeprefix("/") for one in packages]
    return entry


def _package_entry(name: str, rest: list[str], directory: str, several: bool) -> Entry | None:
    if rest[:2] == ["workspaces", "foreach"]:
        rest, several = rest[2:], True  # Its own flags are taken off already; `run test` is left.
    verb = rest[0] if rest else ""
    script = ""
    # npm accepts these misspellings of `run` and `test` as aliases.
    if verb in ("test", "t", "tst", "run-script", "run", "rum", "urn", "workspaces", "workspace"):
        script = "test" if verb in ("test", "t", "tst") else (rest[1] if len(rest) > 1 else "")
        several = several or verb == "workspaces"
        # `yarn workspace NAME [run] SCRIPT …`, `yarn workspaces run SCRIPT`.
        if verb in ("workspace", "workspaces"):
            named = [word for word in rest[2 if verb == "workspace" else 1 :] if word != "run"]
            script = named[0] if named else ""
    # Only these two run a script without `run`.
    elif name in ("yarn", "pnpm") and verb and verb not in _YARN_COMMANDS:
        script = verb
    elif verb in ("cit", "install-test", "it"):
        script = "test"
    if not script or script.startswith("-"):
        return None
    nothing = next(
        (
            f"{word} runs no test"
            for word in rest
            if word in ("--listTests", "--version", "--help", "--collect-only", "--list", "--showConfig")
        ),
        "",
    )
    return Entry(name, kind_of(script), directory, nothing, script, several=several)


def _task_entry(name: str, words: list[str]) -> Entry | None:
    lists = _JUST_NOTHING if name == "just" else _TASK_NOTHING
    nothing = next(
        (f"{word} runs no recipe" for word in words[1:] if word in lists or word in ("--version", "--help")), ""
    )
    targets = (
        _recipe_targets(words[1:])
        if name not in ("nx", "lerna")
        else [*_flag_values(words), *_recipe_targets(words[1:])]
    )
    several = name in ("turbo", "nx", "lerna", "moon", "rush", "wsrun")
    # Without a target the default recipe runs, which may hold the tests.
    kind = main_kind(targets) if targets else CheckKind.TEST
    return Entry(name, kind, nothing=nothing, target=targets[0] if targets else "default", several=several)


_TASK_VALUES = frozenset(
    "-f --justfile --set --shell --shell-arg -d --dir --working-directory -t --taskfile -o --output -c --collection -r "
    "--search-root --color --filter -F --concurrency --scope --ignore --projects --cwd --output-logs".split()
)


def _recipe_targets(words: list[str]) -> list[str]:
    """The recipes that are named, without flags, their values and variables."""
    targets: list[str] = []
    skip = False
    for word in words:
        if word == "--":
            break
        # `run` is the verb of some of these tools, not a recipe.
        if not skip and not word.startswith("-") and "=" not in word and word not in ("run", "default"):
            targets.append(word)
        skip = word in _TASK_VALUES
    return targets


def _flag_values(words: list[str]) -> list[str]:
    """`nx run-many -t test`: the target is the value of a flag there."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    flag_values = [word.partition("=")[2] or value for word, value in pairs if word.partition("=")[0] in _TARGET_FLAGS]
    return [target for value in flag_values for target in value.split(",") if target]


_TARGET_FLAGS = frozenset(("-t", "--target", "--targets"))


def main_kind(targets: list[str]) -> CheckKind | None:
    """What several targets are for together: tests where any of them is."""
    kinds = [kind_of(target) for target in targets]
    return CheckKind.TEST if CheckKind.TEST in kinds else next((kind for kind in kinds if kind), None)


def _session_tool(words: list[str]) -> Entry | None:
    if words[1:2] == ["-m"]:
        words = words[2:]
    name = words[0].rpartition("/")[2]
    if name == "hatch" and not (len(words) > 1 and words[1] in ("test", "run")):
        return None
    listing = frozenset(
        (
            "--version",
            "--help",
            "-h",
            "--list",
            "-l",
            "--listenvs",
            "-a",
            "--showconfig",
            "config",
            "list",
            "l",
            "--notest",
            "--list-sessions",
        )
    )
    nothing = next((f"{word} runs no session" for word in words[1:] if word in listing), "")
    target = " ".join(word for word in words[1:] if not word.startswith("-"))
    # tox runs tests in whatever environment is named; sessions of nox may be anything.
    kind = main_kind(target.replace(",", " ").split()) if target and name == "nox" else CheckKind.TEST
    if name == "tox" and target and not _TESTS.search(target) and kind_of(target):
        kind = kind_of(target)
    return Entry(name, kind or CheckKind.TEST, "", nothing, target)


def _driver_entry(words: list[str], stdin: Pieces | None) -> Entry | None:
    """A program text that starts tests, or a script whose name says so."""
    code = ""
    for flag in ("-c", "-e", "--eval"):
        if flag in words[1:-1]:
            code = words[words.index(flag) + 1]
    if not code and stdin and (words[1:] in ([], ["-"]) or words[1:2] == ["-"]):
        code = "".join(piece.text for piece in stdin)
    if code:
        # A driver that prints or rewrites text could make up the summary.
        if _DRIVER.search(code) and not _SUMMARY_LIKE.search(code) and not _CHANGES_TEXT.search(code):
            return Entry("driver", CheckKind.TEST)
        return None
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    # `a.test.js` as well as `test_a.py`.
    file = script.rpartition("/")[2]
    stem = file.rpartition(".")[0] or file
    # `-m` is for the runners known by name; `bash -n` only checks the syntax.
    if not script or "-m" in words[1:] or "-n" in words[1:2]:
        return None
    if script.endswith("manage.py") and "test" in words:
        return Entry("manage.py", CheckKind.TEST, target="test")
    # Without `test` it builds or installs.
    if script.endswith("setup.py") and "test" not in words:
        return None
    kind = kind_of(stem) or (CheckKind.TEST if _TEST_FOLDER.search(script) else None)
    if kind is None:
        return None
    return Entry(words[0].rpartition("/")[2], kind, target=script, nothing=_asks_version(words[1:]), script=True)


# Files of the repository that say what an entry point runs. Only small regular files inside of it are read.

MAX_BYTES = 64_000
# `NAME = value` with `=`, `:=` or `?=`.
_MAKE_VARIABLE = re.compile(r"^([A-Za-z_]\w*)\s*[:?]?=\s*(.*)$", re.MULTILINE)
# `$(NAME)` and `${NAME}` of make, `{{ name }}` of just.
_REFERENCE = re.compile(r"\$[({](\w+)[)}]|\{\{\s*(\w+)\s*\}\}")
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
        # A file that is cut, or binary, tells nothing reliable.
        return None if len(data) > MAX_BYTES or b"\0" in data else data.decode("utf-8", "replace")


def read_entry_text(name: str, target: str, folder: str, read: ReadFile) -> str:
    """The shell text that an entry point runs; empty when it cannot be found."""

    def read_text(path: str) -> str:
        return read(path) or ""

    if name == "tox":
        match = _INI_COMMANDS.search(read_text(join_path(folder, "tox.ini")))
        return match[1] if match else ""
    recipe = read_recipe(name, target.split()[0] if target else "", folder, read_text) if name in runners() else ""
    if not recipe and ("/" in target or target.endswith((".sh", ".bash", ".py"))):
        return read_text(join_path(folder, target))
    variables = dict(_MAKE_VARIABLE.findall(read_main_file(name, folder, read_text)))
    return _REFERENCE.sub(lambda reference: variables.get(reference[1] or reference[2], reference[0]), recipe)
