"""The engine: applies deliveries and events to the state, and commits what came of them. Ports touch the world.

It knows neither sockets nor the journal: who is answered when, and what is still owed, is `ingest.pipeline`'s.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import REMEMBERED, Deduplicator, Event, SessionOwners
from holdfast.core.feature import Decide, Derive, Enqueue, Enrich, Feature, TakesOut, acts_on
from holdfast.core.ports import Clock, Doc, EventQuery, Ref, Store
from holdfast.core.state import HotDocuments
from holdfast.core.transaction import PROMPT_TOKENS, START_TOKENS, Arrival, Outcome, Transaction

__all__ = ["PROMPT_TOKENS", "START_TOKENS", "Committed", "Engine", "Outcome", "Ports"]

Report = Callable[[str, Event, Exception], None]
SettingsFor = Callable[[str], Mapping[str, Any]]


class Subscribers(NamedTuple):
    """Who has to do with one kind of event, and by which of their functions."""

    keepers: tuple[Feature, ...]
    """Features that keep documents of such events, or make jobs of them."""
    enrichers: tuple[tuple[Feature, Enrich], ...]
    annotators: tuple[tuple[Feature, Callable[[Event], None]], ...]
    takers: tuple[tuple[Feature, TakesOut], ...]
    reducers: tuple[Feature, ...]
    deciders: tuple[tuple[Feature, Decide], ...]
    derivers: tuple[tuple[Feature, Derive], ...]
    historians: tuple[tuple[Feature, Derive], ...]
    """Those of `derivers` that follow imported events too."""
    enqueuers: tuple[tuple[Feature, Enqueue], ...]


class Committed(msgspec.Struct, frozen=True):
    """What one transaction made true, for those who watch (files, live pages)."""

    events: tuple[Event, ...]
    documents: tuple[tuple[Feature, Ref, Doc], ...]
    jobs: int


class Ports(msgspec.Struct, frozen=True):
    read: Callable[[Delivery], Event]
    write: Callable[[Event, Decision], bytes]
    settings: SettingsFor
    clock: Clock
    report: Report
    clean: Callable[[Delivery], Delivery] = lambda delivery: delivery
    """Takes out of a delivery what must not be on disk; `read` does it where it was not done."""
    project: Callable[[str], str] = lambda folder: folder
    """The project that a folder belongs to."""
    scrub: Callable[[Event], Event] = lambda event: event
    """Redacts what comes from commands and jobs; `read` has done it for hooks."""
    scrub_fields: Callable[[bytes], bytes] = lambda fields: fields
    """The same for fields that are JSON still, as importers send them."""


class Engine:
    def __init__(self, store: Store, features: Sequence[Feature], ports: Ports) -> None:
        self.store, self.features, self.ports = store, tuple(features), ports
        self.suspended: set[str] = set()
        """Features whose state is being rebuilt: they hear nothing and decide nothing meanwhile."""
        self.hot = HotDocuments()
        self.document_types = {kind.kind: kind for feature in features for kind in feature.documents}
        self.document_owners = {kind.kind: feature.name for feature in features for kind in feature.documents}
        self.recent = Deduplicator()
        self.owners = SessionOwners()
        self.head = -1
        """The last event this engine knows of."""
        self.durable = 0
        """The last event that the store itself keeps through a power cut."""
        self.open_transaction: Transaction | None = None
        """Applied in memory, and neither committed nor discarded yet."""
        self._committed: list[Committed] = []
        self._subscribers: dict[str, Subscribers] = {}

    # ── in ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def handle(
        self,
        items: Sequence[Delivery | Event | Arrival],
        also: Callable[[Store], None] | None = None,
        *,
        past: bool = False,
        lasting: bool = True,
    ) -> list[Outcome]:
        """Applied and committed at once, in one transaction of the store. `also` joins it (the end of a job, say).

        What is `past` makes state and derived events, but neither jobs nor decisions. What need not be `lasting` is
        on disk elsewhere until the next transaction that is.
        """
        # Before the transaction: it looks at files and may start git.
        arrivals = [self._arrive(item) for item in items]
        self._begin()
        with self.store.transaction(lasting=lasting) as head:
            transaction = self._begin_transaction(head, past=past)
            outcomes = transaction.apply(arrivals)
            transaction.write()
            if also:
                also(self.store)
        self._written(transaction, lasting=lasting)
        return outcomes

    def apply(self, deliveries: Sequence[Delivery]) -> tuple[Transaction, list[Outcome]]:
        """In memory only: `commit` writes it. Until then nothing else can be applied."""
        arrivals = [self._arrive(item) for item in deliveries]
        self._begin()
        transaction = self._begin_transaction(self.head, lazy=True)
        outcomes = transaction.apply(arrivals)
        self.open_transaction = transaction
        return transaction, outcomes

    def commit(self, transaction: Transaction, *, lasting: bool) -> None:
        """Where the store takes nothing the transaction stays open, and may be committed later."""
        with self.store.transaction(lasting=lasting):
            transaction.write()
        self.open_transaction = None
        self._written(transaction, lasting=lasting)

    def discard(self) -> None:
        """What was applied cannot be written as it is: whoever has the deliveries brings them by another way."""
        self.open_transaction = None
        self.forget()

    def append(self, events: Sequence[Event]) -> None:
        """Events that were applied before, with all that followed: those that the log does not have yet."""
        self._begin()
        with self.store.transaction() as head:
            transaction = self._begin_transaction(head)
            transaction.replay(events)
            transaction.write()
        self._written(transaction)

    def can_decide(self, kind: str, folder: str) -> bool:
        """Whether anybody could have something to say to such an event in that folder."""
        deciders = self.subscribers_of(kind).deciders
        if not deciders:
            return False
        settings = self.ports.settings(self.ports.project(folder))
        return any(feature.can_decide(kind, settings.get(feature.name)) for feature, _ in deciders)

    def takers(self, kind: str, folder: str) -> list[tuple[TakesOut, Any]]:
        """Who says, by which settings, whether something is taken out of such a payload before it may lie on disk."""
        takers = self.subscribers_of(kind).takers
        if not takers:
            return []
        settings = self.ports.settings(self.ports.project(folder))
        return [(takes_out, settings.get(feature.name)) for feature, takes_out in takers]

    def _arrive(self, item: Delivery | Event | Arrival) -> Arrival:
        if isinstance(item, Arrival):
            return item
        if isinstance(item, Event):
            return Arrival(self.ports.scrub(item))
        return Arrival(self._enriched(self.ports.read(item)), item.mode != "tell", item.missed, item.client_verdict)

    def _enriched(self, event: Event) -> Event:
        """What features saw of the world when the event came is written into its payload."""
        enrichers = self.subscribers_of(event.kind).enrichers
        if not enrichers:
            return event
        settings, wrote = self.ports.settings(event.project), False
        content_parts = partial(self._content_parts, settings)
        for feature, enrich in enrichers:
            try:
                wrote |= enrich(event, settings.get(feature.name), content_parts)
            except Exception as error:
                self.ports.report(feature.name, event, error)
                # It may have written into the payload before it failed.
                wrote = True
        return self.ports.scrub(event) if wrote else event

    def enrich_history(self, events: Iterable[Event]) -> None:
        """Everything in an imported event is redacted already, and nothing of the world is added."""
        for event in events:
            for feature, annotate in self.subscribers_of(event.kind).annotators:
                try:
                    annotate(event)
                except Exception as error:
                    self.ports.report(feature.name, event, error)

    def _content_parts(self, settings: Mapping[str, Any]) -> list[Sequence[str]]:
        return [
            part
            for feature in self.features
            if feature.content_parts and (section := settings.get(feature.name)) is not None
            for part in feature.content_parts(section)
        ]

    def _begin_transaction(self, head: int, *, past: bool = False, lazy: bool = False) -> Transaction:
        if self.open_transaction:
            raise RuntimeError("the transaction before this one is neither committed nor discarded")
        # Somebody else wrote since then: cached documents may be out of date.
        if head != self.head:
            self.hot.forget()
        return Transaction(self, head, past=past, lazy=lazy)

    # ── after the commit ───────────────────────────────────────────────────────────────────────────────────────────

    def _written(self, transaction: Transaction, *, lasting: bool = True) -> None:
        self.head = transaction.seq
        # Where nothing was written nothing was synced.
        if lasting and transaction.events:
            self.durable = transaction.seq
        self.recent.add(transaction.seen.items())
        transaction.work.keep_committed()
        if transaction.events:
            self._committed.append(
                Committed(tuple(transaction.events), tuple(transaction.work.documents()), transaction.count_due_jobs())
            )

    def take_committed(self) -> list[Committed]:
        """What became true since the last time this was asked, for those who watch."""
        taken, self._committed = self._committed, []
        return taken

    # ── beginning ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """A happening told before the daemon was restarted may be told once more after it."""
        # Read already, and nothing was forgotten since.
        if self.head >= 0:
            return
        reader = self.store.reader()
        try:
            self.recent.begin_anew(reader.events(EventQuery(limit=REMEMBERED, newest=True)))
            self.head = reader.head()
        finally:
            reader.close()

    def forget(self) -> None:
        """Drop what is remembered, e.g. after the store was restored or a feature rebuilt."""
        self.hot.forget()
        self.owners.forget()
        # -1 makes the next transaction read the head and the last events again.
        self.head = -1

    # ── subscriptions ─ ─────────────────────────────────────────────────────────────────────────────────────────────

    def subscribers_of(self, kind: str) -> Subscribers:
        known = self._subscribers
        subscribers = known.get(kind)
        if subscribers is None:
            # A suspended feature misses these events; its rebuild reads them from the log.
            awake = (f for f in self.features if f.name not in self.suspended)
            subscribers = known[kind] = _build_subscribers(kind, (f for f in awake if f.subscribes_to(kind)))
        return subscribers

    def suspend(self, names: Iterable[str]) -> None:
        self.suspended |= set(names)
        self._subscribers = {}

    def resume(self, names: Iterable[str]) -> None:
        self.suspended -= set(names)
        self._subscribers = {}


def _build_subscribers(kind: str, features: Iterable[Feature]) -> Subscribers:
    listening = tuple(features)
    derivers = tuple((f, f.derive) for f in listening if f.derive and acts_on(kind, f.derives_from))
    return Subscribers(
        keepers=tuple(f for f in listening if f.keeps_documents or f.enqueues(kind)),
        enrichers=tuple((f, f.enrich) for f in listening if f.enrich and kind in f.enriches),
        annotators=tuple((f, f.enrich_history) for f in listening if f.enrich_history and kind in f.enriches),
        takers=tuple((f, f.takes_out) for f in listening if f.takes_out and kind in f.enriches),
        reducers=tuple(f for f in listening if f.keeps_documents),
        deciders=tuple((f, f.decide) for f in listening if f.decide and acts_on(kind, f.decides_on)),
        derivers=derivers,
        historians=tuple((f, derive) for f, derive in derivers if f.derives_history),
        enqueuers=tuple((f, f.enqueue) for f in listening if f.enqueue and acts_on(kind, f.enqueues_for)),
    )
