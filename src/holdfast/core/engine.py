"""Applies deliveries and events to the state and commits the result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from holdfast.core.decision import Decision, Delivery, HeldContexts
from holdfast.core.event import REMEMBERED, Deduplicator, Event, SessionOwners
from holdfast.core.feature import Decide, Derive, Enqueue, Enrich, Feature, Redacts, acts_on
from holdfast.core.ports import Clock, Doc, EventQuery, Ref, Store
from holdfast.core.state import HotDocuments
from holdfast.core.transaction import PROMPT_TOKENS, START_TOKENS, Arrival, Outcome, Transaction

__all__ = ["PROMPT_TOKENS", "START_TOKENS", "Committed", "Engine", "Outcome", "Ports"]

Report = Callable[[str, Event, Exception], None]
SettingsFor = Callable[[str], Mapping[str, Any]]


class Subscribers(NamedTuple):
    """The features that handle one kind of event, by role."""

    keepers: tuple[tuple[Feature, Enqueue | None], ...]
    """Features that keep documents of such events or enqueue jobs for them."""
    enrichers: tuple[tuple[Feature, Enrich], ...]
    annotators: tuple[tuple[Feature, Callable[[Event], None]], ...]
    redactors: tuple[tuple[Feature, Redacts], ...]
    reducers: tuple[Feature, ...]
    deciders: tuple[tuple[Feature, Decide], ...]
    derivers: tuple[tuple[Feature, Derive], ...]
    historians: tuple[tuple[Feature, Derive], ...]
    """The `derivers` that also follow imported events."""
    enqueuers: tuple[tuple[Feature, Enqueue], ...]


class Committed(msgspec.Struct, frozen=True):
    """What one transaction changed, for subscribers (files, live pages)."""

    events: tuple[Event, ...]
    documents: tuple[tuple[Feature, Ref, Doc], ...]
    jobs: int


class Ports(msgspec.Struct, frozen=True):
    read: Callable[[Delivery], Event]
    write: Callable[[Event, Decision], bytes]
    settings: SettingsFor
    clock: Clock
    report: Report
    carried: Callable[[Event, Decision], Decision] = lambda _event, decision: decision
    """Returns the part of a decision that the agent's reply to this event has a place for."""
    clean: Callable[[Delivery], Delivery] = lambda delivery: delivery
    """Removes from a delivery what must not reach the disk; `read` does so if it wasn't done."""
    project: Callable[[str], str] = lambda folder: folder
    """Returns the project that a folder belongs to."""
    scrub: Callable[[Event], Event] = lambda event: event
    """Redacts events of commands and jobs; `read` redacts those of hooks."""
    scrub_fields: Callable[[bytes], bytes] = lambda fields: fields
    """The same for encoded fields, as importers send them."""


