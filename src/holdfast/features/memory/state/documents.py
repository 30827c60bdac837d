"""The documents of memory: one thing that is remembered, a session, a project's best, where a folder belongs. All bounded."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.analysis.search import query
from holdfast.core.document import DocumentType
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.agent_events import PromptSubmitted, TurnEnded
from holdfast.core.kinds.memory_events import RememberedPayload
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.lazy import lazy_pattern
from holdfast.core.ports import Ref

TYPES = ("decision", "rule", "preference", "gotcha", "fact", "trade_off", "bug_fix", "discovery", "session_summary")
SUMMARY = "session_summary"
USER, AGENT, DEED, OUTSIDE, MODEL = "user", "agent", "deed", "outside", "model"
"""Whose words: a person's, the agent's, ours about commands and files, those of a tool, a file or a page, or those of
the model that read the turn."""
# Only these are told to agents without a person having vouched for them.
TRUSTED = (USER, DEED)
ACTIVE, SUPERSEDED, FORGOTTEN, CANDIDATE, DROPPED = "active", "superseded", "forgotten", "candidate", "dropped"
"""A candidate waits for a person and is told to nobody; one that was dropped does not come back."""

SOURCE, PUT_BACK, HANDOFF, PROPOSE = "memory", "memory/compaction", "memory/handoff", "memory/propose"
"""Under these names an agent is told; `decision.made` records it, and so marks are set by what was really told."""
# The mark behind each told memory, by which `session_state` records what a session was shown.
IDS = lazy_pattern(r"\[(m[0-9a-f]{12})\]")

# Characters of one memory; counts below bound each document whatever an agent sends.
LONGEST_TEXT = 500
MOST_PER_TURN = 8
MOST_EVIDENCE = 20
MOST_FILES = 10
MOST_ITEMS = 150


class Observation(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that is remembered."""

    id: str
    type: str = ""
    text: str = ""
    detail: str = ""
    origin: str = ""
    words_of: str = ""
    importance: int = 0
    files: list[str] = []
    paths: list[str] = []
    """The files it names, where they were found soon after."""
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
    """A command, an edit or a question of the turn in hand, as far as a rule may want it."""

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
    """A memory that this very session gave rise to."""

    id: str
    text: str
    type: str


