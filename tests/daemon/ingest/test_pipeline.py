"""An answer leaves when what led to it is on disk; the store has it a moment later, whatever happens in between."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.agent import Agent, Hook
from holdfast.core.decision import Decision, Delivery, context_decision
from holdfast.core.engine import Engine, Outcome
from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.job import Job
from holdfast.core.ports import EventQuery
from holdfast.core.replay import Rebuild
from holdfast.daemon.ingest.journal import Journal, JournalEntry
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.ingest.pipeline import MOST_UNAPPLIED, PORTION, IngestPipeline
from holdfast.daemon.ingest.store_guard import StoreGuard
from holdfast.paths import Paths
from holdfast.stores.sqlite import SqliteStore
from tests.factories import NOON, a_counter, a_delivery, an_engine, an_event, collect, counted

QUIET, ASKED = "PostToolUse", "PreToolUse"


def derive(_state: State, event: Event, _settings: object) -> list[Event]:
    return [Event(key="", kind="test.followed", at=event.at, session=event.session)]


def enqueue(_state: State, event: Event, _settings: object) -> list[Job]:
    return [Job(kind="look", dedupe=event.key, run_at=NOON)] if event.kind.startswith("tool.") else []


def decide(state: State, event: Event, _settings: object) -> Decision | None:
    doc = state.get("count", event.session) or {"n": 0}
    return context_decision("test", f"{doc['n']} so far") if event.kind == "tool.started" else None


def a_feature() -> Feature:
    """Counts, lets follow, enqueues, and has something to say to every tool that starts."""
    return a_counter(
        derive=derive, enqueue=enqueue, decide=decide, can_decide=lambda kind, _settings: kind == "tool.started"
    )


def read(delivery: Delivery) -> Event:
    return an_event(key=delivery.key, kind={QUIET: "tool.finished", ASKED: "tool.started"}[delivery.event])


AGENT = Agent(
    name="claude-code",
    title="",
    hooks=(Hook(QUIET, "tool.finished"), Hook(ASKED, "tool.started")),
    read=lambda delivery, _payload: read(delivery),
    write=lambda _event, _decision: b"",
    recognise=lambda _delivery, _payload: True,
)


class Harness:
    """A store and a journal in a folder, and daemons on them one after the other."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths(folder / "state").prepare()
        self.feature = a_feature()
        self.reports: list[tuple[str, Exception]] = []
        self.open()

    def open(self, mended: Callable[[StoreDamaged], bool] = lambda _error: False) -> None:
        self.store = SqliteStore(self.paths.database)
        self.engine: Engine = an_engine(self.store, self.feature, read=read, report=collect(self.reports))
        self.store_guard = StoreGuard(lambda: self.engine, Log(self.paths.log_file), mended)
        self.journal = Journal(self.paths.journal)
        self.pipeline = IngestPipeline(lambda: self.engine, {"claude-code": AGENT}, self.store_guard, self.journal)
        self.pipeline.replay_journal()

    def crash(self) -> None:
        """What memory held is gone."""
        self.store.close()
        self.open()

    def power_cut(self, store_as_it_was: Path) -> None:
        """What SQLite had not synced is gone too; the journal, which was, is not."""
        self.store.close()
        for file in self.paths.state.glob("holdfast.db*"):
            file.unlink()
        for file in store_as_it_was.iterdir():
            shutil.copy(file, self.paths.state)
        self.open()

    def synced_store(self, to: Path) -> Path:
        to.mkdir()
        for file in self.paths.state.glob("holdfast.db*"):
            shutil.copy(file, to)
        return to

    def take(self, *events: str) -> list[Outcome]:
        return self.again([a_delivery(event=event, mode="ask") for event in events])

    def again(self, deliveries: Sequence[Delivery]) -> list[Outcome]:
        outcomes = self.pipeline.accept(deliveries)
        assert outcomes is not None
        return outcomes

    def check(self, deliveries: int) -> None:
        self.pipeline.flush()
        reader = self.store.reader()
        found = reader.events(EventQuery(limit=10_000))
        kinds = [e.kind for e in found]
        assert kinds.count("tool.finished") + kinds.count("tool.started") == deliveries
        assert kinds.count("test.followed") == deliveries, "each is followed once"
        assert kinds.count("decision.made") == kinds.count("tool.started"), "what was answered is on record"
        assert [e.seq for e in found] == list(range(1, len(found) + 1))
        assert len(reader.jobs(10_000)) == deliveries
        work = Rebuild((self.feature,), reader)
        work.read()
        assert work.differences() == []
        reader.close()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    made = Harness(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("event", [QUIET, ASKED])
def test_an_answer_is_on_disk_before_it_is_in_the_store(harness: Harness, event: str) -> None:
    harness.take(event)
    assert len(Journal(harness.paths.journal).pending_entries()) == 1
    assert harness.store.reader().head() == 0
    assert harness.pipeline.has_pending
    harness.check(1)
    assert not harness.pipeline.has_pending


@pytest.mark.parametrize("body", [b"a private payload", b"a payload"])
def test_what_a_feature_takes_out_of_a_payload_is_never_journaled(harness: Harness, body: bytes) -> None:
    """Such a delivery is applied first, and its events are journaled; any other is journaled as it came."""
    redacts = {"enriches": frozenset(("tool.finished",)), "enrich": lambda *_: False, "redacts": is_private}
    harness.engine.features = (dataclasses.replace(harness.feature, **redacts),)
    harness.again([a_delivery(event=QUIET, mode="ask", body=body)])
    (entry,) = Journal(harness.paths.journal).pending_entries()
    assert (entry.delivery is None, bool(entry.events)) == (is_private(body), is_private(body))
    assert (body in harness.paths.journal.read_bytes()) != is_private(body)
    harness.crash()
    harness.check(1)


def is_private(body: bytes, _settings: object = None) -> bool:
    return b"private" in body


@pytest.mark.parametrize("event", [QUIET, ASKED])
def test_what_was_answered_but_not_written_is_made_good_at_the_next_start(harness: Harness, event: str) -> None:
    harness.take(event)
    harness.take(event, event)
    harness.crash()
    harness.check(3)
    harness.crash()
    harness.check(3)


@pytest.mark.parametrize("event", [QUIET, ASKED])
def test_a_power_cut_takes_what_the_store_had_not_synced_and_the_journal_gives_it_back(
    harness: Harness, tmp_path: Path, event: str
) -> None:
    """P2. The answers, with their numbers, are just those that were given."""
    harness.take(QUIET)
    harness.pipeline.commit_events([])
    before = harness.synced_store(tmp_path / "synced")
    answers = harness.take(event), harness.take(event)
    harness.check(3)
    seen = [(e.seq, e.key, e.kind) for e in harness.store.reader().events(EventQuery(limit=100))]
    harness.power_cut(before)
    harness.check(3)
    assert [(e.seq, e.key, e.kind) for e in harness.store.reader().events(EventQuery(limit=100))] == seen
    assert answers


def test_an_answer_that_needs_the_state_sees_all_of_it(harness: Harness) -> None:
    """Each counts itself, what followed it, and the records of the answers before it."""
    harness.take(QUIET)
    told = [harness.take(ASKED)[0].decision.contexts[0].text for _ in range(2)]
    assert told == ["4 so far", "7 so far"]
    harness.check(3)


def test_whoever_comes_by_another_way_finds_everything_written(harness: Harness) -> None:
    harness.take(ASKED)
    harness.pipeline.commit_events([an_event(kind="daemon.started")])
    kinds = [e.kind for e in harness.store.reader().events(EventQuery(limit=100))]
    assert kinds == ["tool.started", "test.followed", "decision.made", "daemon.started", "test.followed"]


@pytest.mark.parametrize("event", [QUIET, ASKED])
def test_damage_met_while_promises_are_made_good_is_mended_and_they_are_kept(
    harness: Harness, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7; found by the campaign: a start that only meets the damage here failed again and again."""
    harness.take(event)
    harness.store.close()
    sound, damaged = Engine._begin, [StoreDamaged("malformed")]

    def begin(engine: Engine) -> None:
        if damaged:
            raise damaged[0]
        sound(engine)

    def mended(_error: StoreDamaged) -> bool:
        damaged.clear()
        return True

    monkeypatch.setattr(Engine, "_begin", begin)
    harness.open(mended)
    harness.check(1)


@pytest.mark.parametrize("event", [QUIET, ASKED])
def test_a_delivery_twice_is_one_event(harness: Harness, event: str) -> None:
    twice = [a_delivery(event=event, mode="ask")]
    harness.again(twice)
    harness.again([*twice, *twice])
    harness.check(1)


@pytest.mark.parametrize("event", [QUIET, ASKED])
@pytest.mark.parametrize("error", [StoreUnavailable("no space"), StoreDamaged("malformed"), ValueError("ours")])
def test_a_store_that_takes_nothing_now_gets_it_later(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception, event: str
) -> None:
    def refuse(*_args: object) -> None:
        raise error

    harness.take(event)
    with monkeypatch.context() as patch:
        patch.setattr(harness.store, "append", refuse)
        for _ in range(2):
            harness.pipeline.flush()
        assert Journal(harness.paths.journal).pending_entries(), "it is still on disk"
    harness.pipeline.retry_held()
    kinds = [e.kind for e in harness.store.reader().events(EventQuery(limit=100))]
    assert kinds[:2] == [{QUIET: "tool.finished", ASKED: "tool.started"}[event], "test.followed"]


@pytest.mark.parametrize("event", [QUIET, ASKED])
def test_a_daemon_that_begins_while_the_store_takes_nothing_replays_the_journal_later(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    harness.take(event)

    def refuse(*_args: object) -> None:
        raise StoreUnavailable("no space")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "append", refuse)
        harness.crash()
        harness.pipeline.retry_held()
    assert not harness.store.reader().head()
    harness.pipeline.retry_held()
    harness.check(1)


def test_a_burst_is_written_in_portions(harness: Harness) -> None:
    for _ in range(MOST_UNAPPLIED + 2):
        harness.take(QUIET)
    assert (harness.store.reader().state(counted()) or {})["n"] == 2 * PORTION, "each with what followed, and no more"
    harness.check(MOST_UNAPPLIED + 2)


def test_a_full_journal_is_written_over_once_the_store_has_it_all(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.journal, "_size", 4096)
    for _ in range(40):
        harness.take(QUIET)
        harness.take(ASKED)
        harness.pipeline.flush()
    assert harness.journal._at < 4096
    harness.crash()
    harness.check(80)


def test_where_no_journal_can_be_written_hooks_wait_for_the_store(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "journal").mkdir()
    harness = Harness(tmp_path)
    harness.take(QUIET)
    assert harness.take(ASKED)[0].seq == 3
    assert harness.store.reader().head() == harness.engine.durable == 5, "nothing else keeps it through a power cut"
    harness.check(2)


def test_what_is_torn_or_foreign_ends_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.open()
    journal.grow()
    kept = [JournalEntry(a_delivery()) for _ in range(3)]
    assert journal.add(kept)
    whole = journal._at
    assert journal.pending_entries() == kept
    content = bytearray((tmp_path / "journal").read_bytes())
    for at in (whole - 1, whole // 2, 0):
        content[at] ^= 0xFF
        (tmp_path / "journal").write_bytes(content)
        assert len(journal.pending_entries()) < 3
        assert journal.pending_entries() == kept[: len(journal.pending_entries())]
    journal.clear()
    assert journal.add(kept[:1])
    assert Journal(tmp_path / "journal").pending_entries() == kept[:1], "what lies behind is of another lap"
    journal.wipe()
    assert journal.pending_entries() == []
    assert not any((tmp_path / "journal").read_bytes())


STEPS = st.lists(st.sampled_from([QUIET, QUIET, ASKED, ASKED, "both", "again", "flush", "crash"]), max_size=14)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_any_order_of_answers_and_crashes_leaves_the_log_and_what_it_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("ingest")
    harness, sent = Harness(folder), []
    for step in steps:
        if step == "crash":
            harness.crash()
        elif step == "flush":
            harness.pipeline.flush()
        else:
            events = {"both": [QUIET, ASKED, QUIET], "again": []}.get(step, [step])
            fresh = [a_delivery(event=event, mode="ask") for event in events]
            harness.again(fresh or sent[-1:])
            sent += fresh
    harness.check(len(sent))
    harness.store.close()
    shutil.rmtree(folder)
