"""Moves each batch of deliveries through its stages, on the writer thread."""

# Hooks are answered as soon as their batch is in the journal. If no feature can answer or redact it, that is before it
# is applied; otherwise it is applied first.

import enum
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.core.agent import Agent
from holdfast.core.decision import Delivery
from holdfast.core.engine import Committed, Engine, Outcome
from holdfast.core.errors import KeyUnavailable, StoreDamaged, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.feature import Redacts
from holdfast.core.ports import Store
from holdfast.core.transaction import Arrival, Transaction
from holdfast.daemon.ingest.journal import AckLedger, Journal, JournalEntry
from holdfast.daemon.ingest.store_guard import StoreGuard

# In deliveries: beyond the first number, at least the second many are applied before the next answer.
MOST_UNAPPLIED, PORTION = 64, 16
"""Bounds how long an answer that needs the state waits. If hooks arrive faster than they are applied, each waits for
the oldest few, not for all."""
NOTHING_TO_SAY = Outcome()

HookAndFolder = tuple[str, str, str]
"""Agent, native event, and the folder whose settings apply."""


BeforeAnswering = Callable[[Delivery, str, str], bool]
"""Called with a waiting delivery, its kind and folder; returns whether a feature has something to say to it."""


class Stage(enum.Enum):
    """The stage of a batch. Its hooks are answered when it is JOURNALED, or STORED if there is no journal."""

    ACCEPTED = "accepted"
    JOURNALED = "journaled"
    APPLIED = "applied"
    READY = "applied and journaled"
    STORED = "stored"
    HELD = "held in memory"
    REFUSED = "refused"


TRANSITIONS: dict[Stage, dict[Stage, str]] = {
    Stage.ACCEPTED: {
        Stage.JOURNALED: "no feature could decide: on disk, and answered at once",
        Stage.APPLIED: "a feature may decide, or takes something out of it",
        Stage.STORED: "it failed as a batch: written one by one, then answered",
        Stage.HELD: "the store takes nothing: not answered, the hook spools it too",
        Stage.REFUSED: "the store owes an earlier answer: not answered, the hook spools it",
    },
    Stage.JOURNALED: {Stage.STORED: "applied and written in one transaction", Stage.HELD: "the store takes nothing"},
    Stage.APPLIED: {
        Stage.READY: "its events are on disk, and it is answered",
        Stage.STORED: "the journal takes nothing: written, then answered",
        Stage.HELD: "the store takes nothing either",
    },
    Stage.READY: {Stage.STORED: "written as it was applied, or applied again after damage"},
    Stage.HELD: {Stage.STORED: "the store takes it at a later tick"},
    Stage.STORED: {},
    Stage.REFUSED: {},
}
"""The allowed transitions. ARCHITECTURE's table is generated from this."""


class Batch:
    """Deliveries that arrived together, their stage, and what was applied in memory."""

    __slots__ = ("deliveries", "stage", "transaction")

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self.deliveries: Sequence[Delivery] = deliveries
        self.stage = Stage.ACCEPTED
        self.transaction: Transaction | None = None

    def advance(self, stage: Stage) -> None:
        if stage not in TRANSITIONS[self.stage]:
            raise RuntimeError(f"a batch that is {self.stage.value} cannot become {stage.value}")
        self.stage = stage


