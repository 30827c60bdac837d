"""The engine: deliveries in, one transaction, answers out. Pure functions do the thinking, ports touch the world.

An answer leaves when what led to it is on disk, and not later: `answer` thinks and promises, `settle` writes right after
it what was promised (docs/decisions/0009).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.core.decision import Decision
from holdfast.core.delivery import Delivery
from holdfast.core.duplicates import REMEMBERED, Recent
from holdfast.core.event import Event
from holdfast.core.feature import Decide, Enqueue, Feature, Follow
from holdfast.core.ports import Clock, Doc, EventQuery, Ref, Store
from holdfast.core.state import HotDocuments
from holdfast.core.turn import PROMPT_TOKENS, START_TOKENS, Arrival, Outcome, Turn

__all__ = ["PROMPT_TOKENS", "START_TOKENS", "Committed", "Engine", "Outcome", "Ports"]

Report = Callable[[str, Event, Exception], None]
SettingsFor = Callable[[str], Mapping[str, Any]]

Promise = Callable[[Sequence[Event]], bool]
"""Puts events on disk where they are found again after a crash; False where it cannot."""


class Rooms(NamedTuple):
    """Who has to do with one kind of event, and by which of their functions."""

    hearing: tuple[Feature, ...]
    deciding: tuple[tuple[Feature, Decide], ...]
    following: tuple[tuple[Feature, Follow], ...]
    enqueueing: tuple[tuple[Feature, Enqueue], ...]


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


class Engine:
    def __init__(self, store: Store, features: Sequence[Feature], ports: Ports) -> None:
        self.store, self.features, self.ports = store, tuple(features), ports
        self.watchers: list[Callable[[Committed], None]] = []
        self.asleep: set[str] = set()
        """Features whose state is being rebuilt: they hear nothing and decide nothing meanwhile."""
        self.hot = HotDocuments()
        self.recent = Recent()
        self.head = -1
        """The last event this engine knows of."""
        self.durable = 0
        """The last event that the store itself keeps through a power cut."""
        self._unsettled: Turn | None = None
        self._untold: list[Committed] = []
        self._rooms: dict[str, Rooms] = {}

    # ── in ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def handle(
        self,
        items: Sequence[Delivery | Event],
        also: Callable[[Store], None] | None = None,
        *,
        past: bool = False,
        lasting: bool = True,
    ) -> list[Outcome]:
        """Everything in one transaction. `also` joins it (the end of a job, say).

        What is `past` only happened: it makes state, but sets nothing going. What need not be `lasting` is on disk
        elsewhere until the next transaction that is.
        """
        arrivals = [self._arrive(item) for item in items]
        self.settle()
        with self.store.transaction(lasting=lasting) as head:
            turn = self._turn(head, past=past)
            outcomes = turn.take(arrivals)
            turn.write()
            if also:
                also(self.store)
        self._written(turn, lasting=lasting)
        return outcomes

    def answer(self, deliveries: Sequence[Delivery], promise: Promise) -> list[Outcome]:
        """For hooks that wait for what features decide. A store that others write to takes everything at once."""
        if self.store.shared:
            return self.handle(deliveries)
        arrivals = [self._arrive(item) for item in deliveries]
        self.settle()
        turn = self._turn(self.head)
        outcomes = turn.take(arrivals)
        if turn.events and promise(turn.events):
            self._unsettled, self.head = turn, turn.seq
        else:
            self._write(turn, lasting=True)
        return outcomes

    def restore(self, events: Sequence[Event]) -> None:
        """What was promised, but not written when the last engine ended: with all that followed, as it was then."""
        self.settle()
        with self.store.transaction() as head:
            turn = self._turn(head)
            turn.retake(events)
            turn.write()
        self._written(turn)

    def may_answer(self, kind: str, folder: str) -> bool:
        """Whether anybody could have something to say to such an event in that folder."""
        deciding = self.rooms(kind).deciding
        if not deciding:
            return False
        settings = self.ports.settings(self.ports.project(folder))
        return any(feature.may_answer(kind, settings.get(feature.name)) for feature, _ in deciding)

    def _arrive(self, item: Delivery | Event) -> Arrival:
        if isinstance(item, Event):
            return self.ports.scrub(item), False
        return self.ports.read(item), item.mode != "tell"

    def _turn(self, head: int, *, past: bool = False) -> Turn:
        if head != self.head:
            self.hot.forget()
        return Turn(self, head, past=past)

    # ── after the answer ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def behind(self) -> bool:
        """Whether something was promised that is not written yet."""
        return self._unsettled is not None

    def settle(self) -> None:
        """Writes what was promised. Where the store takes nothing it stays to be done."""
        self._begin()
        if self._unsettled:
            self._write(self._unsettled, lasting=False)
            self._unsettled = None

    def forsake(self) -> None:
        """What was promised cannot be written as it is: whoever has the deliveries brings them by another way."""
        self._unsettled = None
        self.forget()

    def _write(self, turn: Turn, *, lasting: bool) -> None:
        with self.store.transaction(lasting=lasting):
            turn.write()
        self._written(turn, lasting=lasting)

    def _written(self, turn: Turn, *, lasting: bool = True) -> None:
        self.head = turn.seq
        if lasting and turn.events:  # Where nothing was written nothing was synced.
            self.durable = turn.seq
        self.recent.add(turn.told.items())
        turn.work.keep()
        if turn.events:
            self._untold.append(Committed(tuple(turn.events), tuple(turn.work.documents()), turn.due()))

    def spread(self) -> None:
        """Tells the watchers what became true. Apart from `handle`, so that the agents are answered first."""
        untold, self._untold = self._untold, []
        for committed in untold:
            for watch in self.watchers:
                try:
                    watch(committed)
                except Exception as error:
                    self.ports.report("watchers", committed.events[-1], error)

    # ── beginning ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """A happening told before the daemon was restarted may be told once more after it."""
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
        self.head = -1

    # ── who hears what ─────────────────────────────────────────────────────────────────────────────────────────────

    def rooms(self, kind: str) -> Rooms:
        found = self._rooms.get(kind)
        if found is None:
            awake = (f for f in self.features if f.name not in self.asleep)
            found = self._rooms[kind] = _rooms(f for f in awake if f.hears(kind))
        return found

    def put_to_sleep(self, names: Iterable[str]) -> None:
        self.asleep |= set(names)
        self._rooms.clear()

    def wake(self, names: Iterable[str]) -> None:
        self.asleep -= set(names)
        self._rooms.clear()


def _rooms(features: Iterable[Feature]) -> Rooms:
    listening = tuple(features)
    return Rooms(
        hearing=tuple(f for f in listening if f.keeps_documents),
        deciding=tuple((f, f.decide) for f in listening if f.decide),
        following=tuple((f, f.follow) for f in listening if f.follow),
        enqueueing=tuple((f, f.enqueue) for f in listening if f.enqueue),
    )
