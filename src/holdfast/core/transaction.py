"""Runs one transaction: each event is reduced, derived from and decided by pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from os.path import lexists
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from holdfast.core import text
from holdfast.core.decision import NOTHING, Decision, merge_decisions
from holdfast.core.event import Event, dedupe_key, derived_event, is_within_window
from holdfast.core.feature import Decide, Enqueue, Feature
from holdfast.core.job import Job
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.core.kinds.engine_events import AnswerUndelivered, DecisionMade, InjectedContext
from holdfast.core.ports import Ref
from holdfast.core.state import FeatureState, WorkingSet

if TYPE_CHECKING:
    from holdfast.core.engine import Engine

# Token budgets of injected context: at the start of a session, and with any other event.
START_TOKENS = 1500
PROMPT_TOKENS = 400
BUDGETS = {"session.started": ("start_tokens", START_TOKENS)}


class Arrival(NamedTuple):
    """A redacted event and who waits for its answer."""

    event: Event
    waits: bool = False
    """Whether someone waits for an answer."""
    missed: bool = False
    """Whether someone wanted an answer and went without."""
    client_verdict: str = ""
    """What the client answered instead."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of one delivery. `seq` is 0 for a duplicate; `reply` goes to the agent."""

    seq: int = 0
    reply: bytes = b""
    decision: Decision = NOTHING
    event: Event | None = None
    """The answered event, if there was an answer."""


DUPLICATE = Outcome()


