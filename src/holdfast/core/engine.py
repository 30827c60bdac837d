"""The engine: deliveries in, one transaction, answers out. Pure functions do the thinking, ports touch the world."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.core import fence
from holdfast.core.decision import NOTHING, Decision, merge
from holdfast.core.delivery import Delivery
from holdfast.core.duplicates import REMEMBERED, SAME, Recent, near
from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.job import Job
from holdfast.core.ports import Clock, Doc, EventQuery, Ref, Store
from holdfast.core.state import FeatureState, HotDocuments, WorkingSet

Report = Callable[[str, Event, Exception], None]
SettingsFor = Callable[[str], Mapping[str, Any]]

START_TOKENS = 1500
PROMPT_TOKENS = 400
BUDGETS = {"session.started": ("start_tokens", START_TOKENS)}


class Outcome(msgspec.Struct, frozen=True):
    """What became of one delivery. `seq` is 0 for a duplicate; `reply` is what the agent is told."""

    seq: int = 0
    reply: bytes = b""
    decision: Decision = NOTHING


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
        self._untold: list[Committed] = []
        self._hot = HotDocuments()
        self._recent = Recent()
        self._head = -1
        self._hearing: dict[str, tuple[Feature, ...]] = {}

    def handle(
        self, items: Sequence[Delivery | Event], also: Callable[[Store], None] | None = None, *, past: bool = False
    ) -> list[Outcome]:
        """One transaction for all of them. `also` joins it (the end of a job, say).

        What is `past` only happened: it makes state, but sets nothing going.
        """
        arrivals = [self._arrive(item) for item in items]
        if self._head < 0:
            self._remember()
        with self.store.transaction() as head:
            if head != self._head:
                self._hot.forget()
            turn = _Turn(self, head, past)
            outcomes = turn.take(arrivals)
            turn.flush()
            if also:
                also(self.store)
        self._head = turn.seq
        turn.work.keep()
        self._recent.add(turn.told.items())
        if turn.events:
            self._untold.append(Committed(tuple(turn.events), tuple(turn.work.documents()), turn.due()))
        return outcomes

    def spread(self) -> None:
        """Tells the watchers what became true. Apart from `handle`, so that the agents are answered first."""
        untold, self._untold = self._untold, []
        for committed in untold:
            for watch in self.watchers:
                try:
                    watch(committed)
                except Exception as error:
                    self.ports.report("watchers", committed.events[-1], error)

    def _remember(self) -> None:
        """A happening told before the daemon was restarted may be told once more after it."""
        reader = self.store.reader()
        try:
            self._recent.begin_anew(reader.events(EventQuery(limit=REMEMBERED, newest=True)))
        finally:
            reader.close()

    @property
    def head(self) -> int:
        """The last event this engine knows of."""
        return self._head

    def forget(self) -> None:
        """Drop what is remembered, e.g. after the store was restored or a feature rebuilt."""
        self._hot.forget()
        self._head = -1

    def hearing(self, kind: str) -> tuple[Feature, ...]:
        if kind not in self._hearing:
            self._hearing[kind] = tuple(f for f in self.features if f.hears(kind))
        awake = self._hearing[kind]
        return tuple(f for f in awake if f.name not in self.asleep) if self.asleep else awake

    def _arrive(self, item: Delivery | Event) -> tuple[Event, bool]:
        """The event, and whether somebody waits for an answer."""
        if isinstance(item, Event):
            return self.ports.scrub(item), False
        return self.ports.read(item), item.mode != "tell"


class _Turn:
    """The work of one transaction."""

    def __init__(self, engine: Engine, head: int, past: bool) -> None:
        self.engine, self.seq, self.past = engine, head, past
        self.work = WorkingSet(engine.store, engine._hot)
        self.state = FeatureState(self.work)
        self.events: list[Event] = []
        self.jobs: list[Job] = []
        self.told: dict[str, int] = {}

    def take(self, arrivals: Sequence[tuple[Event, bool]]) -> list[Outcome]:
        known = self.engine.store.known([event.key for event, _ in arrivals])
        fresh: dict[str, None] = {}
        for event, _ in arrivals:
            if event.key not in known:
                fresh.setdefault(event.key)
        self._prefetch([event for event, _ in arrivals if event.key in fresh])
        return [self._one(event, waits, fresh) for event, waits in arrivals]

    def due(self) -> int:
        """Jobs that can begin now: for the others nobody need be woken."""
        now = self.engine.ports.clock()
        return sum(job.run_at <= now for job in self.jobs)

    def flush(self) -> None:
        store = self.engine.store
        if self.events:
            store.append(self.events)
        if self.work.changed:
            store.save(self.work.rows())
        if self.jobs:
            store.enqueue(self.jobs, self.engine.ports.clock())

    def _prefetch(self, events: Sequence[Event]) -> None:
        refs: list[Ref] = []
        for event in events:
            for feature in self.engine.hearing(event.kind):
                try:
                    refs.extend(feature.keys(event))
                except Exception as error:
                    self.engine.ports.report(feature.name, event, error)
        self.work.prefetch(refs)

    def _one(self, event: Event, waits: bool, fresh: dict[str, None]) -> Outcome:
        if event.key not in fresh:
            return Outcome()
        del fresh[event.key]
        if self._told_before(event):
            return Outcome()
        event = self._append(event)
        if not self.past:
            self._follow(event)
        decision, reply = self._answer(event) if waits else (NOTHING, b"")
        return Outcome(event.seq, reply, decision)

    def _told_before(self, event: Event) -> bool:
        same = event.data.get(SAME)
        if not same:
            return False
        if near(same, self.told.get(same), event.at) or self.engine._recent.knows(same, event.at):
            return True
        self.told[same] = event.at
        return False

    def _append(self, event: Event) -> Event:
        self.seq += 1
        event = msgspec.structs.replace(event, seq=self.seq)
        self.events.append(event)
        for feature in self.engine.hearing(event.kind):
            self._reduce(feature, event)
        if not self.past:
            self._enqueue(event)
        return event

    def _follow(self, event: Event) -> None:
        """What follows is not followed in turn: rooms cannot set one another going for ever."""
        for feature in self.engine.hearing(event.kind):
            for number, made in enumerate(self._following(feature, event)):
                self._append(msgspec.structs.replace(made, key=f"{event.key}/{feature.name}.{number}"))

    def _following(self, feature: Feature, event: Event) -> list[Event]:
        if not feature.follow:
            return []
        try:
            return list(feature.follow(self.state, event, self._settings(feature, event)))
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)
            return []

    def _reduce(self, feature: Feature, event: Event) -> None:
        try:
            for ref in feature.keys(event):
                before = self.work.get(ref)
                after = feature.reduce(before, event, ref)
                if after is not None and after is not before:
                    self.work.put(ref, after, feature)
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)

    def _enqueue(self, event: Event) -> None:
        for feature in self.engine.hearing(event.kind):
            if feature.enqueue:
                try:
                    self.jobs.extend(feature.enqueue(self.state, event, self._settings(feature, event)))
                except Exception as error:
                    self.engine.ports.report(feature.name, event, error)

    def _answer(self, event: Event) -> tuple[Decision, bytes]:
        decision = self._budgeted(event, merge(self._decide(f, event) for f in self.engine.hearing(event.kind)))
        if decision.silent:
            return decision, b""
        try:
            reply = self.engine.ports.write(event, decision)
        except Exception as error:
            self.engine.ports.report("agents", event, error)
            return NOTHING, b""
        self._append(_made(event, decision))
        return decision, reply

    def _decide(self, feature: Feature, event: Event) -> Decision | None:
        if not feature.decide:
            return None
        try:
            return feature.decide(self.state, event, self._settings(feature, event))
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)
            return None

    def _settings(self, feature: Feature, event: Event) -> Any:
        return self.engine.ports.settings(event.project).get(feature.name)

    def _budgeted(self, event: Event, decision: Decision) -> Decision:
        if not decision.contexts:
            return decision
        limits = self.engine.ports.settings(event.project).get("context")
        name, default = BUDGETS.get(event.kind, ("prompt_tokens", PROMPT_TOKENS))
        budget = getattr(limits, name, default)
        kept, _ = fence.within_budget(decision.contexts, budget)
        return msgspec.structs.replace(decision, contexts=tuple(kept))


def _made(event: Event, decision: Decision) -> Event:
    """The record of an answer: what features count refusals and injections by."""
    return Event(
        key=f"{event.key}/decision",
        kind="decision.made",
        at=event.at,
        session=event.session,
        project=event.project,
        agent=event.agent,
        tool=event.tool,
        data={
            "of": event.seq,
            "of_kind": event.kind,
            "verdict": decision.verdict,
            "reasons": list(decision.reasons),
            "contexts": [
                {"source": c.source, "text": c.text, "tokens": fence.tokens(c.text)} for c in decision.contexts
            ],
            "notices": list(decision.notices),
            "details": list(decision.details),
            "call": event.get("call", ""),
            "lane": event.get("lane", ""),
            "branch": event.get("branch", ""),
            "repo": event.get("repo", ""),
        },
    )
