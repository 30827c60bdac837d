"""The contract of a feature: one value of this type."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from holdfast.core.authority import Authority, Surroundings, judge_call
from holdfast.core.caller import Caller
from holdfast.core.decision import Decision
from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.job import ClaimedJob, Job, Run
from holdfast.core.ports import Cipher, Doc, Reader, Ref

Facets = tuple[str, str, int]
"""(project, status, at): what lists are sorted and filtered by."""

Settings = Any
"""The feature's settings section, an instance of `Feature.settings`."""


class State(Protocol):
    """The feature's documents as they are after the event being handled."""

    def get(self, kind: str, key: str) -> Doc | None: ...


@dataclass(frozen=True)
class File:
    """A seed's document, written as a view. None removes the file. Symlinks are never followed."""

    path: Path
    content: bytes | None
    mode: int = 0o600
    ours: Callable[[bytes], bool] | None = None
    """Whether the existing file is ours. A foreign file is set aside in the state folder, never overwritten."""
    adopt: Callable[[Path, bytes], Iterable[Event]] | None = None
    """Turns a foreign file into events before it is set aside, again if that was interrupted."""
    hidden: Path | None = None
    """A file or folder that git should ignore, through the repository's exclude file."""


@dataclass(frozen=True)
class Call:
    """The input of a command or view. `session` and `project` are the caller's, if known."""

    args: Mapping[str, Any]
    reader: Reader
    settings: Settings
    now: int
    session: str = ""
    project: str = ""
    state_dir: Path = Path()
    caller: int = 0
    """The calling process according to the kernel; 0 for this process."""
    code: str = ""
    """The one-time code that identifies a person without a terminal."""
    surroundings: Callable[[], Surroundings] = Surroundings
    judged: Caller | None = None
    """The caller, if already judged."""

    @cached_property
    def who(self) -> Caller:
        return self.judged or judge_call(self)


@dataclass(frozen=True)
class JobCall:
    """The input of a job. The events it returns and its end are committed together."""

    job: ClaimedJob
    reader: Reader
    settings: Callable[[str], Settings]
    now: int
    state_dir: Path
    cancelled: Callable[[], bool]
    run: Run
    put: Callable[[File], None]
    """Writes a file like `Feature.files`: atomically, only if changed, never through a symlink."""


@dataclass(frozen=True)
class WatchCall:
    """The input of a watcher: when to stop, and how to report events."""

    stopping: threading.Event
    handle: Callable[[Callable[[], Sequence[Event]]], None]
    """Builds events on the writer thread, between hooks, and commits them."""
    report: Callable[[Exception], None]
    settings: Callable[[str], Settings] = lambda _project: None
    state_dir: Path = Path()
    cipher: Cipher | None = None


@dataclass(frozen=True)
class Waiting:
    """A hook that waits for its answer, before anything else is done with it."""

    key: str
    agent: str
    kind: str
    folder: str
    body: bytes
    """As the agent sent it: not read, not redacted."""
    settings: Callable[[], Settings]
    """Looked up when asked for: most hooks need none."""
    state_dir: Path
    cipher: Cipher | None


@dataclass(frozen=True)
class CommandResult:
    """The answer of a command: the events to append, and what to show afterwards."""

    events: tuple[Event, ...] = ()
    answer: Callable[[Reader], Any] | Any = None
    refused: str = ""
    """Why it is refused although there are events: they record the attempt."""
    erase: tuple[str, ...] = ()
    """Texts to erase once the events are stored: from the log, everything derived, and the backups."""


Keys = Callable[[Event], Iterable[Ref]]
Reduce = Callable[[Doc | None, Event, Ref], Doc | None]
Decide = Callable[[State, Event, Settings], Decision | None]
Enqueue = Callable[[State, Event, Settings], Iterable[Job]]
ContentParts = Callable[[], Iterable[Sequence[str]]]
"""Returns the parts of the worktree that features compare, each as globs (`Feature.content_parts`)."""
Enrich = Callable[[Event, Settings, ContentParts], bool]
"""Returns whether it wrote text of the world into the payload, which is then redacted."""
Redacts = Callable[[bytes, Settings], bool]
Quotes = Callable[[bytes], bool]
"""Returns whether a content contains an erased text."""
Derive = Callable[[State, Event, Settings], Iterable[Event]]
Command = Callable[[Call], CommandResult]
View = Callable[[Call], Any]
JobHandler = Callable[[JobCall], Iterable[Event]]
Files = Callable[[Ref, Doc, Settings], Iterable[File]]


def plain_facets(_ref: Ref, doc: Doc) -> Facets:
    """Use these three fields of the document, where it has them."""
    if isinstance(doc, dict):
        return doc.get("project", ""), doc.get("status", ""), doc.get("at", 0)
    return getattr(doc, "project", ""), getattr(doc, "status", ""), getattr(doc, "at", 0)


def whole_log(_ref: Ref) -> Mapping[str, str]:
    return {}


def _no_keys(_event: Event) -> Iterable[Ref]:
    return ()


def _keep_document(doc: Doc | None, _event: Event, _ref: Ref) -> Doc | None:
    return doc


