"""Kinds of events of this feature, those it listens to, and the values in them."""

KINDS = {
    "reindex.initialized": "a session's first-prompt flag was set up (`source`, `shown`, `reset`, `previous`)",
    "reindex.marked": "a session's first-prompt flag was set by hand (`shown`)",
    "reindex.asked": "a person asked for the index (`rebuild`)",
    "reindex.decided": "whether to index now (`decision`, `reason`, `details`, `trigger`, `run`)",
    "reindex.finished": "a run over a checkout ended (`run`, `trigger`, `status`, `reason`, `files`, `chunks`, `ms`)",
    "reindex.suggested": "chunks that fit a prompt (`of`, `chunks`)",
}
SUBSCRIBED_KINDS = frozenset(
    (*KINDS, "session.started", "session.ended", "prompt.submitted", "tool.finished", "turn.ended", "decision.made")
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
