"""What a check is, for everybody who produces, keeps or shows one: tests, linters, type checkers, formatters, builds."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec


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
    """How much was asked for: everything under the folder, or a part of it."""

    ALL = "all"
    PART = "part"


class Check(msgspec.Struct, kw_only=True, frozen=True):
    """One run of one check tool, as far as it can be known from the command, its exit status and its output."""

    kind: CheckKind
    runner: str
    dir: str
    """The folder it was started in, relative to the repository; absolute when outside of it."""
    selection: Selection
    verdict: Verdict
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    why: str = ""
    operands: list[str] = []
    """What part was asked for, where it is named."""
    reach: list[str] = []
    """Folders that it says something of, relative to the repository; empty where that cannot be told."""
    presumed: bool = False
    """A script of the project that is a check by its name only; nothing showed that it ran one."""
    could_not_start: bool = False
    """It was meant to run and could not: a usage error, a missing program, test files that cannot be loaded."""


class JudgedGitAct(msgspec.Struct, frozen=True, omit_defaults=True):
    """A git command by its words: `effective` is None when it cannot be told without a look at the repository."""

    verb: str
    effective: bool | None = None


class CommandJudgement(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a finished shell command did, as it is kept with its event."""

    checks: list[Check] = []
    proves_tests_pass: bool = False
    git: list[JudgedGitAct] = []
    writes: list[str] = []
    why: str = ""
    worktree: str = ""
    """Where the checks ran: the worktree of the command's own folder (`cd`, `-C`)."""
    repo: str = ""
    branch: str = ""
    commit: str = ""
    cwd: str = ""
    """The folder that the command began in."""


class GitLogEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One act that git itself has on record: a line of HEAD's reflog, or a remote branch that moved."""

    verb: str
    old: str = ""
    new: str = ""
    detail: str = ""
    at: int = 0
    """Its end in the reflog, in bytes; 0 for what is not from HEAD's reflog."""


class GitLook(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What git showed of one worktree at a moment, and what is new since the look before."""

    worktree: str
    head: str = ""
    branch: str = ""
    log_size: int = 0
    """Length of HEAD's reflog."""
    operation: str = ""
    """`rebase`, `merge` … while one is in progress."""
    acts: list[GitLogEntry] = []
    outside: bool = False
    """Nobody's tool call ran in the worktree when the acts happened."""


# What a run of checks says something of: folders of the worktree, by where it was started and what it was limited
# to.

WHOLE = "."
"""The folder that is the worktree itself."""
UNKNOWN_FOLDER = "?"
"""The folder of a run where nothing tells which it was."""
# `tests`, `__tests__`, `integration-tests`, `e2e`, `App.Tests`, `AppTests`: what lies there tests what lies around it.
_TEST_FOLDER = re.compile(
    r"(?:^|[-_.])(?i:tests?|specs?|testing|e2e|integration|acceptance|functional|unit)(?:[-_.]|$)|[a-z]Tests?$"
)
# Where compiled tests are started, beside the sources they were built from.
_BUILD_FOLDER = re.compile(r"^(?:\.?_?build|builddir|cmake-build|out|target)(?:[-_.].*|dir)?$", re.I)
_WILDCARD = re.compile(r"[*?\[{]")


def encloses_folder(folder: str, inner: str) -> bool:
    return folder in (WHOLE, "") or inner == folder or inner.startswith(f"{folder.rstrip('/')}/")


def tested_folder(path: str) -> str:
    """What the tests in that folder are about: `api/tests/unit` and `api/build` are about `api`."""
    parts = posixpath.normpath(path).split("/")
    for at, part in enumerate(parts):
        if _TEST_FOLDER.search(part) or _BUILD_FOLDER.match(part):
            return "/".join(parts[:at]) or ("/" if path.startswith("/") else WHOLE)
    return "/".join(parts)


def named_folder(folder: str, name: str) -> str:
    """The folder of a file or folder that was named from `folder`, as far as it holds no wildcard."""
    literal: list[str] = []
    for part in name.partition("::")[0].rstrip("/").split("/"):
        if _WILDCARD.search(part) or part == "...":
            break
        literal.append(part)
    path = "/".join(literal)
    # A name with an ending is a file.
    if "." in posixpath.basename(path).lstrip("."):
        path = posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(folder, path))


def glob_folder(glob: str) -> str:
    """The folder that everything a glob matches lies in: `src` for `src/**`, all for `*.py`."""
    if "/" not in glob:
        return WHOLE
    folder = posixpath.dirname(_WILDCARD.split(f"{glob.rstrip('/')}/", maxsplit=1)[0])
    return folder or ("/" if glob.startswith("/") else WHOLE)


def touches_globs(reach: Sequence[str], globs: Iterable[str]) -> bool:
    """Whether what a run reached and what the globs are about have anything in common."""
    return any(folders_meet(folder, glob_folder(glob)) for glob in globs for folder in reach)


def folders_meet(one: str, other: str) -> bool:
    # A glob with an absolute path may be about any folder, and what lies outside of the worktree about none of it.
    if one.startswith("/") != other.startswith("/"):
        return other.startswith("/")
    return encloses_folder(one, other) or encloses_folder(other, one)


def reaches_globs(reach: Sequence[str], globs: Iterable[str]) -> bool:
    """Whether everything that the globs can match lies in what a run reached."""
    return all(any(encloses_folder(folder, glob_folder(glob)) for folder in reach) for glob in globs)


def reaches_path(reach: Sequence[str], path: str) -> bool:
    return any(encloses_folder(folder, path) for folder in reach)


# ── which tests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def chosen_targets(operands: list[str]) -> list[str]:
    """The paths and names a run was limited to; none where a filter (`-k`) chose, whose value is not known."""
    return [] if any(word.startswith("-") for word in operands) else operands


def all_within(targets: Sequence[str], chosen: Sequence[str]) -> bool:
    """Whether what was chosen includes every one of the targets."""
    return bool(targets) and all(any(_is_within_target(target, one) for one in chosen) for target in targets)


def _is_within_target(target: str, chosen: str) -> bool:
    name, folder = target.removeprefix("./"), chosen.removesuffix("/...").removeprefix("./").rstrip("/")
    # Paths go on with `::`, `/` or `[`; dotted names of tests with a dot.
    marks = ("::", "/", "[") if "/" in name or "/" in folder else ("::", "[", ".")
    return name == folder or name.startswith(tuple(f"{folder}{mark}" for mark in marks))