class Snapshot(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What there was before a compaction."""

    prompt: str = ""
    tasks: dict[str, str] = {}
    todos: list[str] = []
    commands: dict[str, int] = {}
    own: list[OwnMemory] = []


# Decoding ignores the other fields of that document.
class SessionGates(msgspec.Struct, kw_only=True, frozen=True):
    """The part of the `sessions` feature's document that a hand-over quotes: open gates are counted in one place only."""

    open_gates: dict[str, Any] = {}


class MemorySession(Turn, kw_only=True, frozen=True, omit_defaults=True):
    """A session as memory sees it: the turn in hand, what is open, what it was told."""

    id: str
    agent: str = ""
    project: str = ""
    at: int = 0
    first_seq: int = 0
    first_prompt: str = ""
    closed: bool = False
    """The turn in hand is over."""
    turn_ended: bool = False
    """This very event ended it."""
    previous: Turn | None = None
    """A turn whose end was never told, ended by this event."""
    queued: int = 0
    tasks: dict[str, str] = {}
    todos: list[str] = []
    commands: dict[str, int] = {}
    edited: dict[str, int] = {}
    own: list[OwnMemory] = []
    shown: dict[str, int] = {}
    """Memories it was told, by the event that told them."""
    parent: str = ""
    compacted: int = 0
    snapshot: Snapshot | None = None
    summary: str = ""
    left_at: int = 0

    def finished_turn(self) -> Turn | None:
        """The turn that this event ended: the one in hand, or the one before it."""
        return self if self.turn_ended else self.previous

    def turn(self) -> Turn:
        return Turn(**{name: getattr(self, name) for name in Turn.__struct_fields__})

    def before_compaction(self) -> Snapshot:
        return self.snapshot or Snapshot(**{name: getattr(self, name) for name in Snapshot.__struct_fields__})


class ProjectItem(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A memory as it is told, with what decides whether it fits."""

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
    """Work made ready for another agent; `claimed` is the session that was told, and then the text is gone."""

    id: str
    text: str
    session: str
    at: int
    claimed: str = ""


class ProjectMemory(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The best of a project's memory, ready to be told without looking anything up."""

    project: str
    items: list[ProjectItem] = []
    handoff: Handoff | None = None
    at: int = 0


class FolderRepository(msgspec.Struct, kw_only=True, frozen=True):
    """Which repository a folder belongs to, as an agent in it last said."""

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
    """The same words of the same type in the same project are one memory, however often they come."""
    # Case and punctuation do not make another memory.
    words = " ".join(re.findall(r"\w+", text.lower()))
    # Six bytes are short enough to be typed, and enough for the few memories of one project.
    digest = hashlib.blake2b(f"{project}\n{type_}\n{words}".encode("utf-8", "replace"), digest_size=6)
    return f"m{digest.hexdigest()}"


def repo_of(event: Event) -> str:
    """Of a payload that says which repository it is about; most do."""
    return str(getattr(event.data, "repo", ""))


def place_of(event: Event) -> str:
    """Where a memory belongs: the repository, which all its worktrees share, or the folder where there is none."""
    return repo_of(event) or event.project


def one_line(text: str, limit: int = LONGEST_TEXT) -> str:
    """On one line, with an end."""
    # Cut before it is split: a tool's output may be megabytes.
    words = " ".join(text[: limit * 4].split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def day_of(at: int) -> date:
    """The UTC day of a time in milliseconds."""
    return datetime.fromtimestamp(max(0, at) / 1000, UTC).date()


def string_list(value: Any, most: int = MOST_FILES) -> list[str]:
    """A list of strings, whatever came from outside."""
    return [str(one)[:1000] for one in value[:most]] if isinstance(value, list | tuple) else []


def shorten_strings(values: Iterable[str], most: int = MOST_FILES) -> list[str]:
    return [value[:1000] for value in values][:most]


# From what a person types to the thing meant.

SAID = ("prompt.submitted", "turn.ended", "turn.answer_read")
FIX = "Look for it with: holdfast memory search WORDS"


def find_memory_or_event(call: Call) -> Event | Observation:
    """`m…` is an observation, `e…` (or a bare number) something that was said."""
    wanted_id = str(call.args.get("id") or "").strip().strip("[]")
    number = wanted_id.removeprefix("e")
    # 19 digits and more do not fit SQLite's 64-bit row numbers.
    if number.isdecimal() and len(number) < 19:
        event = call.reader.event(int(number))
        if event and event.kind in SAID:
            return event
        raise CommandRefused(f"nothing was said at {wanted_id}", fix=FIX)
    return find_observation(call)


def find_observation(call: Call) -> Observation:
    wanted_id = str(call.args.get("id") or "").strip().strip("[]")
    doc = OBSERVATION.load(call.reader, wanted_id) if wanted_id else None
    if doc is None and len(wanted_id) >= 4:
        # Two are asked for to see whether the beginning is ambiguous.
        matches = OBSERVATION.list(call.reader, prefix=wanted_id, limit=2)
        doc = matches[0][1] if len(matches) == 1 else None
    if doc is None:
        raise CommandRefused(f"there is no memory {wanted_id!r}", fix=FIX)
    if doc.status == FORGOTTEN:
        raise CommandRefused(f"{doc.id} was forgotten", fix=FIX)
    return doc


def text_of(event: Event) -> str:
    """The words of a prompt, an answer or an observation."""
    data = event.data
    if isinstance(data, PromptSubmitted):
        return data.prompt
    if isinstance(data, TurnEnded | TurnAnswerRead):
        return data.message
    return data.text if isinstance(data, RememberedPayload) else ""


def repo_of_project(call: Call, project: str) -> str:
    """The repository this folder belongs to, as an agent in it last said; empty when none did."""
    doc = PLACE.load(call.reader, place_ref(project).key) if project else None
    return doc.repo if doc else ""


def memory_places(call: Call) -> list[str]:
    """Where the memories of the asking project are; none when all are wanted."""
    project = "" if call.args.get("everywhere") else str(call.args.get("project") or call.project)
    return list(dict.fromkeys(location for location in (repo_of_project(call, project), project) if location))


def newest_session(call: Call) -> str:
    rows = SESSION.list(call.reader, project=call.project, limit=1)
    return rows[0][1].id if rows else ""


# Words of prose, as memory compares them: cut like code, without stopwords, their endings taken off. Pure.

STOPWORDS = query.STOPWORDS | frozenset(
    re.findall(r"\w+", "about any did he her him his me no not she some us whom s t d ll re ve m don am also just")
)
# (ending, what takes its place); the first that fits is taken off, so longer ones stand first.
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", "e"), ("s", ""))
_TOKEN = lazy_pattern(r"[\w.~/-]+")
"""One pass over the text, whatever is in it; what a token is, is asked of the short ones alone."""
# Joined words (`a.b`, `a/b`, `a_b`), camelCase, or capitals with a digit (`HTTP2`).
_NAME = lazy_pattern(r"\w[._/-]\w|[a-z][A-Z]|^[A-Z]{2,}\d")
_FILE = lazy_pattern(r"[\w-]\.[A-Za-z]\w{0,7}$")
LONGEST_NAME = 120


@lru_cache(maxsize=100_000)
def stem_word(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word.endswith("ss")):
            word = word[: -len(ending)] + instead
            break
    # "cache" and "caching" meet at "cach".
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    # "running" → "run"; but "call", "pass" and "buzz" end so by themselves.
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word


def plain_words(text: str) -> list[str]:
    """In order, with repeats, endings still on."""
    return [word for word in query.in_order(text) if word not in STOPWORDS]


def search_terms(text: str) -> list[str]:
    """Stems, and exact names (`src/app.py`, `parseHeader`, `retry_count`) once more as a whole."""
    return [stem_word(word) for word in plain_words(text)] + exact_names(text)


_ANY_NAME = lazy_pattern(r"\w[._/-]\w|[a-z][A-Z]|[A-Z]{2}\d")


def exact_names(text: str) -> list[str]:
    # Most prose has none, and one look at the whole is a tenth of a look at each word: an index is built from many texts.
    if not _ANY_NAME.search(text):
        return []
    # The "=" keeps exact names apart from stems in one index.
    return [f"={token}" for token in _name_tokens(text) if len(token) > 3 and _NAME.search(token)]


def files_in(text: str) -> list[str]:
    return list(dict.fromkeys(token for token in _name_tokens(text) if _FILE.search(token)))


def _name_tokens(text: str) -> list[str]:
    # The full stop of a sentence is no part of a file's name.
    tokens = (token.rstrip("./-") for token in _TOKEN.findall(text))
    return [token for token in tokens if len(token) <= LONGEST_NAME]