class IngestPipeline:
    def __init__(
        self,
        engine: Callable[[], Engine],
        agents: Mapping[str, Agent],
        store_guard: StoreGuard,
        journal: Journal,
        ledger: AckLedger | None = None,
        before_answer: BeforeAnswering = lambda _delivery, _kind, _folder: False,
    ) -> None:
        self._engine, self._guard, self._journal, self._ledger = engine, store_guard, journal, ledger
        self._before_answer = before_answer
        # Tells by agent and hook who may decide, before the payload is read.
        self._kinds = {(agent.name, hook.event): hook.kind for agent in agents.values() for hook in agent.hooks}
        self._batches: list[Batch] = []
        """Acknowledged batches not yet stored, in order: at most one that is READY, then JOURNALED ones."""
        self._replayed = True
        """Whether everything the last daemon acknowledged is in the log."""
        self.journal_waits_for_key = False
        """Whether the last daemon's journal needs a key that the keyring has not released."""
        self.subscribers: list[Callable[[Committed], None]] = []
        """Called with what was committed, after the agents were answered."""

    @property
    def has_pending(self) -> bool:
        """Whether acknowledged events are not in the store yet."""
        return bool(self._batches)

    @property
    def has_unstored(self) -> bool:
        return bool(self._batches) or self._guard.has_retries

    # ── what comes in ──────────────────────────────────────────────────────────────────────────────────────────────

    def accept(self, deliveries: Sequence[Delivery]) -> list[Outcome] | None:
        """Return the answers; None if nothing could be kept, and the hooks spool."""
        batch = Batch(deliveries)
        # A batch mostly repeats the same hook in the same place, so each is looked up once.
        hooks = [_hook_and_folder(delivery) for delivery in deliveries]
        asked = [(hook, d) for hook, d in zip(hooks, deliveries, strict=True) if d.mode != "tell"]
        speaking = [self._do_before_answer(d, hook) for hook, d in asked]
        may_decide = any(speaking) or any(self._can_decide(*what) for what in {hook for hook, _ in asked})
        # A decision needs the state after all earlier hooks; otherwise a portion is enough to keep up.
        if may_decide or _count_deliveries(self._batches) >= MOST_UNAPPLIED:
            self.flush(None if may_decide else max(PORTION, len(deliveries)))
            if self._blocked or (may_decide and self._batches):
                batch.advance(Stage.REFUSED)
                return None
        # Redaction doesn't know what features remove: such a payload is journaled only as the events it became.
        as_it_came = not may_decide and not self._is_redacted(hooks, deliveries)
        if as_it_came and self._journal_unapplied(batch):
            return [NOTHING_TO_SAY] * len(deliveries)
        if not may_decide:
            self.flush()
        outcomes = self._apply_and_answer(batch)
        self._note_answered(deliveries, outcomes)
        return outcomes

    def commit_events(
        self,
        events: Sequence[Delivery | Event | Arrival],
        also: Callable[[Store], None] | None = None,
        *,
        imported: bool = False,
        durable: bool = True,
    ) -> list[Outcome]:
        """Append events of commands, jobs and importers after everything acknowledged. Without `durable` a power cut
        may undo them, as a whole and with everything after them."""
        self._clear_way()
        return self._engine().handle(events, also, imported=imported, durable=durable)

    def store_spooled(self, deliveries: Sequence[Delivery]) -> list[Outcome] | None:
        """None: not now; the spool keeps them."""
        self.flush()
        outcomes = None if self._blocked else self._guard.commit(deliveries)
        self._note_answered(deliveries, outcomes)
        return outcomes

    def _note_answered(self, deliveries: Sequence[Delivery], outcomes: Sequence[Outcome] | None = ()) -> None:
        """Note the keys that `verify` checks. `outcomes`: None if nothing was acknowledged, empty if not known yet."""
        if self._ledger and outcomes is not None:
            self._ledger.note([delivery.key for delivery in deliveries])
            # A delivery without a number became no event, so `verify` must not look for its key.
            self._ledger.drop([one.key for one, outcome in zip(deliveries, outcomes, strict=False) if not outcome.seq])

    def retry_held(self) -> None:
        self.flush()
        if self._blocked:
            return
        # The store was unavailable at the start; the journal still has what the last daemon acknowledged.
        if not self._replayed:
            self.replay_journal()
        self._guard.retry_buffered()

    def _do_before_answer(self, delivery: Delivery, hook: HookAndFolder) -> bool:
        agent, event, folder = hook
        return self._before_answer(delivery, self._kinds.get((agent, event), ""), folder)

    def _can_decide(self, agent: str, event: str, folder: str) -> bool:
        # A hook unknown to the adapter may turn out to be anything once it is read.
        kind = self._kinds.get((agent, event))
        return kind is None or self._engine().can_decide(kind, folder)

    def _is_redacted(self, hooks: Sequence[HookAndFolder], deliveries: Sequence[Delivery]) -> bool:
        redactors = {hook: self._redactors(*hook) for hook in set(hooks)}
        return any(
            redacts(delivery.body, settings)
            for hook, delivery in zip(hooks, deliveries, strict=True)
            for redacts, settings in redactors[hook]
        )

    def _redactors(self, agent: str, event: str, folder: str) -> list[tuple[Redacts, Any]]:
        kind = self._kinds.get((agent, event))
        return [] if kind is None else self._engine().redactors(kind, folder)

    # ── before the answer ──────────────────────────────────────────────────────────────────────────────────────────

    def _journal_unapplied(self, batch: Batch) -> bool:
        try:
            # Redacted before it is journaled: the disk may hold nothing that the log would not.
            clean = [self._engine().ports.clean(delivery).without_reply() for delivery in batch.deliveries]
        except Exception:  # The longer way knows what to do with it.
            return False
        if not self._journal.add([JournalEntry(delivery) for delivery in clean]):
            return False
        batch.deliveries = clean
        batch.advance(Stage.JOURNALED)
        self._batches.append(batch)
        return True

    def _apply_and_answer(self, batch: Batch) -> list[Outcome] | None:
        if self._blocked:
            outcomes = None
            self._guard.hold_in_memory(batch.deliveries)
        else:
            outcomes = self._guard.commit(batch.deliveries, lambda engine, _: self._apply(engine, batch))
        if batch.stage is Stage.READY:
            # They are answered now: applied again after damage, they must not be answered again.
            batch.deliveries = [delivery.without_reply() for delivery in batch.deliveries]
            self._batches.append(batch)
        else:
            batch.advance(Stage.HELD if outcomes is None else Stage.STORED)
        return outcomes

    def _apply(self, engine: Engine, batch: Batch) -> list[Outcome]:
        transaction, outcomes = engine.apply(batch.deliveries)
        batch.advance(Stage.APPLIED)
        try:
            # With everything derived: a replay must find the same numbers and answers.
            if transaction.events and self._journal.add([JournalEntry(events=tuple(transaction.events))]):
                batch.transaction = transaction
                batch.advance(Stage.READY)
            else:
                engine.commit(transaction, durable=True)
        except Exception:
            # What was applied in memory and is on no disk must not stay in the documents.
            engine.discard()
            raise
        return outcomes

    # ── after the answer ───────────────────────────────────────────────────────────────────────────────────────────

    def flush(self, most: int | None = None) -> None:
        """Apply and write what was acknowledged, or `most` of it. After a failure it is retried later."""
        # Half full: store durably now, so that the journal can be overwritten from its beginning.
        durable = self._journal.half_full
        self._store_ready()
        if self._batches and not self._blocked:
            # The journal is overwritten only once all of it is in the store.
            waiting = self._batches[:]
            self._store_journaled(waiting if durable or most is None else _first_few(waiting, most), durable)
        # Before the journal can be cleared: every acknowledged key is in one of the two files.
        if self._ledger:
            self._ledger.write()
        engine = self._engine()
        # Not synced means not safe: until then the journal keeps what a power cut would take from the store.
        if engine.durable == engine.head and not self.has_unstored:
            self._journal.clear()

    def publish(self) -> None:
        for committed in self._engine().take_committed():
            for notify in self.subscribers:
                try:
                    notify(committed)
                except Exception as error:
                    # A failing subscriber must stop neither the writer nor other subscribers.
                    self._engine().ports.report("subscribers", committed.events[-1], error)

    @property
    def _blocked(self) -> bool:
        """Whether an acknowledged batch cannot be stored, so that nothing can be applied on top of it."""
        return bool(self._batches) and self._batches[0].stage is Stage.READY

    def _clear_way(self) -> None:
        self.flush()
        if self._blocked:
            raise StoreUnavailable(self._guard.refusing or "the store takes nothing now")

    def _store_ready(self) -> None:
        if not self._blocked:
            return
        batch = self._batches[0]
        if self._guard.store_applied(batch.transaction, batch.deliveries):
            batch.advance(Stage.STORED)
            del self._batches[0]
        elif batch.transaction is not self._engine().open_transaction:
            batch.transaction = None  # It can only be applied again.

    def _store_journaled(self, batches: Sequence[Batch], durable: bool) -> None:
        deliveries = [delivery for batch in batches for delivery in batch.deliveries]
        try:
            outcomes = self._guard.commit(deliveries, lambda engine, some: engine.handle(some, durable=durable))
            self._note_stored(batches, deliveries, outcomes)
        finally:
            # The guard now holds what it could not store.
            del self._batches[: len(batches)]

    def _note_stored(
        self, batches: Sequence[Batch], deliveries: Sequence[Delivery], outcomes: Sequence[Outcome] | None
    ) -> None:
        """Note batches answered earlier; until now their keys were in the journal."""
        self._note_answered(deliveries, outcomes or ())
        for batch in batches:
            batch.advance(Stage.HELD if outcomes is None else Stage.STORED)

    # ── after a crash ──────────────────────────────────────────────────────────────────────────────────────────────

    def replay_journal(self) -> None:
        """Append what the last daemon acknowledged before anything new. Most of it is already in the log."""
        try:
            entries = self._journal.pending_entries(ask=False)
        except KeyUnavailable:
            # Left as it is until the keyring is open; meanwhile hooks wait for the store.
            self._replayed, self.journal_waits_for_key = False, True
            return
        self.journal_waits_for_key = False
        try:
            replayed = self._replay_all(entries)
        except StoreDamaged as error:
            replayed = self._guard.repair(error) and self._replay_all(entries)
        self._replayed = replayed
        if replayed:
            # Opening starts to overwrite the old entries, so all of them must be in the log.
            self._journal.open()

    def _replay_all(self, entries: Sequence[JournalEntry]) -> bool:
        return all(self._replay_entries(alike) for alike in _group_by_kind(self._missing(entries)))

    def _missing(self, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        if not entries:
            return []
        reader = self._engine().store.reader()
        try:
            # Most are known already, so all keys are looked up at once.
            known_keys = reader.seqs_of_keys([one.key for one in entries])
            return [one for one in entries if one.key not in known_keys]
        finally:
            reader.close()

    def _replay_entries(self, alike: Sequence[JournalEntry]) -> bool:
        try:
            for one in alike:
                if one.events:
                    self._engine().append(one.events)
        except StoreUnavailable:
            return False
        deliveries = [one.delivery for one in alike if one.delivery]
        return not deliveries or self._guard.commit(deliveries) is not None


def _hook_and_folder(delivery: Delivery) -> HookAndFolder:
    return delivery.agent, delivery.event, delivery.env.get("CLAUDE_PROJECT_DIR") or delivery.cwd


def _count_deliveries(batches: Iterable[Batch]) -> int:
    return sum(len(batch.deliveries) for batch in batches)


def _first_few(batches: Sequence[Batch], most: int) -> Sequence[Batch]:
    """The oldest batches with at least `most` deliveries together."""
    enough = next((n for n in range(len(batches)) if _count_deliveries(batches[: n + 1]) >= most), len(batches) - 1)
    return batches[: enough + 1]


def _group_by_kind(entries: Sequence[JournalEntry]) -> list[list[JournalEntry]]:
    """Group consecutive entries of one kind."""
    # Deliveries are stored as a batch, applied events entry by entry; their order is kept.
    return [list(run) for _, run in itertools.groupby(entries, key=lambda one: one.delivery is None)]
