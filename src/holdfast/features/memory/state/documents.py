"""The documents of memory; all bounded."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.feature import State
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
EARLIER, QUIRK = "memory/earlier", "memory/quirk"
TOLD_SOURCES = frozenset((SOURCE, PUT_BACK, HANDOFF, EARLIER, QUIRK))
"""Sources of contexts: `decision.made` records them, so marks follow what was really injected."""
# The mark after each injected memory or quirk, by which `session_state` records what a session saw.
IDS = lazy_pattern(r"\[([mq][0-9a-f]{12})\]")

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


class OwnMemory(msgspec.Struct, frozen=True):
    """A memory that this session produced."""

    id: str
    text: str
    type: str


# Decoding ignores the other fields of that document.
class SessionGates(msgspec.Struct, kw_only=True, frozen=True):
    """The part of the `sessions` feature's document that a hand-over quotes, so that open gates are counted in one
    place only."""

    open_gates: dict[str, Any] = {}
    let_through: list[str] = []


class CommandUse(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """How often an exact command worked in a session; `check`: it ran tests, a linter or a build."""

    times: int = 0
    check: bool = False


class MemorySession(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A session as memory sees it: what was asked, what worked, what is open, what was injected."""

    id: str
    agent: str = ""
    project: str = ""
    branch: str = ""
    at: int = 0
    first_seq: int = 0
    first_prompt: str = ""
    prompts: int = 0
    asked: list[str] = []
    """The newest prompts, oldest first, without those that the person stopped."""
    stopped: bool = False
    """The person interrupted the newest prompt."""
    message: str = ""
    constraints: list[str] = []
    corrections: list[str] = []
    words: list[str] = []
    """Stems of the prompts, by which a later prompt finds this session."""
    tasks: dict[str, str] = {}
    todos: list[str] = []
    commands: dict[str, CommandUse] = {}
    """Exact commands that worked; the newest last."""
    running: dict[str, int] = {}
    failing: dict[str, str] = {}
    """Checks whose last run failed, with what failed."""
    files: dict[str, int] = {}
    """Files read or edited, by how often; relative to the worktree."""
    edited: dict[str, int] = {}
    plan: str = ""
    """The title of the plan that this session made."""
    own: list[OwnMemory] = []
    shown: dict[str, int] = {}
    """Injected memories, by the event that injected them."""
    parent: str = ""
    went_on: bool = False
    """It began with a conversation: resumed or forked."""
    summary: str = ""
    """The agent's own, of the last compaction."""
    left_at: int = 0

    @property
    def prompt(self) -> str:
        return self.asked[-1] if self.asked else ""


class RecentSessions(msgspec.Struct, kw_only=True, frozen=True):
    """The sessions that worked in a repository most recently; the newest last."""

    project: str
    sessions: dict[str, int] = {}
    at: int = 0


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
    overruled: list[str] = []
    """What newer statements replaced, in lowercase: nothing that quotes it is injected."""
    at: int = 0

    def quotes_overruled(self, text: str) -> bool:
        lower = text.lower()
        return any(words in lower for words in self.overruled)


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
RECENT = DocumentType("memory.recent", RecentSessions)


def observation_ref(identity: str) -> Ref:
    return OBSERVATION.ref(bounded_name(identity))


def session_ref(session: str) -> Ref:
    return SESSION.ref(bounded_name(session))


def project_ref(location: str) -> Ref:
    return PROJECT.ref(bounded_name(location))


def recent_ref(location: str) -> Ref:
    return RECENT.ref(bounded_name(location))


def place_ref(project: str) -> Ref:
    return PLACE.ref(bounded_name(project))


def project_memory(state: State, location: str) -> ProjectMemory:
    return PROJECT.get(state, project_ref(location).key) or ProjectMemory(project=location)


def session_of(state: State, session: str) -> MemorySession | None:
    return SESSION.get(state, session_ref(session).key) if session else None


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