class Transaction:
    """With `lazy` the transaction is written after the answer. A feature's documents and jobs are then updated when
    one of its documents is read, at the latest when the transaction is written, because most features have no
    answer to most questions."""

    def __init__(self, engine: "Engine", head: int, *, imported: bool = False, lazy: bool = False) -> None:
        self.engine, self.seq, self.imported = engine, head, imported
        self.work = WorkingSet(engine.store, engine.hot, engine.document_types)
        self._lazy = lazy
        self._behind: dict[str, tuple[Feature, list[tuple[Event, Enqueue | None]]]] = {}
        """Events that a feature's documents don't reflect yet, oldest first, with what enqueues jobs for them."""
        self.state = FeatureState(self.work, engine.document_owners, self._behind, self._catch_up_owner)
        self.events: list[Event] = []
        """The events it adds to the log."""
        # By kind and dedupe key; a job without one gets a number instead and stays separate.
        self.jobs: dict[tuple[str, str | int], Job] = {}
        self.seen: dict[str, int] = {}
        """Happenings of this transaction, for deduplication."""
        self._settings_of: dict[str, Mapping[str, Any]] = {}

    # ── what comes ─────────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """Apply everything that follows from the arrivals, in log order."""
        arrivals = self._with_own_sessions(arrivals)
        fresh = self._fresh(arrivals)
        return [self._apply(one) if self._is_first_delivery(one.event, fresh) else DUPLICATE for one in arrivals]

    def replay(self, events: Sequence[Event]) -> None:
        """Append the events of an earlier transaction that are missing from the log."""
        known_keys = self.engine.store.seqs_of_keys([event.key for event in events])
        for event in events:
            if event.key not in known_keys:
                self._append(event)

    def _with_own_sessions(self, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        owners = self.engine.owners
        owners.learn([arrival.event for arrival in arrivals], self.engine.store.session_agents)
        return [
            arrival if (event := owners.keep_apart(arrival.event)) is arrival.event else arrival._replace(event=event)
            for arrival in arrivals
        ]

    def _fresh(self, arrivals: Sequence[Arrival]) -> dict[str, None]:
        keys = [arrival.event.key for arrival in arrivals]
        known_keys = self.engine.store.seqs_of_keys(keys)
        return dict.fromkeys([key for key in keys if key not in known_keys])

    def _is_first_delivery(self, event: Event, fresh: dict[str, None]) -> bool:
        """Return whether it is neither delivered twice nor reported by two hook files."""
        if event.key not in fresh:
            return False
        # The same key may occur twice in one batch.
        del fresh[event.key]
        happening = dedupe_key(event)
        if not happening:
            return True
        if is_within_window(happening, self.seen.get(happening), event.at) or self.engine.recent.knows(
            happening, event.at
        ):
            return False
        self.seen[happening] = event.at
        return True

    def _apply(self, arrival: Arrival) -> Outcome:
        event = self._append(arrival.event)
        for made in self._following(event):
            self._append(made)
        if arrival.missed and not self.imported:
            self._note_missed(event, arrival.client_verdict)
        # Last: features decide by the state that includes this event and everything derived from it.
        decision, reply = self._answer(event) if arrival.waits else (NOTHING, b"")
        return Outcome(event.seq, reply, decision, event if reply else None)

    # ── what it sets going ─────────────────────────────────────────────────────────────────────────────────────────

    def _append(self, event: Event) -> Event:
        self.seq += 1
        event = msgspec.structs.replace(event, seq=self.seq)
        self.events.append(event)
        subscribers = self.engine.subscribers_of(event.kind)
        if self._lazy:
            for feature, enqueue in subscribers.keepers:
                if feature.name in self._behind:
                    self._behind[feature.name][1].append((event, enqueue))
                else:
                    self._behind[feature.name] = feature, [(event, enqueue)]
            return event
        for feature in subscribers.reducers:
            self._reduce(feature, event, self._refs(feature, event))
        if subscribers.enqueuers and not self.imported:
            settings = self._settings(event.project)
            for feature, enqueue in subscribers.enqueuers:
                self._enqueue_jobs(feature, enqueue, event, settings)
        return event

    def _catch_up_owner(self, owner: str) -> None:
        """Bring one feature up to date, or all if the owner of a document is unknown."""
        if owner:
            self._catch_up(owner)
        else:
            self.catch_up_all()

    def _catch_up(self, name: str) -> None:
        # Removed while catching up: its own reads see the documents as they are.
        feature, events = self._behind.pop(name)
        try:
            while events:
                self._bring_up_to_date(feature, events)
        finally:
            if events:
                self._behind[name] = feature, events

    def _bring_up_to_date(self, feature: Feature, events: list[tuple[Event, Enqueue | None]]) -> None:
        event, enqueue = events[0]
        refs = self._refs(feature, event)
        # Before any change: if the store fails here, the event is reduced later, and only once.
        self.work.prefetch(refs)
        del events[0]
        if refs:
            self._reduce(feature, event, refs)
        if enqueue and not self.imported:
            self._enqueue_jobs(feature, enqueue, event, self._settings(event.project))

    def _enqueue_jobs(self, feature: Feature, enqueue: Enqueue, event: Event, settings: Mapping[str, Any]) -> None:
        try:
            # Collect all jobs first: a feature that fails on an event enqueues none.
            jobs = [*(enqueue(self.state, event, settings.get(feature.name)) or ())]
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)
            return
        for job in jobs:
            self._enqueue(job)

    def _refs(self, feature: Feature, event: Event) -> Sequence[Ref]:
        try:
            return [*feature.keys(event)]
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)
            return []

    def _reduce(self, feature: Feature, event: Event, refs: Iterable[Ref]) -> None:
        try:
            for ref in refs:
                before = self.work.get(ref)
                after = feature.reduce(before, event, ref)
                # `reduce` returns the same object if nothing changed; then no row is written.
                if after is not None and after is not before:
                    self.work.put(ref, after, feature)
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)

    def _enqueue(self, job: Job) -> None:
        """A batch often comes from one agent; repeated requests for a job reach the store once."""
        waiting = self.jobs.get((job.kind, job.dedupe)) if job.dedupe else None
        # The newer payload counts, but the job runs no later than first requested.
        if waiting is not None and waiting.run_at < job.run_at:
            job = msgspec.structs.replace(job, run_at=waiting.run_at)
        self.jobs[(job.kind, job.dedupe or len(self.jobs))] = job

    def _following(self, event: Event) -> list[Event]:
        """Derive everything before appending any of it, so that every feature sees the state this event left. Derived
        events are not derived from again."""
        subscribers, following = self.engine.subscribers_of(event.kind), list[Event]()
        derivers = subscribers.historians if self.imported else subscribers.derivers
        settings = self._settings(event.project) if derivers else {}
        for feature, derive in derivers:
            try:
                derived = [*(derive(self.state, event, settings.get(feature.name)) or ())]
            except Exception as error:
                self.engine.ports.report(feature.name, event, error)
                continue
            # Derived from the event's key, so that a repeated delivery makes the same events.
            for number, made in enumerate(derived):
                following.append(msgspec.structs.replace(made, key=f"{event.key}/{feature.name}.{number}"))
        return following

    # ── what is answered ───────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, event: Event) -> tuple[Decision, bytes]:
        decision = self._carried(event, self._budgeted(event, self._with_held(event, self._merged(event))))
        if decision.silent:
            return decision, b""
        try:
            reply = self.engine.ports.write(event, decision)
        except Exception as error:
            # A refusal the agent never received must not be recorded.
            self.engine.ports.report("agents", event, error)
            return NOTHING, b""
        self._append(decision_event(event, decision))
        return decision, reply

    def _with_held(self, event: Event, decision: Decision) -> Decision:
        held = self.engine.held
        waiting = held.of(_conversation(event)) if held else ()
        # Asked again, the same context may have been decided once more.
        fresh = tuple(one for one in waiting if one not in decision.contexts)
        return msgspec.structs.replace(decision, contexts=(*fresh, *decision.contexts)) if fresh else decision

    def _carried(self, event: Event, decision: Decision) -> Decision:
        """Only what the agent really receives is recorded as delivered; contexts wait for the next event that has a place
        for them, and a refusal without one is recorded as undelivered."""
        carried, held = self.engine.ports.carried(event, decision), self.engine.held
        if decision.contexts or held:
            held.put(_conversation(event), decision.contexts if not carried.contexts else (), event.at)
        if carried.verdict != decision.verdict:
            self._append(undelivered_event(event, decision))
        return carried

    def _note_missed(self, event: Event, verdict_told: str) -> None:
        """Record what would have been refused if someone had been waiting."""
        decision = self._merged(event)
        if decision.verdict == "deny" or verdict_told == "deny":
            self._append(undelivered_event(event, decision, verdict_told))

    def _merged(self, event: Event) -> Decision:
        settings, opinions, refused = self._settings(event.project), list[Decision](), False
        for feature, decide in self.engine.subscribers_of(event.kind).deciders:
            # A refused call never runs, so nobody needs to be informed about it.
            if refused and not (feature.refuses and feature.refuses(settings.get(feature.name))):
                continue
            if opinion := self._decide(feature, decide, event, settings):
                opinions.append(opinion)
                refused |= opinion.verdict == "deny" and event.kind == "tool.started"
        return merge_decisions(opinions)

    def _decide(self, feature: Feature, decide: Decide, event: Event, settings: Mapping[str, Any]) -> Decision | None:
        section = settings.get(feature.name)
        try:
            asked = event.kind in feature.answers_after or feature.can_decide(event.kind, section)
            return decide(self.state, event, section) if asked else None
        except Exception as error:
            self.engine.ports.report(feature.name, event, error)
            return None

    def _settings(self, project: str) -> Mapping[str, Any]:
        """Looked up once per transaction, so that all features see the same settings."""
        settings = self._settings_of.get(project)
        if settings is None:
            settings = self._settings_of[project] = self.engine.ports.settings(project)
        return settings

    def _budgeted(self, event: Event, decision: Decision) -> Decision:
        if not decision.contexts:
            return decision
        limits = self._settings(event.project).get("context")
        name, default = BUDGETS.get(event.kind, ("prompt_tokens", PROMPT_TOKENS))
        budget = getattr(limits, name, default)
        # Files that a line mentions may be gone by now.
        checked = [now for context in decision.contexts if (now := context.checked(lexists))]
        contexts, _ = text.within_budget(checked, budget)
        return msgspec.structs.replace(decision, contexts=tuple(contexts))

    # ── what is kept ───────────────────────────────────────────────────────────────────────────────────────────────

    def catch_up_all(self) -> None:
        for name in tuple(self._behind):
            if name in self._behind:  # A feature that was caught up may have asked for the documents of another.
                self._catch_up(name)

    def write(self) -> None:
        self.catch_up_all()
        store = self.engine.store
        if self.events:
            store.append(self.events)
        if self.work.changed:
            store.save(self.work.rows())
        if self.jobs:
            store.enqueue([*self.jobs.values()], self.engine.ports.clock())

    def count_due_jobs(self) -> int:
        """Count the jobs that can start now; for others no worker is woken."""
        now = self.engine.ports.clock()
        return sum(job.run_at <= now for job in self.jobs.values())


