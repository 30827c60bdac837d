"""Any order of appending, repeating, failing and reopening leaves what a list in memory would hold."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery
from tests.factories import a_counter, an_engine, an_event, counted

from .conftest import Place
from .test_conformance_engine import differences

SESSIONS = st.sampled_from(["a", "b", "é\x00", "c" * 300])
EVENTS = st.builds(
    lambda session, text, body: an_event(session=session, data={"text": text}, body=body),
    SESSIONS,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=50),
)
BATCHES = st.lists(EVENTS, min_size=1, max_size=5)


class Stop(Exception):
    pass


class Log(RuleBasedStateMachine):
    new_place: Callable[[], Place]

    def __init__(self) -> None:
        super().__init__()
        self.place = type(self).new_place()
        self.model: list[Event] = []
        self.reopen()

    @rule(batch=BATCHES)
    def append(self, batch: list[Event]) -> None:
        seqs = [o.seq for o in self.engine.handle(batch)]
        assert seqs == [len(self.model) + n for n in range(1, len(batch) + 1)]
        self.model += batch

    @precondition(lambda self: self.model)
    @rule(data=st.data(), fresh=BATCHES)
    def repeat(self, data: st.DataObject, fresh: list[Event]) -> None:
        old = data.draw(st.lists(st.sampled_from(self.model), min_size=1, max_size=4))
        assert [bool(o.seq) for o in self.engine.handle(old + fresh + fresh)] == (
            [False] * len(old) + [True] * len(fresh) + [False] * len(fresh)
        )
        self.model += fresh

    @rule(batch=BATCHES)
    def fail(self, batch: list[Event]) -> None:
        def stop(_store: object) -> None:
            raise Stop

        with pytest.raises(Stop):
            self.engine.handle(batch, also=stop)

    @rule()
    def reopen(self) -> None:
        self.place.close()
        self.engine = an_engine(self.place.store())
        self.reader = self.place.reader()

    @invariant()
    def the_log_is_the_model(self) -> None:
        read = self.reader.events(EventQuery(limit=10_000, bodies=True))
        assert [(e.key, e.session, e.data, e.body) for e in read] == [
            (e.key, e.session, e.data, e.body) for e in self.model
        ]
        assert [e.seq for e in read] == list(range(1, len(self.model) + 1))

    @invariant()
    def documents_count_the_model(self) -> None:
        for session in {e.session for e in self.model}:
            document = self.reader.state(counted(session))
            assert document and document["n"] == sum(e.session == session for e in self.model)

    def teardown(self) -> None:
        assert differences(self.reader, a_counter()) == []
        self.place.close()


def test_a_store_is_a_list_that_forgets_nothing(new_place: Callable[[], Place]):
    machine = type("Machine", (Log,), {"new_place": staticmethod(new_place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=15,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
