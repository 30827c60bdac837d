"""The shape of a feature. A feature is one value of this type; it imports core and nothing else of ours."""

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
from holdfast.core.ports import Doc, Reader, Ref

Facets = tuple[str, str, int]
"""(project, status, at): what lists are sorted and filtered by."""

Settings = Any
"""The feature's own section, an instance of `Feature.settings`."""


class State(Protocol):
    """This feature's documents as they are after the event being handled."""

    def get(self, kind: str, key: str) -> Doc | None: ...


@dataclass(frozen=True)
class File:
    """A document of a seed, written as a view. None removes it. It is never written through a symlink."""

    path: Path
    content: bytes | None
    mode: int = 0o600
    ours: Callable[[bytes], bool] | None = None
    """Whether what lies there is of our making. What is not is set aside in the state folder, never overwritten."""
    adopt: Callable[[Path, bytes], Iterable[Event]] | None = None
    """What a file means that is not of our making: asked before it is set aside, and once more where that was cut short."""
    hidden: Path | None = None
    """The file or folder that git should not show: it goes into the repository's own exclude file."""


@dataclass(frozen=True)
class Call:
    """What a command or a view is given. `session` and `project` are those of whoever asks, if known."""

    args: Mapping[str, Any]
    reader: Reader
    settings: Settings
    now: int
    session: str = ""
    project: str = ""
    state_dir: Path = Path()
    caller: int = 0
    """The process that asks, as the kernel says; 0 when it is this process itself."""
    code: str = ""
    """The one-time code by which a person without a terminal is known."""
    surroundings: Callable[[], Surroundings] = Surroundings
    judged: Caller | None = None
    """Who asks, where that was decided already."""

    @cached_property
    def who(self) -> Caller:
        return self.judged or judge_call(self)


@dataclass(frozen=True)
class JobCall:
    """What a job is given. It answers with events; they and the job's end are one transaction."""

    job: ClaimedJob
    reader: Reader
    settings: Callable[[str], Settings]
    now: int
    state_dir: Path
    cancelled: Callable[[], bool]
    run: Run
    put: Callable[[File], None]
    """Writes a file as `Feature.files` would: atomically, only when it changed, never through a symlink."""


@dataclass(frozen=True)
class WatchCall:
    """What a watcher is given: until when to watch, and the way in for what it noticed."""

    stopping: threading.Event
    handle: Callable[[Callable[[], Sequence[Event]]], None]
    """Asks for events in the thread that writes, where no hook is being handled, and takes them in."""
    report: Callable[[Exception], None]


@dataclass(frozen=True)
class CommandResult:
    """A command's answer: the events it wants to happen, and what to show once they did."""

    events: tuple[Event, ...] = ()
    answer: Callable[[Reader], Any] | Any = None
    refused: str = ""
    """Why it is refused all the same: the events are the record of the attempt."""
    erase: tuple[str, ...] = ()
    """Texts that leave the store once the events are in: the log, what is derived from it, and the backups."""


Keys = Callable[[Event], Iterable[Ref]]
Reduce = Callable[[Doc | None, Event, Ref], Doc | None]
Decide = Callable[[State, Event, Settings], Decision | None]
Enqueue = Callable[[State, Event, Settings], Iterable[Job]]
ContentParts = Callable[[], Iterable[Sequence[str]]]
"""Asks for the parts of a worktree's content that features compare, each as globs (`Feature.content_parts`)."""
Enrich = Callable[[Event, Settings, ContentParts], bool]
"""Says whether it wrote text of the world into the payload: names and paths are redacted like all that comes."""
TakesOut = Callable[[bytes, Settings], bool]
Derive = Callable[[State, Event, Settings], Iterable[Event]]
Command = Callable[[Call], CommandResult]
View = Callable[[Call], Any]
JobHandler = Callable[[JobCall], Iterable[Event]]
Files = Callable[[Ref, Doc, Settings], Iterable[File]]


