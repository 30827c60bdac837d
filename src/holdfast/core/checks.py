"""What a check is: one run of tests, a linter, a type checker, a formatter or a build."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache

import msgspec

from holdfast.core.data_files import load_data


class CheckKind(StrEnum):
    TEST = "test"
    LINT = "lint"
    TYPES = "types"
    FORMAT = "format"
    BUILD = "build"


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    DID_NOT_RUN = "did_not_run"
    UNKNOWN = "unknown"


class Selection(StrEnum):
    """How much was selected: everything below the folder, or part of it."""

    ALL = "all"
    PART = "part"


class Check(msgspec.Struct, kw_only=True, frozen=True):
    """One run of a check tool, as far as command, exit status and output show it."""

    kind: CheckKind
    runner: str
    dir: str
    """Where it was started, relative to the repository; absolute if outside."""
    selection: Selection
    verdict: Verdict
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    why: str = ""
    operands: list[str] = []
    """The selected part, where the command names it."""
    reach: list[str] = []
    """Folders it covers, relative to the repository; empty if unknown."""
    presumed: bool = False
    """A project script that is a check by name only; nothing shows that it ran one."""
    could_not_start: bool = False
    """It should have run and could not: usage error, missing program, test files that fail to load."""
    bent: list[str] = []
    """What may have made it pass: changed configuration, variables that runners read, plugins, another program."""
    ran_with: dict[str, str] = {}
    """The program with its hash, and hashes of the variables that runners read."""


class JudgedGitAct(msgspec.Struct, frozen=True, omit_defaults=True):
    """A git command as written. `effective` is None if only the repository can tell."""

    verb: str
    effective: bool | None = None


class CommandJudgement(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a finished shell command did, as stored with its event."""

    checks: list[Check] = []
    proves_tests_pass: bool = False
    git: list[JudgedGitAct] = []
    writes: list[str] = []
    why: str = ""
    worktree: str = ""
    """The worktree in which the checks ran (`cd` and `-C` included)."""
    repo: str = ""
    branch: str = ""
    commit: str = ""
    cwd: str = ""
    """The folder in which the command started."""


class GitLogEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One act recorded by git: a line of HEAD's reflog, or a remote branch that moved."""

    verb: str
    old: str = ""
    new: str = ""
    detail: str = ""
    at: int = 0
    """Its end in the reflog, in bytes; 0 if it isn't from HEAD's reflog."""


class GitLook(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What git shows of one worktree now, and what is new since the previous look."""

    worktree: str
    head: str = ""
    branch: str = ""
    log_size: int = 0
    """Length of HEAD's reflog."""
    operation: str = ""
    """`rebase`, `merge` … while one is in progress."""
    acts: list[GitLogEntry] = []
    outside: bool = False
    """No tool call was running in the worktree when the acts happened."""


# Which folders a run covers, from where it started and what it was limited to.

WHOLE = "."
"""The folder that is the worktree itself."""
UNKNOWN_FOLDER = "?"
"""Stands for the folder of a run that is unknown."""
# `tests`, `__tests__`, `integration-tests`, `e2e`, `App.Tests`, `AppTests`: they test the folder around them.
_TEST_FOLDER = re.compile(
    r"(?:^|[-_.])(?i:tests?|specs?|testing|e2e|integration|acceptance|functional|unit)(?:[-_.]|$)|[a-z]Tests?$"
)
# Compiled tests are started in a build folder next to their sources.
_BUILD_FOLDER = re.compile(r"^(?:\.?_?build|builddir|cmake-build|out|target)(?:[-_.].*|dir)?$", re.I)
_WILDCARD = re.compile(r"[*?\[{]")


def encloses_folder(folder: str, inner: str) -> bool:
    return folder in (WHOLE, "") or inner == folder or inner.startswith(f"{folder.rstrip('/')}/")


def tested_folder(path: str) -> str:
    """Return what the tests in a folder are about: `api/tests/unit` and `api/build` are about `api`."""
    parts = posixpath.normpath(path).split("/")
    for at, part in enumerate(parts):
        if _TEST_FOLDER.search(part) or _BUILD_FOLDER.match(part):
            return "/".join(parts[:at]) or ("/" if path.startswith("/") else WHOLE)
    return "/".join(parts)


def named_folder(folder: str, name: str) -> str:
    """Return the folder of a path given relative to `folder`, up to its first wildcard."""
    literal: list[str] = []
    for part in name.partition("::")[0].rstrip("/").split("/"):
        if _WILDCARD.search(part) or part == "...":
            break
        literal.append(part)
    path = "/".join(literal)
    # A name with a suffix is a file.
    if "." in posixpath.basename(path).lstrip("."):
        path = posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(folder, path))