@dataclass(frozen=True, kw_only=True)
class Feature:
    name: str
    version: int = 1
    """Raise it when `reduce` changes: the state rebuilds from the log."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Its own event kinds, each with one line for docs/events.md."""
    subscribed_kinds: frozenset[str] = frozenset()
    """The kinds it receives; empty means all."""
    keys: Keys = _no_keys
    """Pure. The documents an event touches, from the event alone."""
    reduce: Reduce = _keep_document
    """Pure. An error leaves the document unchanged, now and in every replay."""
    documents: tuple[DocumentType[Any], ...] = ()
    """Its document types; undeclared kinds are plain dicts."""
    facets: Callable[[Ref, Doc], Facets] = plain_facets
    stream: Callable[[Ref], Mapping[str, str]] = whole_log
    """The part of the log a document comes from (`session=` or `project=`), for time travel."""
    decide: Decide | None = None
    """Pure. An error means: no opinion."""
    decides_on: frozenset[str] = frozenset()
    """The subscribed kinds that `decide` answers; empty means all. Like `enqueues_for` and `derives_from`, it avoids
    calls that cannot have a result."""
    can_decide: Callable[[str, Settings], bool] = lambda _kind, _settings: True
    """Whether `decide` could answer this kind of event. If no feature can, the hook is answered before the event is
    applied."""
    refuses: Callable[[Settings], bool] | None = None
    """Whether `decide` may refuse. Others only inform, and are not asked about a tool call that is already refused."""
    enqueue: Enqueue | None = None
    enqueues_for: frozenset[str] = frozenset()
    """The kinds that `enqueue` handles; empty means all subscribed kinds."""
    enrich: Enrich | None = None
    """Observes the world at the moment of an event (worktree content, what a command was) and writes it into the
    payload before the transaction. Not pure; bounded in time; an error means: not observed. Because the observation
    is stored, `derive`, `reduce` and `decide` stay pure."""
    enriches: frozenset[str] = frozenset()
    """The kinds that `enrich` handles."""
    before_answer: Callable[[Waiting], bool] | None = None
    """What must be done before the agent goes on, however the hook is answered. Not pure; bounded in time. Returns
    whether `decide` has something to say to this one hook although `can_decide` denies it."""
    answers_after: frozenset[str] = frozenset()
    """The kinds that `before_answer` handles."""
    erase: Callable[[Path, Cipher | None, Quotes, Sequence[str]], int] | None = None
    """(state folder, cipher, quotes, folders): removes from its own files what quotes an erased text or belongs to an
    erased folder; returns how much."""
    own_folder: str = ""
    """The folder of the state folder whose files only `erase` may change."""
    redacts: Redacts | None = None
    """Whether `enrich` may remove something from this payload. Such a delivery never reaches the disk as it came: it
    is applied first, and only its events are journaled. Called for every payload of these kinds, so it must be
    fast."""
    content_parts: Callable[[Settings], Iterable[Sequence[str]]] | None = None
    """Parts of a worktree whose fingerprints the feature compares, each a list of globs. `HookPayload.content` has
    their fingerprints under `core.fingerprint.content_key(globs)`."""
    derive: Derive | None = None
    """Pure. What follows from an event under the current settings, as events appended in the same transaction, so that
    replay needs no settings."""
    derives_from: frozenset[str] = frozenset()
    """The kinds that `derive` handles; empty means all subscribed kinds."""
    derives_history: bool = False
    """Whether `derive` also follows imported events. Features that act on the present do not."""
    enrich_history: Callable[[Event], None] | None = None
    """Pure. Adds to an imported event of `enriches` what follows from the event alone."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    authority: Mapping[str, Authority] = field(default_factory=dict)
    """Who may use each command. The daemon does not start if one is undeclared."""
    surroundings: Callable[[Call], Surroundings] | None = None
    """Live agents and settings by which callers are judged; exactly one feature provides them."""
    after_restore: Callable[[Reader, Callable[[str], Settings], int, int], Iterable[Event]] | None = None
    """(reader, settings by project, time of the restore, now): ends what the lost events may have ended."""
    views: Mapping[str, View] = field(default_factory=dict)
    jobs: Mapping[str, JobHandler] = field(default_factory=dict)
    schedule: Mapping[str, float] = field(default_factory=dict)
    """Seconds between runs, by job kind."""
    watch: Callable[[WatchCall], None] | None = None
    """A daemon thread for changes in the world that no hook reports. Returns when it should stop."""
    quick: frozenset[str] = frozenset()
    """Short jobs whose result is needed soon; they have a worker of their own."""
    files: Files | None = None
    settings: Any = None
    """A `core.section.Section`: the feature's section in settings files."""
    settings_names: tuple[str, ...] = ()
    """Names of the section that may also appear at the top level of a settings file."""
    settings_files: Mapping[str, str] = field(default_factory=dict)
    """Files that hold the section as a whole, by layer; relative to HOME (user) or the project."""

    def subscribes_to(self, kind: str) -> bool:
        return acts_on(kind, self.subscribed_kinds)

    def enqueues(self, kind: str) -> bool:
        return self.enqueue is not None and acts_on(kind, self.enqueues_for)

    @property
    def keeps_documents(self) -> bool:
        return self.keys is not _no_keys


def acts_on(kind: str, kinds: frozenset[str]) -> bool:
    return not kinds or kind in kinds


def version_key(feature: Feature) -> str:
    """The key under which the store keeps the version of a feature's rules."""
    return f"feature:{feature.name}"
