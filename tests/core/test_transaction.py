"""What follows from an event by the settings of the moment is on record with it, and replay needs no settings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.ports import EventQuery
from holdfast.core.replay import Rebuild
from holdfast.stores import open_store
from tests.factories import a_counter, a_delivery, an_engine, an_event, collect


def doubled(_state: State, event: Event, settings: Any) -> Iterable[Event]:
    yield an_event(kind="test.noted", session=event.session, data={"says": settings, "of": event.seq})


def an_echo(derive=doubled):
    return a_counter(name="echo", derive=derive)


def test_it_is_appended_once_in_the_same_transaction_and_not_followed_in_turn(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'log.db'}")
    engine = an_engine(store, an_echo(), settings=lambda _: {"echo": "today"})
    event = an_event()
    engine.handle([event, event])
    engine.handle([event])
    reader = store.reader()
    log = reader.events(EventQuery())
    assert [(e.kind, e.key) for e in log] == [("tool.finished", event.key), ("test.noted", f"{event.key}/echo.0")]
    assert log[1].data == {"says": "today", "of": 1}
    work = Rebuild([an_echo()], reader)
    work.read()
    assert work.differences() == []
    reader.close()
    store.close()


def test_it_holds_for_what_nobody_waits_for(tmp_path: Path) -> None:
    """A spooled delivery is decided by nobody, but what it means is recorded."""
    store = open_store(f"sqlite:///{tmp_path / 'log.db'}")
    an_engine(store, an_echo()).handle([a_delivery(mode="tell")])
    reader = store.reader()
    assert [e.kind for e in reader.events(EventQuery())] == ["tool.finished", "test.noted"]
    reader.close()
    store.close()


def test_every_room_sees_the_state_as_the_event_left_it(tmp_path: Path) -> None:
    """Not what follows for the rooms before it: their order must not matter."""

    def seen(state: State, event: Event, _settings: Any) -> Iterable[Event]:
        doc = state.get("count", event.session) or {"n": 0}
        yield an_event(kind="test.noted", session=event.session, data={"seen": doc["n"]})

    store = open_store(f"sqlite:///{tmp_path / 'log.db'}")
    an_engine(store, an_echo(), a_counter(derive=seen)).handle([an_event()])
    reader = store.reader()
    [told] = [e.data["seen"] for e in reader.events(EventQuery()) if "seen" in e.data]
    assert told == 2, "counted once by each of the two rooms, with nothing that followed"
    reader.close()
    store.close()


def test_an_error_is_reported_and_the_event_stays(tmp_path: Path) -> None:
    def broken(*_: Any) -> Iterable[Event]:
        raise RuntimeError

    store = open_store(f"sqlite:///{tmp_path / 'log.db'}")
    reported: list[tuple[str, Exception]] = []
    an_engine(store, an_echo(broken), report=collect(reported)).handle([an_event()])
    assert [name for name, _ in reported] == ["echo"]
    reader = store.reader()
    assert reader.head() == 1
    reader.close()
    store.close()
