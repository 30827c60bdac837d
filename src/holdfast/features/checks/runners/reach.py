"""The reach of a run: the folders and paths that it covered, and whether it was really the tool that ran."""

import os
import posixpath
from itertools import pairwise

from holdfast.analysis.packages import find_named
from holdfast.analysis.shell.execute import ReadFile
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.checks import UNKNOWN_FOLDER, WHOLE, CheckKind, Selection, named_folder, tested_folder
from holdfast.features.checks.runners.attribution import Candidate
from holdfast.features.checks.runners.entries import SEVERAL
from holdfast.features.checks.runners.recognise import Match

_PACKAGE = ("package.json",)
_PYPROJECT = ("pyproject.toml",)
# Tools that go upwards to the nearest of these files and work on the project it belongs to.
_SEARCHED_UPWARDS = {
    "cargo test": ("Cargo.toml",),
    "nextest": ("Cargo.toml",),
    **dict.fromkeys(("playwright", "cypress"), _PACKAGE),
    "jest": ("package.json", "jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs"),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "turbo", "nx", "lerna"), _PACKAGE),
    **dict.fromkeys(("hatch", "poe", "pdm", "rye"), _PYPROJECT),
    "tox": ("tox.ini", "pyproject.toml", "setup.cfg"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "go-task": ("Taskfile.yml", "Taskfile.yaml"),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "rake": ("Rakefile",),
    "pre-commit": (".pre-commit-config.yaml",),
}
# Flags that name the folder, or a file in the folder, that the tool works on.
_FOLDER_FLAGS = {
    "jest": ("--rootDir",),
    "vitest": ("--root", "-r", "--dir"),
    "cargo test": ("--manifest-path",),
    "nextest": ("--manifest-path",),
    "ctest": ("--test-dir",),
    "maven": ("-f", "--file"),
    "gradle": ("-p", "--project-dir"),
}
# Their operands are patterns or names of tests: only one with a slash says where.
_PATTERN_RUNNERS = frozenset(
    ("jest", "vitest", "playwright", "bun", "ava", "cargo test", "nextest", "maven", "ctest", "unittest")
)


def find_reach(candidate: Candidate, folder: str, read_file: ReadFile | None) -> list[str]:
    """Relative to the worktree like `folder`; empty where it is unknown."""
    if folder == UNKNOWN_FOLDER or UNKNOWN in folder:
        return []
    match, entry = candidate.match, candidate.entry
    if candidate.package:
        return [folder]
    if entry is not None:
        base = _project_folder(entry.name, folder, read_file)
        by_path = [one for one in entry.packages if "/" in one and not one.startswith("@")]
        return [tested_folder(named_folder(base, one)) for one in by_path] or [base]
    assert match is not None
    named = _named_paths(match)
    if not named:
        return [_project_folder(match.runner.name, _flag_folder(match, folder), read_file)]
    return list(dict.fromkeys(tested_folder(named_folder(folder, one)) for one in named))


def _project_folder(tool: str, folder: str, read_file: ReadFile | None) -> str:
    """Where the tool finds its project, at or above the folder; else what the tests in the folder are about."""
    manifests = _SEARCHED_UPWARDS.get(tool)
    if manifests is None or read_file is None or folder.startswith(("/", "..")):
        return tested_folder(folder)
    at = folder
    while not any(read_file(posixpath.join(at, name)) is not None for name in manifests):
        if at in (WHOLE, ""):
            return tested_folder(folder)
        at = posixpath.dirname(at) or WHOLE
    return at


# ── packages by their names ──────────────────────────────────────────────────────────────────────────────────────────

_PACKAGE_FLAGS = {**dict.fromkeys(("cargo test", "nextest"), ("-p", "--package"))}


def place_package(candidate: Candidate, root: str) -> bool:
    """`pnpm --filter web test`, `nx test web`, `cargo test -p core`: the package's folder is where it ran. False where a
    package is not found, or chosen by a pattern: then a part ran, and which one is unknown."""
    match, names = candidate.match, packages_of(candidate)
    folders = [_package_folder(name.strip("{}^"), candidate, root) for name in names]
    if len(folders) == 1 and folders[0]:
        candidate.package = folders[0]
        if match:
            _leave_out_package(match, names[0])
    elif match and not all(folders):
        match.selection, match.operands = Selection.PART, [f"--filter {names[0]}"]
    return all(folders)


def packages_of(candidate: Candidate) -> list[str]:
    """The packages that it was limited to, by a wrapper or by its own words."""
    own = candidate.entry.packages if candidate.entry else _named_packages(candidate.match)
    return [*candidate.command.invocation.packages, *own]


def _package_folder(name: str, candidate: Candidate, root: str) -> str:
    name = name.removesuffix("...").removeprefix("...")
    cwd, inner = candidate.command.invocation.cwd, candidate.entry.directory if candidate.entry else ""
    if not name or UNKNOWN in f"{name}{cwd}{inner}" or SEVERAL.search(name):
        return ""
    if "/" in name and name[0] != "@":
        return posixpath.normpath(posixpath.join(cwd, inner, name))
    folder = find_named(root, name.lstrip(":"))
    return "" if folder is None else posixpath.normpath(posixpath.join(root, folder))


