"""The engine: deliveries in, one transaction, answers out. Pure functions do the thinking, ports touch the world.

An answer leaves when the log is durable, and not later: documents, jobs and what follows from an event are derived, so
they are written right after it (`settle`). A mark in the store says how far they are; a crash in between is made good
at the next start from the log (docs/decisions/0009).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.core.decision import Decision
from holdfast.core.delivery import Delivery
from holdfast.core.duplicates import REMEMBERED, Recent
from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.feature import Feature, made_by
from holdfast.core.ports import Clock, Doc, EventQuery, Reader, Ref, Store
from holdfast.core.state import HotDocuments
from holdfast.core.turn import PROMPT_TOKENS, START_TOKENS, Arrival, Outcome, Turn, follows

__all__ = ["PROMPT_TOKENS", "SETTLED", "START_TOKENS", "Committed", "Engine", "Outcome", "Ports"]

Report = Callable[[str, Event, Exception], None]
SettingsFor = Callable[[str], Mapping[str, Any]]

SETTLED = "settled"
"""The mark: documents and jobs are as the log says up to this event."""
MOST_UNSETTLED = 256
"""So that an answer which needs the state never waits long for it."""


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
        """The last event that survives a power cut; what follows from it may come a moment later."""
        self._thought: Turn | None = None
        self._noted: list[Event] = []
        self._untold: list[Committed] = []
        self._by_kind: dict[tuple[str, str], tuple[Feature, ...]] = {}

    # ── in ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def handle(
        self, items: Sequence[Delivery | Event], also: Callable[[Store], None] | None = None, *, past: bool = False
    ) -> list[Outcome]:
        """Everything in one transaction. `also` joins it (the end of a job, say).

        What is `past` only happened: it makes state, but sets nothing going.
        """
        arrivals = [self._arrive(item) for item in items]
        self.settle()
        with self.store.transaction() as head:
            turn = self._turn(head, past=past)
            outcomes = turn.take(arrivals)
            turn.write_log()
            turn.write_state()
            if turn.events and not self.store.shared:
                self.store.set_meta(SETTLED, str(turn.seq))
            if also:
                also(self.store)
        self._logged(turn)
        self._keep(turn, turn.events)
        return outcomes

    def answer(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        """For hooks: the log only, and before it the thinking where an answer depends on it. `settle` does the rest.

        A store that others write to takes everything at once: what they read must be whole.
        """
        if self.store.shared:
            return self.handle(deliveries)
        arrivals = [self._arrive(item) for item in deliveries]
        asked = any(waits and self._may_answer(event) for event, waits in arrivals)
        if asked or len(self._noted) >= MOST_UNSETTLED:
            self.settle()
        self._begin()
        with self.store.transaction() as head:
            turn = self._turn(head)
            outcomes = turn.take(arrivals) if asked else turn.note(arrivals)
            turn.write_log()
        self._logged(turn)
        if asked:
            self._thought = turn
        else:
            self._noted += turn.events
        return outcomes

    def _arrive(self, item: Delivery | Event) -> Arrival:
        if isinstance(item, Event):
            return self.ports.scrub(item), False
        return self.ports.read(item), item.mode != "tell"

    def _may_answer(self, event: Event) -> bool:
        deciding = self.deciding(event.kind)
        if not deciding:
            return False
        settings = self.ports.settings(event.project)
        return any(f.may_answer(event, settings.get(f.name)) for f in deciding)

    def _turn(self, head: int, *, past: bool = False) -> Turn:
        if head != self.head:
            self.hot.forget()
        return Turn(self, head, past=past)

    def _logged(self, turn: Turn) -> None:
        self.head = self.durable = turn.seq
        self.recent.add(turn.told.items())

    # ── after the answer ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def behind(self) -> bool:
        """Whether documents lag behind the log."""
        return bool(self._thought or self._noted)

    def settle(self) -> None:
        """Documents and jobs come up to the log. What fails for want of a store stays to be done."""
        self._begin()
        if self._thought:
            self._settled(self._thought, (), self._thought.write_state)
            self._thought = None
        if self._noted:
            self._think_about(self._noted)
            self._noted = []

    def _think_about(self, noted: Sequence[Event], made: Sequence[str] = ()) -> None:
        turn = self._turn(self.head)

        def work() -> None:
            turn.think(noted, made)
            turn.write_log()
            turn.write_state()

        self._settled(turn, noted, work)

    def _settled(self, turn: Turn, noted: Sequence[Event], work: Callable[[], None]) -> None:
        try:
            with self.store.transaction(lasting=False):
                work()
                self.store.set_meta(SETTLED, str(turn.seq))
            self.head = max(self.head, turn.seq)
            self._keep(turn, [*noted, *turn.events])
        except (StoreUnavailable, StoreDamaged):
            raise
        except Exception as error:
            self.ports.report("engine", (noted or turn.events)[-1], error)
            self._rebuild_later()

    def _rebuild_later(self) -> None:
        """What should not happen: these events are in the log, and the next start makes all documents from it anew."""
        self.hot.forget()
        with self.store.transaction():
            self.store.set_meta(SETTLED, str(self.head))
            for feature in self.features:
                self.store.set_meta(made_by(feature), "")

    def _keep(self, turn: Turn, events: Sequence[Event]) -> None:
        turn.work.keep()
        if events:
            self._untold.append(Committed(tuple(events), tuple(turn.work.documents()), turn.due()))

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
        if self.head >= 0:
            return
        reader = self.store.reader()
        try:
            # A happening told before the daemon was restarted may be told once more after it.
            self.recent.begin_anew(reader.events(EventQuery(limit=REMEMBERED, newest=True)))
            self.head = reader.head()
            self._catch_up(reader)
        finally:
            reader.close()

    def _catch_up(self, reader: Reader) -> None:
        """What was answered, but not settled, when the last engine ended."""
        if self.store.shared:
            return
        mark = reader.meta(SETTLED)
        if not mark:  # A store that is new, or from before there was a mark.
            with self.store.transaction():
                self.store.set_meta(SETTLED, str(self.head))
        elif left := list(reader.replay(after=int(mark))):
            self._think_about(left, _followed(left))

    def forget(self) -> None:
        """Drop what is remembered, e.g. after the store was restored or a feature rebuilt."""
        self.hot.forget()
        self.head = -1

    # ── who hears what ─────────────────────────────────────────────────────────────────────────────────────────────

    def hearing(self, kind: str) -> tuple[Feature, ...]:
        return self._those("keys", kind)

    def deciding(self, kind: str) -> tuple[Feature, ...]:
        return self._those("decide", kind)

    def following(self, kind: str) -> tuple[Feature, ...]:
        return self._those("follow", kind)

    def enqueueing(self, kind: str) -> tuple[Feature, ...]:
        return self._those("enqueue", kind)

    def _those(self, part: str, kind: str) -> tuple[Feature, ...]:
        found = self._by_kind.get((part, kind))
        if found is None:
            found = tuple(f for f in self.features if getattr(f, part) and f.hears(kind))
            self._by_kind[part, kind] = found
        return tuple(f for f in found if f.name not in self.asleep) if self.asleep else found


def _followed(events: Sequence[Event]) -> list[str]:
    return [event.key for event in events if follows(event)]
