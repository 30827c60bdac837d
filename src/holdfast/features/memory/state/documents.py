"""The documents of memory: an observation, a session, a project's best, a folder's repository; all bounded."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.lazy import lazy_pattern
from holdfast.core.ports import Ref

TYPES = ("decision", "rule", "preference", "gotcha", "fact", "trade_off", "bug_fix", "discovery", "session_summary")
SUMMARY = "session_summary"
USER, AGENT, DEED, OUTSIDE = "user", "agent", "deed", "outside"
"""Whose words: a person's; the agent's; ours about commands and files; a tool's, file's or page's."""
# Only these are injected without a person vouching for them.
TRUSTED = (USER, DEED)
ACTIVE, SUPERSEDED, FORGOTTEN, CANDIDATE, DROPPED = "active", "superseded", "forgotten", "candidate", "dropped"
"""A candidate waits for a person and is injected nowhere; a dropped one does not come back."""

SOURCE, PUT_BACK, HANDOFF, PROPOSE = "memory", "memory/compaction", "memory/handoff", "memory/propose"
"""Sources of contexts: `decision.made` records them, so marks follow what was really injected."""
# The mark after each injected memory, by which `session_state` records what a session saw.
IDS = lazy_pattern(r"\[(m[0-9a-f]{12})\]")

# Characters of one memory; the counts below bound each document, whatever an agent sends.
LONGEST_TEXT = 500
MOST_PER_TURN = 8
MOST_EVIDENCE = 20
MOST_FILES = 10
MOST_ITEMS = 150


class Observation(msgspec.Struct, kw_only=True, frozen=True):
    """One remembered thing."""

    id: str
    type: str = ""
    text: str = ""
    detail: str = ""
    origin: str = ""
    words_of: str = ""
    importance: int = 0
    files: list[str] = []
    paths: list[str] = []
    """The files it names, where they were found."""
    evidence: list[int] = []
    session: str = ""
    project: str = ""
    agent: str = ""
    repo: str = ""
    supersedes: list[str] = []
    superseded_by: str = ""
    pinned: bool = False
    promoted: bool = False
    times: int = 0
    status: str = ACTIVE
    first_at: int = 0
    at: int = 0
    seq: int = 0

    @property
    def place(self) -> str:
        return self.repo or self.project


