"""What a check is, for everybody who produces, keeps or shows one: tests, linters, type checkers, formatters, builds."""

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
