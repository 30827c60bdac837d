"""Kinds of the feature `checks`: what a command really did."""

import msgspec

from holdfast.core.checks import GitLook
from holdfast.core.kinds.base import Payload, Record, event_kind


@event_kind("check.finished")
class CheckFinished(Payload):
    """A check ended: tests, a linter, a type checker, a formatter or a build ran, or was meant to."""

    of: int = 0
    """The tool call's event."""
    call: str = ""
    lane: str = ""
    kind: str = ""
    """test, lint, types, format or build (`core.checks.CheckKind`)."""
    runner: str = ""
    dir: str = ""
    """Where it ran, relative to the worktree; absolute outside of it."""
    selection: str = ""
    """all, or part of what is in `dir` (`core.checks.Selection`)."""
    operands: list[str] = []
    reach: list[str] = []
    """Folders that it says something of, as `dir`; empty where that is not known."""
    presumed: bool = False
    """A script of the project that is a check by its name only."""
    could_not_start: bool = False
    """It was meant to run and could not."""
    bent: list[str] = []
    """What may have made it pass, compared with the state before the session; empty where nothing was found."""
    ran_with: dict[str, str] = {}
    """`program`: its path and hash; `env NAME`: the hash of a variable that runners read."""
    verdict: str = ""
    """passed, failed, did_not_run or unknown (`core.checks.Verdict`)."""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failures: list[str] = []
    """Names of the tests that failed, as far as the output tells them."""
    why: str = ""
    command: str = ""
    ms: float | int | None = None
    worktree: str = ""
    repo: str = ""
    branch: str = ""
    commit: str = ""
    content: dict[str, str] = {}
    """Fingerprints of the worktree when it ended, by what they cover ("" is everything); absent when not known."""
    imported: str = ""
    """Which importer brought the tool call; such a check says nothing of the worktree as it is now."""


class GitRef(Record):
    head: str = ""
    branch: str = ""


@event_kind("git.acted")
class GitActed(Payload):
    """Git's own state changed: a commit, a push, a merge, a checkout, … as seen before and after, not from words."""

    of: int = 0
    verb: str = ""
    worktree: str = ""
    repo: str = ""
    before: GitRef = msgspec.field(default_factory=GitRef)
    after: GitRef = msgspec.field(default_factory=GitRef)
    commits: list[str] = []
    outside: bool = False
    """Not made by a tool call that we saw."""


@event_kind("git.noticed")
class GitNoticed(Payload):
    """HEAD or the index of a worktree changed while no tool call was running there: a person works next to the agent."""

    worktree: str = ""
    repo: str = ""
    git: GitLook | None = None
    """What is new in git's own record; absent where only files were staged."""
    staged: bool = False
    """What is staged is not what it was."""
