"""Any interleaving of deliveries, commands, crashes, full disks and restarts: what was answered is in the log, once."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.core.decision import Delivery
from holdfast.core.errors import StoreUnavailable
from holdfast.core.ports import EventQuery
from holdfast.daemon.ingest.pipeline import TRANSITIONS, Batch, Stage
from tests.daemon.ingest.test_pipeline import ASKED, QUIET, Harness
from tests.factories import a_delivery, an_event

HOOKS = st.lists(st.sampled_from([QUIET, ASKED]), min_size=1, max_size=3)


class Ingest(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.harness = Harness(self.folder)
        self.answered: dict[str, Delivery] = {}
        self.spooled: dict[str, Delivery] = {}
        self.commands = 0
        self.full = False

    @contextmanager
    def disk(self) -> Iterator[None]:
        """While the disk is full the store takes nothing; the journal has its space already."""
        append = self.harness.store.append
        if self.full:
            self.harness.store.append = self._refuse  # type: ignore[method-assign]
        try:
            yield
        finally:
            self.harness.store.append = append  # type: ignore[method-assign]

    def _refuse(self, *_args: object) -> None:
        raise StoreUnavailable("no space left")

    def _deliver(self, deliveries: list[Delivery]) -> None:
        with self.disk():
            outcomes = self.harness.pipeline.accept(deliveries)
        kept = self.spooled if outcomes is None else self.answered
        kept.update({delivery.key: delivery for delivery in deliveries})

    @rule(hooks=HOOKS)
    def hooks_fire(self, hooks: list[str]) -> None:
        self._deliver([a_delivery(event=event, mode="ask") for event in hooks])

    @precondition(lambda self: self.answered)
    @rule(data=st.data())
    def one_comes_again(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.answered)))
        self._deliver([self.answered[key]])

    @rule()
    def flushed(self) -> None:
        with self.disk():
            self.harness.pipeline.flush()

    @rule()
    def spool_is_drained(self) -> None:
        waiting = list(self.spooled.values())
        with self.disk():
            taken = waiting and self.harness.pipeline.store_spooled(waiting)
        if taken:
            self.answered |= self.spooled
            self.spooled = {}

    @rule()
    def command_is_given(self) -> None:
        try:
            with self.disk():
                self.harness.pipeline.commit_events([an_event(kind="note.added")])
            self.commands += 1
        except StoreUnavailable:
            assert self.full

    @rule()
    def ticks(self) -> None:
        with self.disk():
            self.harness.pipeline.retry_held()

    @rule(full=st.booleans())
    def disk_fills_or_is_freed(self, full: bool) -> None:
        self.full = full

    @rule(size=st.sampled_from([700, 4096, 1 << 20]))
    def journal_has_another_size(self, size: int) -> None:
        self.harness.journal._size = max(size, self.harness.journal._at)

    @precondition(lambda self: not self.full)
    @rule()
    def crashes(self) -> None:
        self.harness.crash()

    @invariant()
    def nothing_waits_out_of_order(self) -> None:
        stages = [batch.stage for batch in self.harness.pipeline._batches]
        assert all(stage is Stage.JOURNALED for stage in stages[1:])
        assert not stages or stages[0] in (Stage.JOURNALED, Stage.READY)

    @invariant()
    def no_event_is_there_twice(self) -> None:
        keys = [event.key for event in self._events()]
        assert len(keys) == len(set(keys))

    def teardown(self) -> None:
        self.full = False
        self.harness.pipeline.retry_held()
        self.spool_is_drained()
        self.harness.crash()
        events = self._events()
        kinds = [event.kind for event in events]
        assert set(self.answered) <= {event.key for event in events}
        assert kinds.count("note.added") == self.commands
        assert kinds.count("tool.started") + kinds.count("tool.finished") == len(self.answered)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        self.harness.store.close()
        shutil.rmtree(self.folder)

    def _events(self) -> list[object]:
        reader = self.harness.store.reader()
        try:
            return reader.events(EventQuery(limit=10_000))
        finally:
            reader.close()


TestIngest = Ingest.TestCase
TestIngest.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_only_drawn_transitions_are_possible() -> None:
    for stage in Stage:
        for other in Stage:
            batch = Batch([])
            batch.stage = stage
            try:
                batch.advance(other)
            except RuntimeError:
                assert other not in TRANSITIONS[stage]
            else:
                assert other in TRANSITIONS[stage]
