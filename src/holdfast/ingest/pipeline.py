"""Who comes in is answered as soon as that is honest: when it is on disk in the journal.

Where nobody could have anything to say, that is at once; it is thought about after the answer has left. Where somebody
could, the thinking comes first. What was promised is written to the store right afterwards. All in the writer thread.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence

from holdfast.core.agent import Agent
from holdfast.core.decision import Delivery
from holdfast.core.engine import Engine, Outcome
from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.ingest.journal import Journal, JournalEntry
from holdfast.ingest.store_guard import StoreGuard

MOST_PROMISED, PORTION = 64, 16
"""So that an answer which needs the state never waits long for it. Where hooks come faster than they are thought about,
each waits until the oldest few are, not until all are."""
NOTHING_TO_SAY = Outcome()


class IngestPipeline:
    def __init__(
        self, engine: Callable[[], Engine], agents: Mapping[str, Agent], store_guard: StoreGuard, journal: Journal
    ) -> None:
        self._engine, self._guard, self._journal = engine, store_guard, journal
        self._kinds = {(agent.name, hook.event): hook.kind for agent in agents.values() for hook in agent.hooks}
        self._unapplied: list[Delivery] = []
        self._unflushed: list[Delivery] = []
        self._applying = False

    @property
    def has_pending(self) -> bool:
        return bool(self._unapplied or self._unflushed or self._applying)

    def accept(self, deliveries: Sequence[Delivery]) -> list[Outcome] | None:
        # A batch is mostly the same hook in the same place, many times.
        asked = any(self._can_decide(*what) for what in {_what(d) for d in deliveries if d.mode != "tell"})
        if asked or len(self._unapplied) >= MOST_PROMISED:
            self.flush(None if asked else max(PORTION, len(deliveries)))
            if self._unflushed or (asked and self._unapplied):
                return None  # The store takes nothing now.
        if not asked and self._journal_deliveries(deliveries):
            return [NOTHING_TO_SAY] * len(deliveries)
        self.flush()
        outcomes = self._guard.commit(deliveries, self._answer)
        if self._engine().has_pending:
            self._unflushed = [delivery.unawaited() for delivery in deliveries]
        return outcomes

    def flush(self, most: int | None = None) -> None:
        """What was answered, or `most` of it, is thought about and written. Where that fails it stays to be done."""
        lasting = self._journal.half_full
        most = None if lasting else most  # The journal is written over only when all of it is in the store.
        if self._unflushed and self._guard.flush(self._unflushed):
            self._unflushed = []
        if self._unapplied and not self._unflushed:
            self._apply(self._unapplied[:most], lasting=lasting)
        engine = self._engine()
        if engine.durable == engine.head and not self.has_pending and not self._guard.has_retries:
            self._journal.clear()

    def _apply(self, portion: list[Delivery], *, lasting: bool) -> None:
        """Whoever wants to read waits until it is done: meanwhile it is in neither list."""
        self._applying = True
        self._unapplied = self._unapplied[len(portion) :]
        try:
            self._guard.commit(portion, lambda engine, batch: engine.handle(batch, lasting=lasting))
        finally:
            self._applying = False

    # ── at once ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _journal_deliveries(self, deliveries: Sequence[Delivery]) -> bool:
        try:
            clean = [self._engine().ports.clean(delivery).unawaited() for delivery in deliveries]
        except Exception:  # The longer way knows what to do with it.
            return False
        if not self._journal.add([JournalEntry(delivery) for delivery in clean]):
            return False
        self._unapplied += clean
        return True

    def _can_decide(self, agent: str, event: str, folder: str) -> bool:
        kind = self._kinds.get((agent, event))
        return kind is None or self._engine().can_decide(kind, folder)

    # ── after some thought ─────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, engine: Engine, deliveries: Sequence[Delivery]) -> list[Outcome]:
        return engine.answer(deliveries, lambda events: self._journal.add([JournalEntry(events=tuple(events))]))

    # ── after a crash ──────────────────────────────────────────────────────────────────────────────────────────────

    def replay_journal(self) -> None:
        """What the last daemon promised goes into the log before anything new does. Most of it is there already."""
        pending_entries = self._journal.pending_entries()
        try:
            good = self._replay_all(pending_entries)
        except StoreDamaged as error:
            good = self._guard.repair(error) and self._replay_all(pending_entries)
        if good:
            self._journal.open()

    def _replay_all(self, pending_entries: Sequence[JournalEntry]) -> bool:
        return all(self._replay_entries(alike) for alike in _runs(self._missing(pending_entries)))

    def _missing(self, pending_entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        if not pending_entries:
            return []
        reader = self._engine().store.reader()
        try:
            known = reader.known([one.key for one in pending_entries])
            return [one for one in pending_entries if one.key not in known]
        finally:
            reader.close()

    def _replay_entries(self, alike: Sequence[JournalEntry]) -> bool:
        try:
            for one in alike:
                if one.events:
                    self._engine().replay_journal(one.events)
        except StoreUnavailable:
            return False
        deliveries = [one.delivery for one in alike if one.delivery]
        return not deliveries or self._guard.commit(deliveries) is not None


def _what(delivery: Delivery) -> tuple[str, str, str]:
    return delivery.agent, delivery.event, delivery.env.get("CLAUDE_PROJECT_DIR") or delivery.cwd


def _runs(promised: Sequence[JournalEntry]) -> list[list[JournalEntry]]:
    """In their order, those of one kind together."""
    return [list(run) for _, run in itertools.groupby(promised, key=lambda one: one.delivery is None)]