def _conversation(event: Event) -> tuple[str, str]:
    return event.session, event.data.lane if isinstance(event.data, HookPayload) else ""


def undelivered_event(event: Event, decision: Decision, verdict_told: str = "") -> Event:
    """Record an answer that was lost, or one that nobody was waiting for; one per delivery."""
    data = event.data
    hook = data if isinstance(data, HookPayload) else HookPayload()
    call = data.call if isinstance(data, ToolPayload) else ""
    payload = AnswerUndelivered(
        of=event.seq, of_kind=event.kind, verdict=decision.verdict, reasons=list(decision.reasons), call=call,
        instead="deny" if verdict_told == "deny" else "", branch=hook.branch, repo=hook.repo,
    )  # fmt: skip
    return msgspec.structs.replace(derived_event(event, payload), key=undelivered_key(event.key))


def undelivered_answer(key: str, made: Event, verdict_told: str) -> Event:
    """The same from the recorded answer, for a delivery that came again through the spool."""
    answer = made.data if isinstance(made.data, DecisionMade) else DecisionMade()
    payload = AnswerUndelivered(
        of=answer.of, of_kind=answer.of_kind, verdict=answer.verdict, reasons=answer.reasons, call=answer.call,
        instead="deny" if verdict_told == "deny" else "", branch=answer.branch, repo=answer.repo,
    )  # fmt: skip
    return msgspec.structs.replace(derived_event(made, payload), key=undelivered_key(key))


def undelivered_key(key: str) -> str:
    return f"{key}/undelivered"


def decision_event(event: Event, decision: Decision) -> Event:
    """Record an answer, so that features can count refusals and injections."""
    contexts = [InjectedContext(c.source, c.text, text.estimate_tokens(c.text)) for c in decision.contexts]
    data = event.data
    hook = data if isinstance(data, HookPayload) else None
    return Event(
        key=f"{event.key}/decision",
        kind=DecisionMade.KIND,
        at=event.at,
        session=event.session,
        project=event.project,
        agent=event.agent,
        tool=event.tool,
        data=DecisionMade(
            of=event.seq,
            of_kind=event.kind,
            verdict=decision.verdict,
            reasons=list(decision.reasons),
            contexts=contexts,
            notices=list(decision.notices),
            details=list(decision.details),
            call=data.call if isinstance(data, ToolPayload) else "",
            lane=hook.lane if hook else "",
            branch=hook.branch if hook else "",
            repo=hook.repo if hook else "",
        ),
    )
