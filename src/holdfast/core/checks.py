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


class CheckFinished(msgspec.Struct, kw_only=True, frozen=True):
    """The payload of `check.finished`: a check with where it ran and on which content."""

    check: Check
    command: str
    duration_ms: int | None = None
    worktree: str = ""
    branch: str = ""
    commit: str = ""
    fingerprint: str = ""
    """Empty when the content could not be looked at in time."""