def _named_packages(match: Match | None) -> list[str]:
    if match is None:
        return []
    flags = _PACKAGE_FLAGS.get(match.runner.name, ())
    pairs = ((word.partition("="), after) for word, after in pairwise([*match.arguments, ""]))
    return [given or after for (flag, _, given), after in pairs if flag in flags]


def _leave_out_package(match: Match, name: str) -> None:
    flags = _PACKAGE_FLAGS.get(match.runner.name)
    if flags is None:
        return
    match.operands = [one for one in match.operands if one != name and one.partition("=")[0] not in flags]
    match.selection = Selection.PART if match.operands else Selection.ALL


def _flag_folder(match: Match, folder: str) -> str:
    flags = _FOLDER_FLAGS.get(match.runner.name, ())
    for at, word in enumerate(match.arguments):
        flag, _, value = word.partition("=")
        if flag in flags:
            value = value or next(iter(match.arguments[at + 1 :]), "")
            return named_folder(folder, value) if value and UNKNOWN not in value else folder
    return folder


def _named_paths(match: Match) -> list[str]:
    """The paths it was limited to; none where a name, a pattern or nothing at all chose."""
    if "--pyargs" in match.arguments:
        return []
    paths = [path for word in match.operands if not word.startswith("-") for path in [_as_path(match, word)]]
    return [] if any(not path or UNKNOWN in path for path in paths) else paths


def _as_path(match: Match, word: str) -> str:
    """A path as the runner's operand names it; empty where it names none."""
    name = match.runner.name
    if name == "unittest" and "/" not in word and "." in word:
        return word.replace(".", "/")
    if name == "gradle":
        return "/".join(word.strip(":").split(":")[:-1])
    return word if _is_path(match, word) else ""


def _is_path(match: Match, word: str) -> bool:
    name = match.runner.name
    # `go test example.org/module/part` names a package, not a folder.
    if name == "go test":
        return word.startswith(".")
    if "/" in word or name in _PATTERN_RUNNERS:
        return "/" in word
    return match.runner.kind is CheckKind.TEST or "." in word


# Code that runs in place of a tool, or before it: a module of the same name, a file that node loads first.

# Python imports these by itself before anything else.
_STARTUP_MODULES = ("sitecustomize", "usercustomize")
_NODE_LOADS = frozenset(("-r", "--require", "--import", "--loader", "--experimental-loader"))


def find_foreign_code(candidate: Candidate, root: str, read_file: ReadFile) -> str:
    """Why the tool's result does not count; empty when it does. `root`: the repository, empty when not known."""
    match, invocation = candidate.match, candidate.command.invocation
    if match is None:
        return ""
    if not match.runner.modules:
        return _loaded_by_node(invocation.environment.get("NODE_OPTIONS", ""), invocation.cwd, root)
    path = invocation.environment.get("PYTHONPATH", "")
    folders = [posixpath.join(invocation.cwd, one) for one in path.split(":") if one]
    if any(word.startswith("-m") for word in invocation.words[1:]):
        folders.insert(0, invocation.cwd)  # `python -m` looks there first.
    return next((why for folder in folders if (why := _shadowing_module(match, folder, root, read_file))), "")


def _shadowing_module(match: Match, folder: str, root: str, read_file: ReadFile) -> str:
    if _is_inside(folder, root):
        names = [name for module in match.runner.modules for name in (f"{module}.py", f"{module}/__init__.py")]
        own = next((name for name in names if read_file(posixpath.join(folder, name)) is not None), "")
        return own and f"the project has a {own} of its own, which is run in place of the tool"
    return "" if UNKNOWN in folder else _module_outside(match, folder)


def _module_outside(match: Match, folder: str) -> str:
    """Nothing is read outside of the repository: that a file is there says enough."""
    outside = os.path.expanduser(folder)
    if not os.path.isdir(outside):
        return f"{folder} was searched for modules and is not there to be looked at"
    modules = match.runner.modules
    named = (*modules, *(f"_{module}" for module in modules), *_STARTUP_MODULES, *_plugins(match))
    files = [name for module in named for name in (f"{module}.py", module)]
    foreign = next((name for name in files if os.path.exists(os.path.join(outside, name))), "")
    return foreign and f"{folder} holds a {foreign}, which is run in place of the tool"


def _plugins(match: Match) -> list[str]:
    """`-p NAME`: code that may change how pytest ends."""
    return [value for flag, value in pairwise(match.arguments) if flag == "-p" and ":" not in value]


def _loaded_by_node(options: str, folder: str, root: str) -> str:
    words = options.replace("=", " ").split()
    for flag, value in pairwise(words):
        outside = value.startswith(("/", "~", ".")) and not _is_inside(posixpath.join(folder, value), root)
        if flag in _NODE_LOADS and outside and UNKNOWN not in value:
            return f"{value} is loaded before the tests and is no file of the project"
    return ""


def _is_inside(path: str, root: str) -> bool:
    """A relative path is one below the repository, as long as it does not lead out of it."""
    plain = posixpath.normpath(path)
    if not plain.startswith(("/", "~")):
        return not plain.startswith("..")
    return bool(root) and f"{plain}/".startswith(f"{root.rstrip('/')}/")