class Engine:
    def __init__(self, store: Store, features: Sequence[Feature], ports: Ports) -> None:
        self.store, self.features, self.ports = store, tuple(features), ports
        self.suspended: set[str] = set()
        """Features whose state is being rebuilt. They receive no events and decide nothing."""
        self.hot = HotDocuments()
        self.document_types = {kind.kind: kind for feature in features for kind in feature.documents}
        self.document_owners = {kind.kind: feature.name for feature in features for kind in feature.documents}
        self.recent = Deduplicator()
        self.owners = SessionOwners()
        self.head = -1
        """The last event this engine knows."""
        self.durable = 0
        """The last event that survives a power cut."""
        self.open_transaction: Transaction | None = None
        """Applied in memory, neither committed nor discarded."""
        self.held = HeldContexts()
        self._committed: list[Committed] = []
        self._subscribers: dict[str, Subscribers] = {}

    # ── in ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def handle(
        self,
        items: Sequence[Delivery | Event | Arrival],
        also: Callable[[Store], None] | None = None,
        *,
        imported: bool = False,
        durable: bool = True,
    ) -> list[Outcome]:
        """Apply and commit items in one store transaction. `also` joins it, e.g. the end of a job.

        `imported` items create state and derived events, but no jobs or decisions. Without `durable`, the events must be
        on disk elsewhere until the next durable transaction.
        """
        # Before the transaction, because reading inspects files and may run git.
        arrivals = [self._arrive(item) for item in items]
        self._begin()
        with self.store.transaction(durable=durable) as head:
            transaction = self._begin_transaction(head, imported=imported)
            outcomes = transaction.apply(arrivals)
            transaction.write()
            if also:
                also(self.store)
        self._written(transaction, durable=durable)
        return outcomes

    def apply(self, deliveries: Sequence[Delivery]) -> tuple[Transaction, list[Outcome]]:
        """Apply deliveries in memory. Nothing else can be applied until `commit` or `discard`."""
        arrivals = [self._arrive(item) for item in deliveries]
        self._begin()
        transaction = self._begin_transaction(self.head, lazy=True)
        outcomes = transaction.apply(arrivals)
        self.open_transaction = transaction
        return transaction, outcomes

    def commit(self, transaction: Transaction, *, durable: bool) -> None:
        """Write an applied transaction. If the store fails it stays open and can be committed later."""
        with self.store.transaction(durable=durable):
            transaction.write()
        self.open_transaction = None
        self._written(transaction, durable=durable)

    def discard(self) -> None:
        """Drop an applied transaction that cannot be written; the caller delivers its items another way."""
        self.open_transaction = None
        self.forget()

    def append(self, events: Sequence[Event]) -> None:
        """Append the events of an earlier transaction that are missing from the log."""
        self._begin()
        with self.store.transaction() as head:
            transaction = self._begin_transaction(head)
            transaction.replay(events)
            transaction.write()
        self._written(transaction)

    def can_decide(self, kind: str, folder: str) -> bool:
        """Return whether any feature could answer such an event in that folder."""
        if self.held:
            return True
        deciders = self.subscribers_of(kind).deciders
        if not deciders:
            return False
        settings = self.ports.settings(self.ports.project(folder))
        return any(feature.can_decide(kind, settings.get(feature.name)) for feature, _ in deciders)

    def redactors(self, kind: str, folder: str) -> list[tuple[Redacts, Any]]:
        """Return the functions, with settings, that may remove parts of such a payload before it reaches the disk."""
        redactors = self.subscribers_of(kind).redactors
        if not redactors:
            return []
        settings = self.ports.settings(self.ports.project(folder))
        return [(redacts, settings.get(feature.name)) for feature, redacts in redactors]

    def _arrive(self, item: Delivery | Event | Arrival) -> Arrival:
        if isinstance(item, Arrival):
            return item
        if isinstance(item, Event):
            return Arrival(self.ports.scrub(item))
        return Arrival(self._enriched(self.ports.read(item)), item.mode != "tell", item.missed, item.client_verdict)

    def _enriched(self, event: Event) -> Event:
        """Let features write what they observe of the world into the payload."""
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
                # It may have changed the payload before it failed.
                wrote = True
        return self.ports.scrub(event) if wrote else event

    def enrich_history(self, events: Iterable[Event]) -> None:
        """Annotate imported events, which are already redacted and see nothing of today's world."""
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

    def _begin_transaction(self, head: int, *, imported: bool = False, lazy: bool = False) -> Transaction:
        if self.open_transaction:
            raise RuntimeError("the transaction before this one is neither committed nor discarded")
        # Someone else wrote since then, so cached documents may be stale.
        if head != self.head:
            self.hot.forget()
        return Transaction(self, head, imported=imported, lazy=lazy)

    # ── after the commit ───────────────────────────────────────────────────────────────────────────────────────────

    def _written(self, transaction: Transaction, *, durable: bool = True) -> None:
        self.head = transaction.seq
        # An empty transaction syncs nothing.
        if durable and transaction.events:
            self.durable = transaction.seq
        self.recent.add(transaction.seen.items())
        transaction.work.keep_committed()
        if transaction.events:
            self._committed.append(
                Committed(tuple(transaction.events), tuple(transaction.work.documents()), transaction.count_due_jobs())
            )

    def take_committed(self) -> list[Committed]:
        """Return what was committed since the last call."""
        taken, self._committed = self._committed, []
        return taken

    # ── beginning ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """Load what deduplication needs: a hook may arrive once before and once after a restart."""
        # Already loaded.
        if self.head >= 0:
            return
        reader = self.store.reader()
        try:
            self.recent.begin_anew(reader.events(EventQuery(limit=REMEMBERED, newest=True)))
            self.head = reader.head()
        finally:
            reader.close()

    def forget(self) -> None:
        """Drop all caches, e.g. after a restore or a rebuild."""
        self.hot.forget()
        self.owners.forget()
        # The next transaction reads the head and the last events again.
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
        keepers=tuple(
            (f, f.enqueue if f.enqueues(kind) else None) for f in listening if f.keeps_documents or f.enqueues(kind)
        ),
        enrichers=tuple((f, f.enrich) for f in listening if f.enrich and kind in f.enriches),
        annotators=tuple((f, f.enrich_history) for f in listening if f.enrich_history and kind in f.enriches),
        redactors=tuple((f, f.redacts) for f in listening if f.redacts and kind in f.enriches),
        reducers=tuple(f for f in listening if f.keeps_documents),
        deciders=tuple((f, f.decide) for f in listening if f.decide and acts_on(kind, f.decides_on)),
        derivers=derivers,
        historians=tuple((f, derive) for f, derive in derivers if f.derives_history),
        enqueuers=tuple((f, f.enqueue) for f in listening if f.enqueue and acts_on(kind, f.enqueues_for)),
    )
