"""Kinds of events this feature listens to, and the values in its own (`core.kinds.reindex_events`)."""

from holdfast.core.kinds import REINDEX_KINDS

SUBSCRIBED_KINDS = frozenset(
    (
        *REINDEX_KINDS,
        "session.started",
        "session.ended",
        "prompt.submitted",
        "tool.finished",
        "turn.ended",
        "decision.made",
    )
)

FIRST_PROMPT, TURN_END, BRANCH, COMMAND, AGAIN = "first_prompt", "turn_end", "branch_switch", "command", "again"
RUN, SKIP = "run", "skip"
NOT_READY, COOLDOWN, CONCURRENT, SPAWNED = (
    "prerequisites_not_ready",
    "cooldown_active",
    "concurrent_reindex",
    "reindex_spawned",
)
COMPLETED, UNCHANGED, SUPERSEDED, SKIPPED, FAILED, TIMEOUT, KILLED = (
    "completed",
    "unchanged",
    "superseded",
    "skipped",
    "failed",
    "timeout",
    "killed",
)
GOOD = frozenset((COMPLETED, UNCHANGED))
SOURCE = "reindex"
"""Under this name the agent is told about chunks."""
