"""What an agent receives before a call: whose uncommitted lines it would discard, and what others changed. Pure."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from holdfast.analysis.shell.command_effects import read_acts
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.decision import Decision, context_decision, deny_decision, merge_decisions
from holdfast.core.event import Event
from holdfast.core.feature import Settings, State
from holdfast.core.ids import session_alias
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.core.kinds.agent_events import OwnedLines
from holdfast.core.text import sanitise_line
from holdfast.features.workspace.settings import DEFAULTS, WorkspaceSettings

SOURCE = "holdfast/workspace"
MOST_NAMED, MOST_ENDANGERED = 8, 50
"""Files named in a sentence, and in an event."""
MOVED = "//"
NOT_KEPT = "not kept"
"""In place of line numbers: the file is too large, or the disk was full."""
DISCARDING = re.compile(
    r"^git (?:checkout\b.*(?:\s--(?:\s|$)|\s-f\b|\s--force|\s\.)|restore\b(?!.*--staged(?!.*--worktree))|reset\b.*--hard"
    r"|stash(?!\s+(?:list|show|pop|apply|branch))|clean\b(?!.*(?:-\w*n|--dry-run))|switch\b.*(?:-f|--force|--discard-changes)"
    r"|worktree remove\b)|^rm\b|^find\b.*-delete\b|^shred\b"
)
"""Acts, as `analysis.shell` reads them, that throw uncommitted lines away."""
_NAMING = re.compile(r"^(?:rm|shred|find|git restore)\b|^git checkout\b(?!.*\s(?:-f\b|--force)).*\s--\s")
"""Those that discard only what they name."""
EVERYTHING = ("/*",)
_UNNAMED = re.compile(r"\b(?:xargs|parallel)\b|\s-C\b|--(?:work-tree|git-dir|pathspec-from-file)\b")
# The cheap question before it, about the agent's payload as it came.
MAY_DISCARD = re.compile(
    rb"\bgit\b.{0,200}\b(?:checkout|restore|reset|stash|clean|switch|worktree)\b|\brm\b|-delete\b|\bshred\b"
)


def discarded_files(command: str, cwd: str) -> tuple[str, ...]:
    """The files and folders whose lines a command may throw away, `*` for any characters; empty for none."""
    acts = read_acts(command, cwd)
    discarding = [one for one in acts.readings if DISCARDING.search(one)]
    if not discarding:
        return ()
    named = not _UNNAMED.search(command) and all(_NAMING.search(one) and UNKNOWN not in one for one in discarding)
    return acts.writes if named and acts.writes else EVERYTHING


def spares_committed(command: str) -> bool:
    """`git clean` alone removes only files that git does not know."""
    discarding = [one for one in read_acts(command).readings if DISCARDING.search(one)]
    return all(one.startswith("git clean ") for one in discarding)


def is_among(path: str, named: Sequence[str]) -> bool:
    return any(
        path == one or path.startswith(f"{one}/") or fnmatchcase(path, one) or fnmatchcase(path, f"{one}/*")
        for one in named
    )


def decide(_state: State, event: Event, settings: Settings) -> Decision | None:
    data, settings = event.data, settings or DEFAULTS
    if not isinstance(data, HookPayload):
        return None
    said = [_warn(data, settings)] if isinstance(data, ToolPayload) and data.endangered else []
    if isinstance(data, ToolPayload) and data.changed_by:
        said.append(context_decision(SOURCE, describe_news(data.changed_by)))
    if data.discarded:
        said.append(Decision(notices=(data.discarded,)))
    return merge_decisions(said) if said else None


def _warn(data: ToolPayload, settings: WorkspaceSettings) -> Decision:
    named = name_lines(data.endangered)
    if data.action == "edit":
        return context_decision(
            SOURCE, f"Others have uncommitted lines there: {named}. Keep what you were not asked to change."
        )
    text = f"This would discard uncommitted lines of others: {named}."
    if settings.discards == "refuse":
        return deny_decision(f"{text} Leave them, or ask your person.")
    if settings.discards == "ask":
        return Decision(verdict="ask", reasons=(text,))
    return context_decision(SOURCE, f"{text} {_promise(data.endangered)}")


def _promise(endangered: Sequence[OwnedLines]) -> str:
    kept = [one for one in endangered if one.lines != NOT_KEPT]
    which = "They" if len(kept) == len(endangered) else "The others"
    restored = f"{which} can be restored with: holdfast undo" if kept else ""
    return restored if len(kept) == len(endangered) else f"What is not kept cannot be restored. {restored}".rstrip()


def name_lines(endangered: Sequence[OwnedLines]) -> str:
    named = [f"{sanitise_line(one.path)} ({_lines(one.lines)}by {_who(one.by)})" for one in endangered[:MOST_NAMED]]
    return ", ".join(named) + _more(len(endangered))


def _lines(numbers: str) -> str:
    if numbers == NOT_KEPT:
        return f"{numbers}, "
    return f"line{'s' if '-' in numbers or ',' in numbers else ''} {numbers} " if numbers else ""


def describe_news(news: Mapping[str, str]) -> str:
    """Files by path; after `//` how HEAD moved."""
    files = [f"{sanitise_line(path)} (by {_who(by)})" for path, by in news.items() if not path.startswith(MOVED)]
    said = [f"HEAD moved: {how[len(MOVED) :]}, by {_who(by)}." for how, by in news.items() if how.startswith(MOVED)]
    if files:
        listed = ", ".join(files[:MOST_NAMED]) + _more(len(files))
        said.append(f"Changed since you used them: {listed}. Read them again.")
    return " ".join(said)


def _more(count: int) -> str:
    about = "at least " if count >= MOST_ENDANGERED else ""
    return f" and {about}{count - MOST_NAMED} more" if count > MOST_NAMED else ""


def _who(session: str) -> str:
    return {"": "a person", "?": "somebody before this session"}.get(session) or f"session {session_alias(session)}"
