"""Words and shapes of this room: kinds of events, documents and their bounds, settings."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any

from msgspec import Meta

from holdfast.core.event import Event
from holdfast.core.ids import bounded, delivery_key
from holdfast.core.kinds import Record
from holdfast.core.ports import Doc, Ref
from holdfast.core.section import Section
from holdfast.features.memory.llm.settings import ModelSettings

OBSERVATION, SESSION, PROJECT, PLACE = "observation", "memory.session", "memory.project", "memory.place"
"""Documents: one thing that is remembered; what a session did and was shown; the best of a project, to be told; which
repository a folder belongs to."""

KINDS = {
    "memory.observed": "something worth remembering (`id`, `type`, `text`, `origin`, `importance`, `evidence`, …)",
    "memory.pinned": "a person wants a memory told at every start, or no longer (`id`, `pinned`)",
    "memory.promoted": "a person vouches for a memory made of words from outside (`id`)",
    "memory.kept": "a person kept a candidate, as it was or in other words (`id`, `type`, `text`, `was`)",
    "memory.dropped": "a person dropped a candidate; the same words are not proposed again (`id`)",
    "memory.forgotten": "a person had a memory removed; its text is gone (`id`)",
    "memory.handed_over": "a session's work was made ready for another agent (`id`, `text`)",
    "memory.queued": "a finished turn waits for the model, where one is switched on (`turn`)",
    "memory.asked": "tokens were set aside for one call of the model (`id`, `tokens`, `limit`, `turns`)",
    "memory.answered": "that call came to its end (`id`, `ok`, `tokens`, `turns`, `until`, `error`, `next_at`)",
}
SOURCE, PUT_BACK, HANDOFF, PROPOSE = "memory", "memory/compaction", "memory/handoff", "memory/propose"
"""Under these names an agent is told; `decision.made` records it, and so marks are set by what was really told."""

TYPES = ("decision", "rule", "preference", "gotcha", "fact", "trade_off", "bug_fix", "discovery", "session_summary")
USER, AGENT, DEED, OUTSIDE, MODEL = "user", "agent", "deed", "outside", "model"
"""Whose words: a person's, the agent's, ours about commands and files, those of a tool, a file or a page, or those of
the model that read the turn."""
TRUSTED = (USER, DEED)

ACTIVE, SUPERSEDED, FORGOTTEN, CANDIDATE, DROPPED = "active", "superseded", "forgotten", "candidate", "dropped"
"""A candidate waits for a person and is told to nobody; one that was dropped does not come back."""
LONGEST_TEXT = 500
MOST_PER_TURN = 8
MOST_EVIDENCE = 20
MOST_FILES = 10
MOST_ITEMS = 150
MOST_ACTS = 60
MOST_SHOWN = 300
MOST_OWN = 30
PLANNING_CAP = 5

IDS = re.compile(r"\[(m[0-9a-f]{12})\]")


Tokens = Annotated[int, Meta(ge=0, le=100_000)]
Globs = Annotated[tuple[str, ...], Meta(max_length=200, extra={"join": True})]


class MemorySettings(Section):
    enabled: Annotated[bool, Meta(description="Make observations from finished turns.")] = True
    inject: Annotated[bool, Meta(description="Tell agents what is remembered.")] = True
    start_tokens: Annotated[Tokens, Meta(description="Most tokens of memory at the start of a session.")] = 1000
    prompt_tokens: Annotated[Tokens, Meta(description="Most tokens of memory with a prompt.")] = 250
    exclude_paths: Annotated[Globs, Meta(description="Globs: what happens there is not remembered.")] = ()
    exclude_commands: Annotated[Globs, Meta(description="Globs: such commands are not remembered.")] = ()
    agent_proposes: Annotated[
        bool, Meta(description="Ask agents to propose what their user said for good; costs their tokens.")
    ] = False
    model: Annotated[ModelSettings, Meta(description="A model that reads finished turns; off by default.")] = (
        ModelSettings()
    )


DEFAULTS = MemorySettings()


def settings_or_default(settings: Any) -> MemorySettings:
    return settings if isinstance(settings, MemorySettings) else DEFAULTS


def excluded(paths: Iterable[str], command: str, settings: MemorySettings) -> bool:
    return any(fnmatchcase(path, glob) for path in paths for glob in settings.exclude_paths) or any(
        fnmatchcase(command, glob) for glob in settings.exclude_commands
    )


def place_of(event: Event) -> str:
    """Where a memory belongs: the repository, which all its worktrees share, or the folder where there is none."""
    return str(event.get("repo") or event.project)


def session_ref(session: str) -> Ref:
    return Ref(SESSION, bounded(session))


def project_ref(place: str) -> Ref:
    return Ref(PROJECT, bounded(place))


def place_ref(project: str) -> Ref:
    return Ref(PLACE, bounded(project))


def observation_ref(identity: str) -> Ref:
    return Ref(OBSERVATION, bounded(identity))


def identity(project: str, type_: str, text: str) -> str:
    """The same words of the same type in the same project are one memory, however often they come."""
    words = " ".join(re.findall(r"\w+", text.lower()))
    digest = hashlib.blake2b(f"{project}\n{type_}\n{words}".encode("utf-8", "replace"), digest_size=6)
    return f"m{digest.hexdigest()}"


def line(text: Any, limit: int = LONGEST_TEXT) -> str:
    """On one line, with an end."""
    words = " ".join(str(text or "")[: limit * 4].split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def day_of(at: int) -> date:
    """The UTC day of a time in milliseconds."""
    return datetime.fromtimestamp(max(0, at) / 1000, UTC).date()


def said(kind: str, now: int, *, session: str = "", project: str = "", **data: Any) -> Event:
    return Event(key=delivery_key(now), kind=kind, at=now, session=session, project=project, data=data)


def strings(value: Any, most: int = MOST_FILES) -> list[str]:
    """A list of strings, whatever came."""
    return [str(one)[:1000] for one in value[:most]] if isinstance(value, list | tuple) else []


def mapping(value: Any) -> Any:
    return value if isinstance(value, Mapping | Record) else {}


def newest(values: Doc, name: str, value: Any, most: int) -> Doc:
    """A copy with this one last; the oldest fall out."""
    kept = {k: v for k, v in values.items() if k != name}
    kept[name] = value
    return kept if len(kept) <= most else dict(list(kept.items())[-most:])
