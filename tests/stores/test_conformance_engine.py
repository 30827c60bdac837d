"""The promises of DESIGN.md section 8 that an engine on a store must keep: P2, P4, P5."""

import dataclasses
import multiprocessing
import random
import time
from pathlib import Path

import pytest

from holdfast.core.decision import deny_decision
from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.ports import Doc, EventQuery, Reader, Ref, StateRow, Store
from holdfast.core.replay import Rebuild, document_at, outdated_features
from tests.factories import a_counter, a_delivery, an_engine, an_event, counted, events

from . import workers
from .conftest import Place

PROCESSES, UPDATES = 8, 40


# ---- P2: acknowledged means durable


@pytest.mark.fault
def test_whatever_was_acknowledged_survives_kill_9(place: Place):
    acknowledged: list[str] = []
    for number in range(10):
        acknowledged += _killed(place.path, f"round-{number}", random.random() * 0.12)
    reader = place.reader()
    assert set(reader.seqs_of_keys(acknowledged)) == set(acknowledged)
    assert [e.seq for e in reader.replay()] == list(range(1, reader.head() + 1))
    assert differences(reader, a_counter()) == []


def _killed(path: Path, prefix: str, after_s: float) -> list[str]:
    with workers.appending(path, prefix) as child:
        assert child.stdout
        lines = [child.stdout.readline()]
        time.sleep(after_s)
        child.kill()
        lines += child.stdout.readlines()
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


# ---- P4: no lost update


def test_no_update_is_lost_among_many_processes(place: Place):
    _through_one_writer(place)
    reader = place.reader()
    document = reader.state(counted("shared"))
    assert document and document["n"] == PROCESSES * UPDATES == reader.head()
    assert differences(reader, a_counter()) == []


def _through_one_writer(place: Place) -> None:
    engine, queue = place.an_engine(), multiprocessing.get_context("spawn").SimpleQueue()
    with workers.processes(workers.send, [(queue, n, UPDATES) for n in range(PROCESSES)]):
        taken = 0
        while taken < PROCESSES * UPDATES:
            batch = [queue.get()]
            while not queue.empty():
                batch.append(queue.get())
            engine.handle([an_event(key=key, session="shared") for key in batch])
            taken += len(batch)


# ---- P5: state = replay of the log


def _tools(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if event.get("poison"):
        raise ValueError("a reducer may fail")
    if event.tool == "Read":
        return doc
    return {**(doc or {}), event.tool: (doc or {}).get(event.tool, 0) + 1, "project": ref.key}


TOOLS = Feature(name="tools", keys=lambda e: [Ref("tools", e.project), Ref("tools", "all")], reduce=_tools)


def some_work(store: Store, count: int = 200) -> list[Event]:
    engine = an_engine(store, a_counter(), TOOLS, report=lambda *_: None)
    dice, done = random.Random(7), []
    while len(done) < count:
        batch = [
            an_event(
                session=f"s-{dice.randrange(5)}",
                project=dice.choice(["/x", "/y", ""]),
                tool=dice.choice(["Read", "Edit", "Bash"]),
                data={"poison": dice.random() < 0.1},
            )
            for _ in range(dice.randrange(1, 9))
        ]
        engine.handle(batch + batch[:1])
        done += batch
    return done


def differences(reader: Reader, *features: Feature) -> list[str]:
    rebuild = Rebuild(features, reader)
    rebuild.read()
    return rebuild.differences()


def test_state_is_the_replay_of_the_log(store: Store, reader: Reader):
    some_work(store)
    assert differences(reader, a_counter(), TOOLS) == []
    assert reader.state(Ref("tools", "all"))


def test_a_difference_is_found(store: Store, reader: Reader):
    some_work(store)
    with store.transaction():
        store.save([StateRow(counted("s-1"), "counter", 1, "", "", 0, b'{"n":0}')])
        store.save([StateRow(counted("invented"), "counter", 1, "", "", 0, b"{}")])
    assert differences(reader, a_counter()) == ["counter: count invented differs", "counter: count s-1 differs"]
    with store.transaction():
        store.drop_states("counter")
    assert len(differences(reader, a_counter())) == 5


def test_new_rules_rebuild_the_state_from_the_log(store: Store, reader: Reader):
    some_work(store)
    double = a_counter(version=2, reduce=lambda doc, event, _ref: {"n": (doc or {"n": 0})["n"] + 2})
    before = {row.ref: row.doc for row in reader.rows("tools")}
    rebuild = Rebuild([double], reader)
    rebuild.read()
    with store.transaction():
        rebuild.write(store)
    assert outdated_features([double, TOOLS], reader) == [TOOLS]
    assert differences(reader, double) == []
    assert {row.version for row in reader.rows("counter")} == {2}
    assert {row.ref: row.doc for row in reader.rows("tools")} == before


def test_a_rebuild_finds_events_that_came_meanwhile(store: Store, reader: Reader):
    engine, feature = an_engine(store), dataclasses.replace(a_counter(), version=2)
    engine.handle(events(10))
    rebuild = Rebuild([feature], reader)
    rebuild.read()
    engine.handle(events(5))
    with store.transaction():
        rebuild.write(store)
    assert reader.state(counted())["n"] == 15  # type: ignore[index]


def test_a_document_is_shown_as_it_was(store: Store, reader: Reader):
    engine, feature = an_engine(store), a_counter()
    was: dict[int, Doc | None] = {}
    for event in events(12) + events(3, session="other") + events(4):
        (outcome,) = engine.handle([event])
        was[outcome.seq] = reader.state(counted())
    assert {seq: document_at(feature, reader, counted(), seq) for seq in was} == was
    assert document_at(feature, reader, counted("other"), 12) is None


def test_deciding_writes_its_record_into_the_same_log(store: Store, reader: Reader):
    strict = a_counter(
        decide=lambda state, event, _settings: deny_decision(f"n={state.get('count', event.session)['n']}")
    )
    engine = an_engine(store, strict)
    delivery = a_delivery(mode="ask")
    first, again = engine.handle([delivery, delivery])
    assert (first.reply, again.seq) == (b"deny; n=1", 0)
    assert [e.kind for e in reader.events(EventQuery())] == ["tool.finished", "decision.made"]
    assert differences(reader, strict) == []