def plain_facets(_ref: Ref, doc: Doc) -> Facets:
    """A document is listed by these three of its fields, where it has them."""
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
    """Raise it when `reduce` changes: the state rebuilds from the log by itself."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Event kinds of its own, each with one line for docs/events.md."""
    subscribed_kinds: frozenset[str] = frozenset()
    """Kinds it wants to see; empty means all."""
    keys: Keys = _no_keys
    """Which documents an event touches: pure, from the event alone."""
    reduce: Reduce = _keep_document
    """Pure. A raised error leaves the document as it was, now and in every replay."""
    documents: tuple[DocumentType[Any], ...] = ()
    """The types of its documents; a kind that is not among them is a plain dict."""
    facets: Callable[[Ref, Doc], Facets] = plain_facets
    stream: Callable[[Ref], Mapping[str, str]] = whole_log
    """Which part of the log a document comes from (`session=` or `project=`), for time travel."""
    decide: Decide | None = None
    """Pure. A raised error means: no opinion."""
    decides_on: frozenset[str] = frozenset()
    """Of the subscribed kinds those that `decide` has anything to say to; empty means all. With `enqueues_for` and
    `derives_from` it keeps a feature from being asked about every event of every session for nothing."""
    can_decide: Callable[[str, Settings], bool] = lambda _kind, _settings: True
    """Whether `decide` could have something to say to this kind of event. Where nobody could, the hook is answered
    before anybody has thought about it."""
    enqueue: Enqueue | None = None
    enqueues_for: frozenset[str] = frozenset()
    """The kinds that `enqueue` makes jobs of; empty means all that are subscribed."""
    enrich: Enrich | None = None
    """Looks at the world at the moment of an event (the content of a worktree, what a command was) and writes what it
    saw into the event's payload, before the transaction. Not pure; bounded in time; a raised error means: not seen.
    What it saw is on record with the event, so `derive`, `reduce` and `decide` stay pure and replay is exact."""
    enriches: frozenset[str] = frozenset()
    """The kinds that `enrich` wants."""
    takes_out: TakesOut | None = None
    """Whether `enrich` may take something out of this payload. Such a delivery is never on disk as it came: it is applied
    first, and only its events are journaled. Asked for every payload of these kinds, so it must be quick."""
    content_parts: Callable[[Settings], Iterable[Sequence[str]]] | None = None
    """Parts of a worktree's content whose fingerprints it compares, each a list of globs. Where a fingerprint is taken,
    `HookPayload.content` has it for each part too, under `core.fingerprint.content_key(globs)`."""
    derive: Derive | None = None
    """Pure. What an event means under the settings of the moment, as events of its own: they are appended in the
    same transaction, also for a spooled delivery that nobody waits for, so that replay needs no settings."""
    derives_from: frozenset[str] = frozenset()
    """The kinds that `derive` makes events of; empty means all that are subscribed."""
    derives_history: bool = False
    """Whether `derive` also follows imported events. Features that act on the present leave them out."""
    enrich_history: Callable[[Event], None] | None = None
    """Pure. Writes into an imported event of `enriches` what follows from the event alone."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    authority: Mapping[str, Authority] = field(default_factory=dict)
    """Who may use each command. The daemon does not start with one that is not declared."""
    surroundings: Callable[[Call], Surroundings] | None = None
    """Live agents and settings by which all callers are judged; one feature gives them."""
    after_restore: Callable[[Reader, Callable[[str], Settings], int, int], Iterable[Event]] | None = None
    """(reader, settings by project, when the log was restored, now): ends what the lost events may have ended."""
    views: Mapping[str, View] = field(default_factory=dict)
    jobs: Mapping[str, JobHandler] = field(default_factory=dict)
    schedule: Mapping[str, float] = field(default_factory=dict)
    """Job kind → seconds between runs."""
    watch: Callable[[WatchCall], None] | None = None
    """A thread of its own in the daemon, for what happens in the world without a hook. Returns when it is stopping."""
    quick: frozenset[str] = frozenset()
    """Jobs that take a moment and whose report is needed soon: a worker of their own does them, so that no long job
    stands before them."""
    files: Files | None = None
    settings: Any = None
    """A `core.section.Section`: the feature's section in every settings file."""
    settings_names: tuple[str, ...] = ()
    """Names of that section which may also stand at the top of a settings file."""
    settings_files: Mapping[str, str] = field(default_factory=dict)
    """Layer → a file that is the section as a whole; relative to the home folder (user) or to the project."""

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
    """The name under which the store keeps the version of the rules that made a feature's documents."""
    return f"feature:{feature.name}"
