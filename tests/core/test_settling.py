"""An answer leaves when the log is durable; documents, jobs and what follows come right after it, whatever happens."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.decision import Decision, tell
from holdfast.core.delivery import Delivery
from holdfast.core.engine import MOST_UNSETTLED, Engine
from holdfast.core.errors import StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.job import Job
from holdfast.core.ports import EventQuery
from holdfast.core.replay import Rebuild, outdated
from holdfast.stores.sqlite import SqliteStore
from tests.factories import NOON, a_counter, a_delivery, an_engine, an_event, collect, counted


def follow(_state: State, event: Event, _settings: object) -> list[Event]:
    return [Event(key="", kind="test.followed", at=event.at, session=event.session)]


def enqueue(_state: State, event: Event, _settings: object) -> list[Job]:
    return [Job(kind="look", dedupe=event.key, run_at=NOON)] if event.kind == "tool.finished" else []


def decide(state: State, event: Event, _settings: object) -> Decision:
    doc = state.get("count", event.session) or {"n": 0}
    return tell("test", f"{doc['n']} so far")


def busy(*, answers: bool) -> Feature:
    """Counts, lets follow, enqueues, and answers every hook or none."""
    return a_counter(follow=follow, enqueue=enqueue, decide=decide, may_answer=lambda _event, _settings: answers)


def asked() -> Delivery:
    return a_delivery(mode="ask")


class House:
    """A store in a folder, and engines on it one after the other."""

    def __init__(self, folder: Path, *, answers: bool) -> None:
        self.folder, self.feature = folder, busy(answers=answers)
        self.reports: list[tuple[str, Exception]] = []
        self.open()

    def open(self) -> None:
        self.store = SqliteStore(self.folder / "log.db")
        self.engine: Engine = an_engine(self.store, self.feature, report=collect(self.reports))

    def crash(self) -> None:
        """What memory held is gone."""
        self.store.close()
        self.open()

    def check(self, deliveries: int) -> None:
        self.engine.settle()
        reader = self.store.reader()
        found = reader.events(EventQuery(limit=10_000))
        kinds = [e.kind for e in found]
        assert kinds.count("tool.finished") == deliveries
        assert kinds.count("test.followed") == deliveries, "each is followed once"
        assert [e.seq for e in found] == list(range(1, len(found) + 1))
        assert len(reader.jobs(10_000)) == deliveries
        work = Rebuild((self.feature,), reader)
        work.read()
        assert work.differences() == []
        reader.close()


@pytest.fixture(params=[False, True], ids=["nobody answers", "answered"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path, answers=request.param)
    yield made
    made.store.close()


def test_an_answer_is_in_the_log_before_its_documents_are_there(house: House) -> None:
    (outcome,) = house.engine.answer([asked()])
    reader = house.store.reader()
    assert outcome.seq == 1
    assert reader.event(1) is not None
    assert reader.state(counted()) is None
    assert house.engine.behind
    house.engine.settle()
    assert reader.state(counted()) is not None
    assert not house.engine.behind
    house.check(1)


def test_what_was_answered_but_not_settled_is_made_good_at_the_next_start(house: House) -> None:
    house.engine.answer([asked(), asked()])
    house.crash()
    house.check(2)
    house.crash()
    house.check(2)


def test_an_answer_that_needs_the_state_sees_all_of_it(tmp_path: Path) -> None:
    house = House(tmp_path, answers=True)
    told = [house.engine.answer([asked()])[0].decision.contexts[0].text for _ in range(3)]
    # each delivery counts itself, what followed it, and the record of the answers before it
    assert told == ["2 so far", "5 so far", "8 so far"]
    house.check(3)


def test_whoever_comes_by_another_way_finds_everything_settled(house: House) -> None:
    house.engine.answer([asked()])
    house.engine.handle([an_event(kind="daemon.started")])
    assert not house.engine.behind
    house.crash()
    kinds = [e.kind for e in house.store.reader().events(EventQuery(limit=100)) if e.kind != "decision.made"]
    assert kinds == ["tool.finished", "test.followed", "daemon.started", "test.followed"]


def test_a_store_that_takes_nothing_now_is_asked_again_later(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise StoreUnavailable("no space")

    house.engine.answer([asked()])
    with monkeypatch.context() as patch:
        patch.setattr(house.store, "save", refuse)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                house.engine.settle()
        assert house.engine.behind
    house.check(1)


def test_what_cannot_be_settled_at_all_holds_nobody_up_and_is_rebuilt(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise ValueError("a mistake of ours")

    house.engine.answer([asked()])
    with monkeypatch.context() as patch:
        patch.setattr(house.store, "save", fail)
        house.engine.settle()
    assert [type(error) for _, error in house.reports] == [ValueError]
    assert not house.engine.behind
    assert outdated((house.feature,), house.store.reader()), "the next start makes the documents anew"
    assert house.engine.answer([asked()])[0].seq


def test_a_burst_is_settled_in_portions(tmp_path: Path) -> None:
    house = House(tmp_path, answers=False)
    for _ in range(MOST_UNSETTLED + 2):
        house.engine.answer([asked()])
    assert (house.store.reader().state(counted()) or {})["n"] >= MOST_UNSETTLED
    house.check(MOST_UNSETTLED + 2)


STEPS = st.lists(st.sampled_from(["answer", "answer", "two", "again", "handle", "settle", "crash"]), max_size=14)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans())
def test_any_order_of_answers_and_crashes_leaves_the_log_and_what_it_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], answers: bool
) -> None:
    folder = tmp_path_factory.mktemp("house")
    house, sent = House(folder, answers=answers), []
    for step in steps:
        if step == "crash":
            house.crash()
        elif step == "settle":
            house.engine.settle()
        else:
            fresh = [asked() for _ in range({"answer": 1, "two": 2, "again": 0, "handle": 1}[step])]
            (house.engine.handle if step == "handle" else house.engine.answer)(fresh or sent[-1:])
            sent += fresh
    house.check(len(sent))
    house.store.close()
    shutil.rmtree(folder)
