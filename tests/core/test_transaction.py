"""What follows from an event by the settings of the moment is on record with it, and replay needs no settings."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from holdfast.app import build_app
from holdfast.core.decision import Decision, context_decision, deny_decision
from holdfast.core.document import DocumentType
from holdfast.core.errors import StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.job import Job
from holdfast.core.ports import Doc, EventQuery, Ref, StateQuery
from holdfast.core.replay import Rebuild
from holdfast.paths import Paths
from holdfast.stores.sqlite import SqliteStore
from tests.factories import NOON, a_counter, a_delivery, a_job, an_engine, an_event, collect, fail


def doubled(_state: State, event: Event, settings: Any) -> Iterable[Event]:
    yield an_event(kind="test.noted", session=event.session, data={"says": settings, "of": event.seq})


def an_echo(derive=doubled):
    return a_counter(name="echo", derive=derive)


def test_it_is_appended_once_in_the_same_transaction_and_not_followed_in_turn(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
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
    store = SqliteStore(tmp_path / "log.db")
    an_engine(store, an_echo()).handle([a_delivery(mode="tell")])
    reader = store.reader()
    assert [e.kind for e in reader.events(EventQuery())] == ["tool.finished", "test.noted"]
    reader.close()
    store.close()


def test_every_feature_sees_the_state_as_the_event_left_it(tmp_path: Path) -> None:
    """Not what follows for the rooms before it: their order must not matter."""

    def seen(state: State, event: Event, _settings: Any) -> Iterable[Event]:
        doc = state.get("count", event.session) or {"n": 0}
        yield an_event(kind="test.noted", session=event.session, data={"seen": doc["n"]})

    store = SqliteStore(tmp_path / "log.db")
    an_engine(store, an_echo(), a_counter(derive=seen)).handle([an_event()])
    reader = store.reader()
    [told] = [e.data["seen"] for e in reader.events(EventQuery()) if "seen" in e.data]
    assert told == 2, "counted once by each of the two rooms, with nothing that followed"
    reader.close()
    store.close()


def test_an_error_is_reported_and_the_event_stays(tmp_path: Path) -> None:
    def broken(*_: Any) -> Iterable[Event]:
        raise RuntimeError

    store = SqliteStore(tmp_path / "log.db")
    reported: list[tuple[str, Exception]] = []
    an_engine(store, an_echo(broken), report=collect(reported)).handle([an_event()])
    assert [name for name, _ in reported] == ["echo"]
    reader = store.reader()
    assert reader.head() == 1
    reader.close()
    store.close()


# ── an answer waits only for the documents it is decided by ──────────────────────────────────────────────────────────

COUNT_OF = {name: DocumentType(f"count.{name}", dict) for name in ("asked", "unasked")}


def a_keeper(name: str, reduced: list[str], **given: Any) -> Feature:
    """Counts into documents of its own, and notes when it does."""

    def count(doc: Doc | None, event: Event, _ref: Ref) -> Doc:
        reduced.append(f"{name} {event.kind}")
        return {"n": (doc or {}).get("n", 0) + 1}

    kind = COUNT_OF[name]
    return a_counter(name=name, keys=lambda event: [kind.ref(event.session)], reduce=count, documents=(kind,), **given)


def deny_by_count(state: State, event: Event, _settings: Any) -> Decision:
    return deny_decision(f"it is call {COUNT_OF['asked'].get(state, event.session)['n']}")


def test_what_no_decision_asks_for_is_reduced_after_the_answer(tmp_path: Path) -> None:
    reduced: list[str] = []
    store = SqliteStore(tmp_path / "log.db")
    engine = an_engine(store, a_keeper("asked", reduced, decide=deny_by_count), a_keeper("unasked", reduced))
    for n in (1, 3):
        transaction, [outcome] = engine.apply([a_delivery(mode="ask")])
        assert outcome.reply == f"deny; it is call {n}".encode(), (
            "with this call, and with the record of the answer before"
        )
        assert reduced == ["asked tool.finished"]
        engine.commit(transaction, durable=True)
        assert sorted(reduced) == [
            f"{name} {kind}" for name in ("asked", "unasked") for kind in ("decision.made", "tool.finished")
        ]
        reduced.clear()
    reader = store.reader()
    assert [COUNT_OF[name].load(reader, "s-1") for name in ("asked", "unasked")] == [{"n": 4}, {"n": 4}]
    reader.close()
    store.close()


def test_a_refused_call_is_shown_to_those_who_may_refuse_it_too_and_to_nobody_who_only_informs(tmp_path: Path) -> None:
    asked: list[str] = []

    def a_decider(name: str, decision: Decision, **given: Any) -> Feature:
        def decide(_state: State, _event: Event, _settings: Any) -> Decision:
            asked.append(name)
            return decision

        return a_counter(name=name, decide=decide, **given)

    store = SqliteStore(tmp_path / "log.db")
    engine = an_engine(
        store,
        a_decider("first", deny_decision("no"), refuses=lambda _settings: True),
        a_decider("informs", context_decision("x", "by the way")),
        a_decider("second", deny_decision("neither"), refuses=lambda _settings: True),
        read=lambda delivery: an_event(key=delivery.key, kind="tool.started"),
    )
    _, [outcome] = engine.apply([a_delivery(mode="ask")])
    assert asked == ["first", "second"]
    assert outcome.decision.reasons == ("no", "neither")
    store.close()


def test_what_a_reply_has_no_place_for_waits_and_is_recorded_only_where_it_is_told(tmp_path: Path) -> None:
    """A context waits for the next event of its own conversation; a refusal without a place is recorded as undelivered."""
    decisions = {"tool.started": [context_decision("x", "mind this"), deny_decision("no")], "tool.finished": [None]}
    told: list[Decision] = []

    def carried(event: Event, decision: Decision) -> Decision:
        if event.kind == "tool.started":
            decision = replace(decision, contexts=(), verdict="none", reasons=())
        told.append(decision)
        return decision

    store = SqliteStore(tmp_path / "log.db")
    engine = an_engine(
        store,
        a_counter(name="decider", decide=lambda _state, event, _settings: decisions[event.kind].pop(0)),
        read=lambda delivery: an_event(key=delivery.key, kind=delivery.event, data={"lane": delivery.cwd}),
        carried=carried,
    )
    decisions["tool.finished"] *= 3
    for kind, lane in [
        ("tool.started", ""),
        ("tool.finished", "sub"),
        ("tool.finished", ""),
        ("tool.finished", ""),
        ("tool.started", ""),
    ]:
        engine.handle([a_delivery(event=kind, cwd=lane, mode="ask")])
    assert [[one.text for one in decision.contexts] for decision in told] == [[], [], ["mind this"], [], []]
    reader = store.reader()
    made = [(e.kind, e.data.verdict) for e in reader.events(EventQuery()) if not e.kind.startswith("tool.")]
    assert made == [("decision.made", "none"), ("answer.undelivered", "deny")]
    reader.close()
    store.close()


def test_a_store_that_fails_after_the_answer_makes_nothing_count_twice(tmp_path: Path) -> None:
    reduced: list[str] = []
    store = SqliteStore(tmp_path / "log.db")
    engine = an_engine(store, a_keeper("asked", reduced, decide=deny_by_count), a_keeper("unasked", reduced))
    transaction, _ = engine.apply([a_delivery(mode="ask")])
    load, failures = store.load, iter([StoreUnavailable("the disk is full")])

    def failing(refs: Sequence[Ref]) -> Mapping[Ref, bytes]:
        if error := next(failures, None):
            raise error
        return load(refs)

    with mock.patch.object(store, "load", failing), pytest.raises(StoreUnavailable):
        engine.commit(transaction, durable=True)
    engine.commit(transaction, durable=True)
    reader = store.reader()
    assert [COUNT_OF[name].load(reader, "s-1") for name in ("asked", "unasked")] == [{"n": 2}, {"n": 2}]
    reader.close()
    store.close()


def test_jobs_are_asked_for_once_each_in_the_order_of_the_events(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def enqueue(state: State, event: Event, _settings: Any) -> Iterable[Job]:
        seen.append((event.kind, COUNT_OF["asked"].get(state, event.session)["n"]))
        yield a_job(dedupe=event.kind)

    store = SqliteStore(tmp_path / "log.db")
    engine = an_engine(store, a_keeper("asked", [], decide=deny_by_count, enqueue=enqueue))
    transaction, _ = engine.apply([a_delivery(mode="ask")])
    engine.commit(transaction, durable=True)
    assert seen == [("tool.finished", 1), ("decision.made", 2)], "each sees the state as its event left it"
    assert len(transaction.jobs) == 2
    store.close()


def test_answered_first_or_written_at_once_the_state_is_the_same(tmp_path: Path) -> None:
    """With all features: lazily applied and eagerly applied, the same deliveries leave the same documents."""
    rows = [_documents_of(tmp_path / way, lazily=way == "lazily") for way in ("lazily", "eagerly")]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 5


def _documents_of(folder: Path, *, lazily: bool) -> dict[str, Any]:
    paths = Paths(folder)
    paths.run.mkdir(parents=True)
    app = build_app(paths, report=fail)
    try:
        for n, (hook, more) in enumerate(A_SESSION):
            body = {"session_id": "s-1", "cwd": "/nowhere/at/all", "hook_event_name": hook, **more}
            delivery = a_delivery(key=f"key{n:03}", event=hook, mode="ask", at=NOON + n * 1000, cwd="/nowhere/at/all",
                                  body=json.dumps(body).encode())  # fmt: skip
            if lazily:
                app.engine.commit(app.engine.apply([delivery])[0], durable=True)
            else:
                app.engine.handle([delivery])
        with closing(app.store.reader()) as reader:
            kinds = [kind.kind for feature in app.features for kind in feature.documents]
            return {
                f"{kind}/{key}": json.loads(raw)
                for kind in kinds
                for key, raw in reader.documents(StateQuery(kind=kind, limit=100))
            }
    finally:
        app.store.close()


EDIT = {"tool_name": "Edit", "tool_input": {"file_path": "/nowhere/at/all/a.py", "old_string": "a", "new_string": "b"}}
A_SESSION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SessionStart", {"source": "startup"}),
    ("UserPromptSubmit", {"prompt": "Always use tabs here. Mend the parser."}),
    ("PreToolUse", {**EDIT, "tool_use_id": "t1"}),
    ("PostToolUse", {**EDIT, "tool_use_id": "t1", "tool_response": {"filePath": "a.py"}}),
    ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "tool_use_id": "t2"}),
    ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "tool_use_id": "t2",
                     "tool_response": {"stdout": "3 passed in 0.1s", "stderr": "", "interrupted": False}}),
    ("Stop", {"last_assistant_message": "Done. Next: the printer."}),
    ("SessionEnd", {"reason": "exit"}),
)  # fmt: skip
