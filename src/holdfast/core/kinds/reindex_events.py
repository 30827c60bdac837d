"""Kinds of the feature `reindex`: a session's first-prompt flag, and runs over a checkout."""

from typing import Any

import msgspec

from holdfast.core.kinds.base import Payload, Record, event_kind


@event_kind("reindex.initialized")
class FlagInitialized(Payload):
    """A session's first-prompt flag was set up."""

    source: str = ""
    shown: bool = False
    previous: str = ""
    """The session that was the project's newest before."""
    reset: bool = False


@event_kind("reindex.marked")
class FlagMarked(Payload):
    """A session's first-prompt flag was set by hand."""

    shown: bool = False


@event_kind("reindex.asked")
class RunAsked(Payload):
    """A person asked for the index."""

    rebuild: bool = False
    by: str = ""


class RunDetails(Record):
    """Why a run was begun or not."""

    why: str = ""
    checked_at: int = 0
    remaining_s: int = 0
    run: str = ""
    """The run that was in the way."""
    supersedes: str = ""
    rebuild: bool = False


@event_kind("reindex.decided")
class RunDecided(Payload):
    """Whether to index now."""

    decision: str = ""
    reason: str = ""
    details: RunDetails = msgspec.field(default_factory=RunDetails)
    trigger: str = ""
    run: str = ""
    cwd: str = ""
    branch: str = ""


class RunResult(Payload):
    """What a run over a checkout came to."""

    run: str = ""
    trigger: str = ""
    status: str = ""
    reason: str = ""
    branch: str = ""
    root: str = ""
    note: str = ""
    files: int = 0
    left_out: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    chunks: int = 0
    new_chunks: int = 0
    embedded: int = 0
    ms: float | int = 0


@event_kind("reindex.finished")
class RunFinished(RunResult):
    """A run over a checkout ended."""

    cause: str = ""


@event_kind("reindex.suggested")
class ChunksSuggested(Payload):
    """Chunks that fit a prompt."""

    of: int = 0
    """The prompt."""
    chunks: list[dict[str, Any]] = []