class Act(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A command, an edit or a question of the current turn, as far as a rule may need it."""

    seq: int
    action: str
    ok: bool = False
    command: str = ""
    paths: list[str] = []
    text: str = ""


class Turn(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What was asked, done and answered. `context` is what the agent had said just before."""

    n: int = 0
    prompt: str = ""
    context: str = ""
    prompt_seq: int = 0
    planning: bool = False
    message: str = ""
    message_seq: int = 0
    acts: list[Act] = []


class OwnMemory(msgspec.Struct, frozen=True):
    """A memory that this session produced."""

    id: str
    text: str
    type: str


class Snapshot(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The state before a compaction."""

    prompt: str = ""
    tasks: dict[str, str] = {}
    todos: list[str] = []
    commands: dict[str, int] = {}
    own: list[OwnMemory] = []


# Decoding ignores the other fields of that document.
class SessionGates(msgspec.Struct, kw_only=True, frozen=True):
    """The part of the `sessions` feature's document that a hand-over quotes, so that open gates are counted in one
    place only."""

    open_gates: dict[str, Any] = {}


class MemorySession(Turn, kw_only=True, frozen=True, omit_defaults=True):
    """A session as memory sees it: the current turn, what is open, what was injected."""

    id: str
    agent: str = ""
    project: str = ""
    at: int = 0
    first_seq: int = 0
    first_prompt: str = ""
    closed: bool = False
    """The current turn is over."""
    turn_ended: bool = False
    """This event ended it."""
    previous: Turn | None = None
    """A turn whose end was never reported, ended by this event."""
    tasks: dict[str, str] = {}
    todos: list[str] = []
    commands: dict[str, int] = {}
    edited: dict[str, int] = {}
    own: list[OwnMemory] = []
    shown: dict[str, int] = {}
    """Injected memories, by the event that injected them."""
    parent: str = ""
    compacted: int = 0
    snapshot: Snapshot | None = None
    summary: str = ""
    left_at: int = 0

    def finished_turn(self) -> Turn | None:
        """The turn that this event ended: the current one or the previous one."""
        return self if self.turn_ended else self.previous

    def turn(self) -> Turn:
        return Turn(**{name: getattr(self, name) for name in Turn.__struct_fields__})

    def before_compaction(self) -> Snapshot:
        return self.snapshot or Snapshot(**{name: getattr(self, name) for name in Snapshot.__struct_fields__})


class ProjectItem(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A memory as injected, with what decides its relevance."""

    id: str
    type: str
    text: str
    origin: str
    words_of: str = ""
    importance: int = 1
    files: list[str] = []
    paths: list[str] = []
    at: int = 0
    session: str = ""
    times: int = 1
    pinned: bool = False
    promoted: bool = False
    terms: list[str] = []


class Handoff(msgspec.Struct, kw_only=True, frozen=True):
    """Work prepared for another agent; `claimed` is the session that received it, and then the text is removed."""

    id: str
    text: str
    session: str
    at: int
    claimed: str = ""


class ProjectMemory(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The best of a project's memory, ready to inject without lookups."""

    project: str
    items: list[ProjectItem] = []
    handoff: Handoff | None = None
    at: int = 0


class FolderRepository(msgspec.Struct, kw_only=True, frozen=True):
    """The repository of a folder, as an agent in it last reported."""

    project: str
    repo: str
    at: int


OBSERVATION = DocumentType("observation", Observation)
SESSION = DocumentType("memory.session", MemorySession)
SESSION_GATES = DocumentType("session", SessionGates)
PROJECT = DocumentType("memory.project", ProjectMemory)
PLACE = DocumentType("memory.place", FolderRepository)


def observation_ref(identity: str) -> Ref:
    return OBSERVATION.ref(bounded_name(identity))


def session_ref(session: str) -> Ref:
    return SESSION.ref(bounded_name(session))


def project_ref(location: str) -> Ref:
    return PROJECT.ref(bounded_name(location))


def place_ref(project: str) -> Ref:
    return PLACE.ref(bounded_name(project))


def memory_id(project: str, type_: str, text: str) -> str:
    """The same words of the same type in the same project are one memory."""
    # Case and punctuation do not make another memory.
    words = " ".join(re.findall(r"\w+", text.lower()))
    # Six bytes are short enough to type, and enough for the few memories of one project.
    digest = hashlib.blake2b(f"{project}\n{type_}\n{words}".encode("utf-8", "replace"), digest_size=6)
    return f"m{digest.hexdigest()}"


def repo_of(event: Event) -> str:
    """The repository that a payload names; most do."""
    return str(getattr(event.data, "repo", ""))


def place_of(event: Event) -> str:
    """Where a memory belongs: the repository, shared by its worktrees, or else the folder."""
    return repo_of(event) or event.project


def one_line(text: str, limit: int = LONGEST_TEXT) -> str:
    """On one line, bounded."""
    # Cut before splitting: a tool's output may be megabytes.
    words = " ".join(text[: limit * 4].split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def day_of(at: int) -> date:
    """The UTC day of a time in ms."""
    return datetime.fromtimestamp(max(0, at) / 1000, UTC).date()


def string_list(value: Any, most: int = MOST_FILES) -> list[str]:
    """A list of strings, whatever was received."""
    return [str(one)[:1000] for one in value[:most]] if isinstance(value, list | tuple) else []


def shorten_strings(values: Iterable[str], most: int = MOST_FILES) -> list[str]:
    return [value[:1000] for value in values][:most]
