"""Decides which fields of which events leave the machine."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS, SESSION_ENDS, TEAM_KINDS, TURN_ENDS
from holdfast_team.protocol import LEVELS, Level, SharedEvent

_IS_PATH = re.compile(r"(?:~|/[^/\s]+)/\S+")
"""An absolute path and nothing else."""

Fields = Mapping[str, frozenset[str]]
"""The payload fields that may leave, by kind."""

_WHERE = ("branch",)
_TOOL_FACTS = ("branch", "action", "paths", "ok", "exit_code", "ms", "lane_type", "interrupted")


def _fields_by_kind(kinds: Iterable[str], *names: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys(kinds, frozenset(names))


PRESENCE: Fields = {
    **_fields_by_kind(("session.started", "prompt.submitted", "permission.requested", "notification", "elicitation.requested"), *_WHERE),
    **_fields_by_kind((*SESSION_ENDS, *TURN_ENDS), *_WHERE),
}  # fmt: skip
FACTS: Fields = {
    **PRESENCE,
    **_fields_by_kind(("session.started",), "branch", "source", "model"),
    **_fields_by_kind(("tool.finished", "tool.failed"), *_TOOL_FACTS),
    **_fields_by_kind(("subagent.started", "subagent.ended"), "branch", "lane_type"),
    **_fields_by_kind(("compact.ended",), "trigger"),
    **_fields_by_kind(
        ("check.finished",),
        "kind", "runner", "selection", "verdict", "passed", "failed", "skipped", "ms", "branch", "commit",
    ),
    **_fields_by_kind(("git.acted",), "verb", "commits", "outside"),
    **_fields_by_kind(("model.answered",), "branch", "model", "tokens", "reported", "summed", "day", "compaction"),
    **_fields_by_kind(("decision.made",), "of_kind", "verdict", "branch"),
    **_fields_by_kind(("gates.triggered", "gates.bypassed"), "branch", "requirements"),
    **_fields_by_kind(("gates.satisfied", "gates.approved"), "branch", "requirements", "method"),
}  # fmt: skip
SUMMARIES: Fields = {
    **FACTS,
    **_fields_by_kind(
        ("session.summarised",), "title", "text", "prompts", "tools", "failed", "denied", "edits", "ms", "files",
        "commits", "outcome", "end",
    ),
    **_fields_by_kind(("check.finished",), *FACTS["check.finished"], "failures"),
    **_fields_by_kind(("decision.made",), *FACTS["decision.made"], "reasons"),
}  # fmt: skip
BY_LEVEL: Mapping[Level, Fields] = {"presence": PRESENCE, "facts": FACTS, "summaries": SUMMARIES}

FULL_KINDS = frozenset(HOOK_KINDS) | SUMMARIES.keys() | {"turn.processed", "memory.observed", "session.linked"}
NEVER = frozenset(
    "process pid pid_start transcript lane_transcript settings_at left_running same dedupe_key cwd repo worktree content git refs"
    " touches written".split()
)
"""Fields that mean nothing on another machine."""
PLACES = frozenset(("cwd", "repo", "worktree", "transcript", "transcript_path", "lane_transcript"))
"""Fields that name a folder or file of this machine, however deep."""
PATH_FIELDS = frozenset(("paths", "files"))
LEVEL_TEXT: Mapping[Level, str] = {
    "presence": "that you work, in which project and branch, and whether an agent waits for you",
    "facts": "also which tools ran, which files they wrote (names only), verdicts of checks and gates, tokens and models",
    "summaries": "also what each session came to in words, names of failed tests, reasons of refusals",
    "full": "also prompts, answers, commands and their output, after redaction",
}


def share_event(event: Event, level: Level, project: str, root: str) -> SharedEvent | None:
    """The event as it leaves, or None if nothing of it does. `root` is the project's local folder."""
    allowed = _allowed_fields(event.kind, level)
    # Events of the team came from the server and are not sent back.
    if allowed is None or event.kind in TEAM_KINDS or not event.session:
        return None
    whole = event.data.as_dict()
    names = whole.keys() - NEVER if level == "full" else allowed - NEVER
    data = {name: value for name, value in whole.items() if name in names}
    # A worktree of the same repository: a file has the same name in each.
    tree = whole.get("worktree") if whole.get("repo") == f"{root}/.git" else ""
    data |= {name: inside_paths(data[name], root, tree or root) for name in PATH_FIELDS & data.keys()}
    if level == "full":
        data = without_places(data, [place for place in (tree, root) if place], str(Path.home()))
    return SharedEvent(
        seq=event.seq, key=event.key, at=event.at, kind=event.kind, session=event.session, project=project,
        agent=event.agent, tool=event.tool if level != "presence" else "", data=clean_text(data),
    )  # fmt: skip


def _allowed_fields(kind: str, level: Level) -> frozenset[str] | None:
    if level == "full":
        # At `full` every field may leave that is not in NEVER, so there is no list.
        return frozenset() if kind in FULL_KINDS else None
    return BY_LEVEL[level].get(kind)


def inside_paths(paths: Any, root: str, tree: str) -> list[str]:
    """Relative to the worktree or else the project; paths outside both do not leave."""
    texts = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    # Normalised before the test: `src/../../secret` is outside.
    within = (path.removeprefix(f"{tree}/" if path.startswith(f"{tree}/") else f"{root}/") for path in texts)
    relative = (posixpath.normpath(path) for path in within)
    return [path for path in relative if not path.startswith(("/", "../", "~")) and path not in (".", "..")]


def without_places(value: Any, roots: Sequence[str], home: str) -> Any:
    """The same without folders of this machine: inputs and outputs of tools name them anywhere."""
    if isinstance(value, str):
        return _relative_text(value, roots, home)
    if isinstance(value, dict):
        return {name: without_places(one, roots, home) for name, one in value.items() if name not in PLACES}
    return [without_places(one, roots, home) for one in value] if isinstance(value, list | tuple) else value


def _relative_text(text: str, roots: Sequence[str], home: str) -> str:
    if text in roots:
        return "."
    for place in roots:
        text = text.replace(f"{place}/", "").replace(place, ".")
    text = text.replace(home, "~") if len(home) > 1 else text
    # A text that is nothing but a path leads out of the project: its folder is nobody's business.
    return posixpath.basename(text.rstrip("/")) if _IS_PATH.fullmatch(text) else text


def clean_text(value: Any) -> Any:
    """Text that JSON can carry: half a surrogate pair becomes a question mark."""
    try:
        msgspec.json.encode(value)  # Nearly always so, and many times quicker than looking at every text.
        return value
    except UnicodeEncodeError:
        return _replace_surrogates(value)


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replace_surrogates(str(name)): _replace_surrogates(one) for name, one in value.items()}
    return [_replace_surrogates(one) for one in value] if isinstance(value, list | tuple) else value


def level_named(text: str) -> Level | None:
    return next((level for level in LEVELS if level == text), None)
