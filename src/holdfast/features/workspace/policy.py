"""What an agent is told before a call: whose uncommitted lines it would discard, and what others changed. Pure."""

import re
from collections.abc import Mapping

from holdfast.core.decision import Decision, context_decision, deny_decision
from holdfast.core.event import Event
from holdfast.core.feature import Settings, State
from holdfast.core.ids import session_alias
from holdfast.core.kinds import ToolPayload
from holdfast.features.workspace.settings import DEFAULTS

SOURCE = "holdfast/workspace"
MOST_NAMED = 8
DISCARDING = re.compile(
    r"^git (?:checkout\b.*(?:--| -f|--force|\s\.)|restore\b(?!.*--staged(?!.*--worktree))|reset\b.*--hard"
    r"|stash(?!\s+(?:list|show|pop|apply|branch))|clean\b(?!.*(?:-\w*n|--dry-run))|switch\b.*(?:-f|--force|--discard-changes)"
    r"|worktree remove\b)|^rm\b|^find\b.*-delete\b|^shred\b"
)
"""Acts, as `analysis.shell` reads them, that throw uncommitted lines away."""
# The cheap question before it, about the agent's payload as it came.
MAY_DISCARD = re.compile(
    rb"\bgit\b.{0,200}\b(?:checkout|restore|reset|stash|clean|switch|worktree)\b|\brm\b|-delete\b|\bshred\b"
)


def decide(_state: State, event: Event, settings: Settings) -> Decision | None:
    data, settings = event.data, settings or DEFAULTS
    if not isinstance(data, ToolPayload):
        return None
    if data.endangers:
        text = f"This would discard uncommitted lines of others: {name_files(data.endangers)}."
        if settings.discards == "refuse":
            return deny_decision(f"{text} Leave them, or ask your person.")
        if settings.discards == "ask":
            return Decision(verdict="ask", reasons=(text,))
        return context_decision(SOURCE, f"{text} They can be restored with: holdfast undo")
    if data.changed_by:
        return context_decision(SOURCE, f"Changed since you used them: {name_files(data.changed_by)}. Read them again.")
    return None


def name_files(files: Mapping[str, str]) -> str:
    named = [f"{path} (by {_who(by)})" for path, by in list(files.items())[:MOST_NAMED]]
    more = len(files) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _who(session: str) -> str:
    return {"": "a person", "?": "somebody before this session"}.get(session) or f"session {session_alias(session)}"
