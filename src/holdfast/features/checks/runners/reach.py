"""Which folders a run says something of: where its tool looked for the project, and the paths it was limited to."""

import posixpath

from holdfast.core.checks import WHOLE, CheckKind, named_folder, tested_folder
from holdfast.core.shell.execute import ReadFile
from holdfast.core.shell.syntax import UNKNOWN
from holdfast.features.checks.runners.attribution import Candidate
from holdfast.features.checks.runners.recognise import Match

_PACKAGE = ("package.json",)
_PYPROJECT = ("pyproject.toml",)
# Tools that go upwards to the nearest of these files and work on the project it belongs to.
_SEARCHED_UPWARDS = {
    "cargo test": ("Cargo.toml",),
    "nextest": ("Cargo.toml",),
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
    ("jest", "vitest", "playwright", "bun", "ava", "cargo test", "nextest", "maven", "ctest", "go test")
)


def find_reach(candidate: Candidate, folder: str, read_file: ReadFile | None) -> list[str]:
    """Relative to the worktree like `folder`; empty where it cannot be told."""
    if folder == "?" or UNKNOWN in folder:
        return []
    match, entry = candidate.match, candidate.entry
    if entry is not None:
        base = _project_folder(entry.name, folder, read_file)
        return [tested_folder(named_folder(base, one)) for one in entry.packages] or [tested_folder(base)]
    assert match is not None
    named = _named_paths(match)
    if not named:
        return [tested_folder(_project_folder(match.runner.name, _flag_folder(match, folder), read_file))]
    return list(dict.fromkeys(tested_folder(named_folder(folder, one)) for one in named))


def _project_folder(tool: str, folder: str, read_file: ReadFile | None) -> str:
    """Where the tool finds its project: the folder itself, or one above it."""
    manifests = _SEARCHED_UPWARDS.get(tool)
    if manifests is None or read_file is None or folder.startswith(("/", "..")):
        return folder
    at = folder
    while not any(read_file(posixpath.join(at, name)) is not None for name in manifests):
        if at in (WHOLE, ""):
            return folder
        at = posixpath.dirname(at) or WHOLE
    return at


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
    if name == "unittest" and "/" not in word:
        return word.replace(".", "/") if "." in word else ""
    if name == "gradle":
        return "/".join(word.strip(":").split(":")[:-1])
    # `go test example.org/module/part` names a package, not a folder.
    if name == "go test":
        return word if word.startswith(".") else ""
    if name in _PATTERN_RUNNERS:
        return word if "/" in word else ""
    return word if match.runner.kind is CheckKind.TEST or "/" in word or "." in word else ""