def glob_folder(glob: str) -> str:
    """Return the folder that contains everything a glob matches: `src` for `src/**`, the root for `*.py`."""
    if "/" not in glob:
        return WHOLE
    folder = posixpath.dirname(_WILDCARD.split(f"{glob.rstrip('/')}/", maxsplit=1)[0])
    return folder or ("/" if glob.startswith("/") else WHOLE)


def touches_globs(reach: Sequence[str], globs: Iterable[str]) -> bool:
    """Return whether the covered folders and the globs overlap."""
    return any(folders_meet(folder, glob_folder(glob)) for glob in globs for folder in reach)


def folders_meet(one: str, other: str) -> bool:
    # An absolute glob may match any folder; paths outside the worktree match none.
    if one.startswith("/") != other.startswith("/"):
        return other.startswith("/")
    return encloses_folder(one, other) or encloses_folder(other, one)


def reaches_globs(reach: Sequence[str], globs: Iterable[str]) -> bool:
    """Return whether the covered folders contain everything the globs can match."""
    return all(any(encloses_folder(folder, glob_folder(glob)) for folder in reach) for glob in globs)


def reaches_path(reach: Sequence[str], path: str) -> bool:
    return any(encloses_folder(folder, path) for folder in reach)


def are_folders(folder: str, operands: Sequence[str]) -> bool:
    """Return whether a run was limited to whole packages: their folders, or the folders of their tests."""
    return bool(operands) and all(_is_package(folder, one.removesuffix("...")) for one in operands)


def _is_package(folder: str, operand: str) -> bool:
    path = posixpath.normpath(posixpath.join(folder, operand))
    is_file = operand.startswith("-") or "::" in operand or "." in posixpath.basename(path).lstrip(".")
    return not is_file and tested_folder(path) in (path, posixpath.dirname(path) or WHOLE)


# ── which files ──────────────────────────────────────────────────────────────────────────────────────────────────────

_UNTESTED = re.compile(
    r"\.(?:md|mdx|rst|adoc|txt|json|ya?ml|toml|ini|cfg|lock|csv|svg|png|jpe?g|gif|webp|ico|pdf)$"
    r"|(?:^|/)(?:\.[^/]+|[A-Z]+)$"
)


def is_untested(path: str) -> bool:
    """Return whether no test is about this file: documents, pictures, data, settings."""
    return _UNTESTED.search(path) is not None


@cache
def _check_tools() -> dict[str, dict[str, list[str]]]:
    return load_data(__file__, "check_tools", dict[str, dict[str, list[str]]])


@cache
def tool_families() -> dict[str, str]:
    """Test tool → which tools run the same tests."""
    families = _check_tools()["families"].items()
    return {tool: tool if family == "alone" else family for family, tools in families for tool in tools}


@cache
def _file_types() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for ends, runners in _check_tools()["file_types"].items():
        for runner in runners:
            found[runner] = (*found.get(runner, ()), *(ends.split() or ("",)))
    return found


@cache
def _tested_types() -> tuple[str, ...]:
    return tuple(end for tool in tool_families() for end in _file_types().get(tool, ()))


def looks_at(tool: str, path: str, *, tests: bool) -> bool:
    """Return whether the tool is about such a file. Tests may be about any file that no other kind of tests is for."""
    ends = _file_types().get(tool)
    if ends is None or path.endswith(ends):
        return tests or ends is not None
    return tests and not path.endswith(_tested_types())


# ── which tests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def chosen_targets(operands: list[str]) -> list[str]:
    """Return the paths and names a run was limited to; empty if a filter (`-k`) selected them."""
    return [] if any(word.startswith("-") for word in operands) else operands


def all_within(targets: Sequence[str], chosen: Sequence[str]) -> bool:
    """Return whether the selection includes every target."""
    return bool(targets) and all(any(_is_within_target(target, one) for one in chosen) for target in targets)


def _is_within_target(target: str, chosen: str) -> bool:
    name, folder = target.removeprefix("./"), chosen.removesuffix("/...").removeprefix("./").rstrip("/")
    # Paths continue with `::`, `/` or `[`; dotted test names with a dot.
    marks = ("::", "/", "[") if "/" in name or "/" in folder else ("::", "[", ".")
    return name == folder or name.startswith(tuple(f"{folder}{mark}" for mark in marks))
