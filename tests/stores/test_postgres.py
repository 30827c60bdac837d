"""What only PostgreSQL does: many writers, one order; a connection that may go away; schemas; its own planner."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from holdfast.core.errors import BadSettings, LeaseLost, SchemaTooNew, StoreMoved, StoreUnavailable
from holdfast.core.job import Job
from holdfast.core.ports import EventQuery, StateQuery
from holdfast.core.replay import Rebuild
from holdfast.stores import backup, open_reader, open_store, postgres, postgres_connection
from holdfast.stores.postgres import PostgresReader, PostgresStore
from holdfast.stores.rows import select_events
from tests.factories import a_counter, an_engine, an_event, counted, events
from tests.kit import wait_until
from tests.stores.proxy import DatabaseProxy, noting_locks

NEXT = backup.newest_version("postgres") + 1


@pytest.fixture
def url(new_schema: Callable[[], str]) -> str:
    return new_schema()


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], PostgresStore]]:
    stores: list[PostgresStore] = []

    def another(extra: str = "") -> PostgresStore:
        stores.append(PostgresStore(url + extra))
        return stores[-1]

    yield another
    for each in stores:
        each.close()


@pytest.fixture
def store(opened: Callable[[], PostgresStore]) -> PostgresStore:
    return opened()


@pytest.fixture
def reader(url: str, store: PostgresStore) -> Iterator[PostgresReader]:
    reader = PostgresReader(url)
    yield reader
    reader.close()


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as db:
        yield db


def reconnected(store: PostgresStore) -> None:
    """Another thread does that; whoever writes is told meanwhile that the server is not there."""

    def is_back() -> bool:
        try:
            return not store._link.db.closed
        except StoreUnavailable:
            return False

    wait_until(is_back, "the connection is back")


def setting(store: PostgresStore, name: str) -> str:
    return store._link.db.execute("select current_setting(%s)", (name,)).fetchone()[0]  # type: ignore[index]


def disconnect(admin: psycopg.Connection, link: postgres_connection.Link) -> None:
    admin.execute("select pg_terminate_backend(%s, 5000)", (link.db.info.backend_pid,))


# ---- many writers, one order


def test_an_engine_sees_what_another_wrote(opened, reader: PostgresReader):
    one, two = an_engine(opened()), an_engine(opened())
    for engine in (one, two, two, one, two):
        engine.handle([an_event()])
    assert (reader.state(counted()) or {})["n"] == 5


def test_a_reader_never_sees_a_number_before_all_below_it(opened, url: str):
    """Writers of different speed, some of which fail; whoever reads on from the last number seen misses nothing."""
    done = threading.Event()

    def write(seed: int) -> None:
        engine, dice = an_engine(opened()), random.Random(seed)
        for _ in range(60):
            try:
                engine.handle(events(dice.randrange(1, 6), session=f"s-{seed}"), also=lambda _s: linger(dice))
            except ZeroDivisionError:
                continue

    def linger(dice: random.Random) -> None:
        time.sleep(dice.random() * 0.002)
        if dice.random() < 0.1:
            raise ZeroDivisionError

    def tail() -> int:
        reader, last = PostgresReader(url), 0
        while not (done.is_set() and last == reader.head()):
            page = [e.seq for e in reader.events(EventQuery(after=last, limit=7))]
            assert page == list(range(last + 1, last + 1 + len(page)))
            last += len(page)
        reader.close()
        return last

    opened()
    with ThreadPoolExecutor(6) as pool:
        tails = [pool.submit(tail) for _ in range(2)]
        for writer in [pool.submit(write, seed) for seed in range(4)]:
            writer.result()
        done.set()
        assert len({each.result() for each in tails}) == 1


@pytest.mark.parametrize("level", ["serializable", "repeatable%20read"])
def test_a_stricter_default_isolation_changes_nothing(opened, reader: PostgresReader, level: str):
    strict = f"%20-c%20default_transaction_isolation%3D{level.replace('%20', '%5C%20')}"

    def write(_: int) -> None:
        engine = an_engine(opened(strict))
        for _ in range(25):
            engine.handle([an_event()])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert (reader.state(counted()) or {})["n"] == 100


def test_a_writer_does_not_wait_for_ever(opened, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(postgres_connection, "LOCK_WAIT_MS", 100)
    holder, waiter = opened(), opened()
    with holder.transaction(), pytest.raises(StoreUnavailable, match="lock timeout"), waiter.transaction():
        pass
    with waiter.transaction() as head:
        assert head == 0


def test_the_lock_is_not_held_while_a_daemon_reads_and_thinks(opened, reader: PostgresReader):
    """A slow one in the middle of its transaction keeps nobody waiting; it notices, and does its work anew."""
    slow, quick = opened(), an_engine(opened())
    with pytest.raises(StoreMoved), slow.transaction(locked=False) as head:
        assert slow.seqs_of_keys(["a"]) == {} and slow.load([counted()]) == {}
        quick.handle(events(2))
        slow.append([an_event(seq=head + 1)])
    assert reader.head() == 2
    with slow.transaction(locked=False) as head:
        slow.append([an_event(seq=head + 1, session="new-name")])
    assert reader.head() == 3


def overtake(store: PostgresStore, by: PostgresStore) -> None:
    """Another daemon writes between what it read and what it wrote."""
    with pytest.raises(StoreMoved, match="meanwhile"), store.transaction(locked=False) as head:
        with by.transaction(locked=False) as its_head:
            by.append([an_event(seq=its_head + 1)])
        store.append([an_event(seq=head + 1)])


def overtake_until_it_asks(store: PostgresStore, by: PostgresStore) -> None:
    for _ in range(postgres.TURN_AFTER + 1):
        overtake(store, by)


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "SHORTEST_TURN_MS", 60_000)
    monkeypatch.setattr(postgres, "LONGEST_TURN_MS", 60_000)


@pytest.mark.usefixtures("long_turns")
def test_the_others_hold_back_for_a_daemon_that_was_overtaken_often(opened):
    far, near = opened(), opened()
    overtake_until_it_asks(far, near)
    with ThreadPoolExecutor(1) as pool:
        holding_back = pool.submit(an_engine(near).handle, [an_event()])
        with far.transaction(locked=False) as head:
            far.append([an_event(seq=head + 1, session="far")])
        assert holding_back.result()[0].seq == head + 2
    overtake(far, near)
    assert near._db.execute("select count(*) from turns").fetchone() == (0,), "once is not often"


@pytest.mark.usefixtures("long_turns")
def test_who_was_overtaken_first_writes_first(opened):
    first, second, near = opened(), opened(), opened()
    overtake_until_it_asks(second, near)
    # As if it had joined the queue before: asking now, it would wait for the turn of the other.
    near._db.execute("insert into turns select %s, since - interval '1 second', until from turns", (first._writer,))
    with ThreadPoolExecutor(1) as pool:
        holding_back = pool.submit(an_engine(second).handle, [an_event()])
        with pytest.raises(TimeoutError):
            holding_back.result(timeout=0.3)
        with first.transaction(locked=False) as head:
            first.append([an_event(seq=head + 1, session="far")])
        assert holding_back.result()[0].seq == head + 2


def test_a_turn_that_nobody_uses_ends_by_itself(opened):
    gone, near = opened(), opened()
    overtake_until_it_asks(gone, near)
    assert near._db.execute("select owner from turns").fetchone() == (gone._writer,)
    assert an_engine(near).handle([an_event()])[0].seq == postgres.TURN_AFTER + 2


def test_a_far_daemon_is_not_overtaken_for_ever(url: str, opened, tmp_path: Path) -> None:
    near, stop = an_engine(opened()), threading.Event()

    def write() -> None:
        while not stop.is_set():
            near.handle([an_event(session="near")])

    with DatabaseProxy(url, tmp_path, 0.02) as proxy:
        far = an_engine(PostgresStore(proxy.url))
        writing = threading.Thread(target=write)
        writing.start()
        try:
            assert all(far.handle([an_event(session="far")])[0].seq for _ in range(3))
        finally:
            stop.set()
            writing.join()
            far.store.close()


def test_nobody_waits_for_the_way_to_a_daemon_that_has_the_lock(url: str, opened, tmp_path: Path) -> None:
    """While anything is on its way, the lock is free: also with a batch of many pieces, for the end of a job, and overtaken."""
    other = an_engine(opened())  # Tables are made under the lock.
    with DatabaseProxy(url, tmp_path) as proxy, noting_locks(proxy, url) as held:
        store = PostgresStore(proxy.url)
        engine = an_engine(store)
        engine.handle([an_event(session=f"s-{n}", body=b"b" * 3000) for n in range(1000)])
        with store.transaction(locked=False, assumed_head=0):
            store.enqueue([Job(kind="k", dedupe="d")], 1)
        with store.transaction(locked=False, assumed_head=0):
            (job,) = store.claim("us", 2, 60_000, 1, ["k"])
        other.handle([an_event()])
        engine.handle([an_event()], also=lambda it: it.finish(job.id, "us"))
        overtake(store, other.store)
        with store.transaction(locked=False, assumed_head=0):
            assert store.index_history([], "", "1")
        assert len(held) > 40 and not any(held)
        with store.transaction():
            store.set_meta("a", "b")
        assert any(held), "an erasure would keep it, so it would have been seen"
        store.close()


def test_the_end_of_a_job_that_another_has_by_now_is_not_recorded(opened, reader: PostgresReader):
    store = opened()
    with store.transaction(locked=False, assumed_head=0):
        store.enqueue([Job(kind="k", dedupe="d")], 1)
    with store.transaction(locked=False):
        (job,) = store.claim("us", 2, 10, 1, ["k"])
    with store.transaction(locked=False):
        assert store.claim("them", 50, 60_000, 1, ["k"])
    with pytest.raises(LeaseLost):
        an_engine(store).handle([an_event(session="erased")], also=lambda it: it.finish(job.id, "us"))
    assert reader.head() == 0
    with psycopg.connect(store.url) as db:
        names = db.execute("select name from names").fetchall()
    assert names == [], "what was erased meanwhile is not named again"
    an_engine(store).handle([an_event()], also=lambda it: it.finish(job.id, "them"))
    assert (reader.head(), reader.jobs()) == (1, [])


def test_a_rebuild_that_another_daemon_overtakes_has_its_events_too(opened, reader: PostgresReader):
    ours, theirs = an_engine(opened()), an_engine(opened())
    ours.handle(events(3))
    rebuild = Rebuild([a_counter(version=2)], reader)
    rebuild.read()
    overtakes = iter([True])

    def write(store: PostgresStore) -> None:
        rebuild.write(store, an_event())
        if next(overtakes, False):
            theirs.handle(events(2))

    ours.handle([], also=write)
    assert reader.state(counted())["n"] == 6, "three, two of the other, and the one that is written with it"


def test_a_job_that_was_asked_for_again_while_it_ran_runs_again(opened, reader: PostgresReader):
    engine = an_engine(opened())
    for _ in range(2):
        engine.handle([], also=lambda it: it.enqueue([Job(kind="k", dedupe="d")], 1))
        with engine.store.transaction(locked=False):
            engine.store.claim("us", 2, 60_000, 1, ["k"])
    engine.handle([], also=lambda it: it.finish(reader.jobs()[0]["id"], "us"))
    assert [(job["owner"], job["attempts"]) for job in reader.jobs()] == [("", 0)]
    with engine.store.transaction(locked=False):
        (again,) = engine.store.claim("us", 2, 60_000, 1, ["k"])
    engine.handle([], also=lambda it: it.retry(again.id, "us", 9, "why", False))
    assert [(job["owner"], job["run_at"], job["error"]) for job in reader.jobs()] == [("", 9, "why")]


def test_a_job_is_claimed_by_one_daemon_without_the_lock(opened):
    stores = [opened() for _ in range(4)]
    with stores[0].transaction():
        stores[0].enqueue([Job(kind="k", dedupe=f"d{n}") for n in range(40)], 1)

    def claim(store: PostgresStore) -> list[int]:
        taken: list[int] = []
        for _ in range(10):
            with store.transaction(locked=False):
                taken += [job.id for job in store.claim(f"owner-{id(store)}", 2, 60_000, 3, ["k"])]
        return taken

    with ThreadPoolExecutor(4) as pool:
        claimed = [job for some in pool.map(claim, stores) for job in some]
    assert len(claimed) == len(set(claimed)) == 40


def test_stores_in_other_schemas_are_not_waited_for(store: PostgresStore, new_schema):
    other = PostgresStore(new_schema())
    with store.transaction() as one, other.transaction() as two:
        assert (one, two) == (0, 0)
    other.close()


def test_a_large_batch_is_one_transaction(store: PostgresStore, reader: PostgresReader):
    outcomes = an_engine(store).handle([an_event(session=f"s-{n}", body=b"b") for n in range(5_000)])
    assert [o.seq for o in outcomes] == list(range(1, 5_001))
    assert len(list(reader.rows("counter"))) == 5_000


# ---- acknowledged means durable (P2)


@pytest.mark.parametrize(("asked", "used"), [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply",) * 2])
def test_a_commit_waits_for_the_disk_whatever_the_default(opened, asked: str, used: str):
    assert setting(opened(f"%20-c%20synchronous_commit%3D{asked}"), "synchronous_commit") == used


# ---- a connection that goes away


def test_a_lost_connection_is_said_and_replaced(store: PostgresStore, reader: PostgresReader, admin):
    engine = an_engine(store)
    engine.handle(events(2))
    disconnect(admin, store._link)
    with pytest.raises(StoreUnavailable):
        engine.handle(events(2))
    reconnected(store)
    assert [o.seq for o in engine.handle(events(2))] == [3, 4]
    assert (reader.state(counted()) or {})["n"] == 4


def test_a_hook_is_one_way_to_the_server_and_back(url: str, tmp_path: Path, monkeypatch) -> None:
    """Once its documents and names are known; where another daemon wrote meanwhile it reads once more."""
    with DatabaseProxy(url, tmp_path) as proxy:
        store = PostgresStore(proxy.url)
        engine, other = an_engine(store), an_engine(PostgresStore(url))
        for _ in range(2):
            engine.handle([an_event()])
        before = proxy.turns
        engine.handle([an_event()])
        assert proxy.turns - before == 1
        other.handle([an_event()])
        assert engine.handle([an_event()])[0].seq == 5
        other.handle([an_event()])
        before = proxy.turns
        assert engine.handle([an_event()])[0].seq == 7
        assert proxy.turns - before <= 3, "where others write too: the commit in vain, what is read, the commit"
        known = an_event(key="again")
        assert [engine.handle([known])[0].seq for _ in range(3)] == [8, 0, 0]
        store.close()
        other.store.close()


def test_a_server_that_is_silent_is_given_up_in_time_and_is_used_again(url: str, tmp_path: Path) -> None:
    with DatabaseProxy(url, tmp_path) as proxy:
        store = PostgresStore(proxy.url)
        engine = an_engine(store)
        engine.hurries = True
        engine.handle([an_event()])
        proxy.silent = True
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                engine.handle([an_event()])
        proxy.silent = False
        reconnected(store)
        assert engine.handle([an_event()])[0].seq == 2
        store.close()


def test_a_connection_lost_within_a_transaction_leaves_nothing(store: PostgresStore, reader: PostgresReader, admin):
    engine, batch = an_engine(store), events(3, session="half")
    with pytest.raises(StoreUnavailable):
        engine.handle(batch, also=lambda _store: disconnect(admin, store._link))
    assert reader.head() == 0
    reconnected(store)
    assert [o.seq for o in engine.handle(batch)] == [1, 2, 3]
    assert (reader.state(counted("half")) or {})["n"] == 3
    assert setting(store, "synchronous_commit") == "on"


def test_a_reader_comes_back_too(store: PostgresStore, reader: PostgresReader, admin):
    an_engine(store).handle(events(2))
    disconnect(admin, reader._link)
    with pytest.raises(StoreUnavailable):
        reader.head()
    assert reader.head() == 2


def test_names_are_learned_anew_after_a_reconnect(store: PostgresStore, admin):
    an_engine(store).handle([an_event(session="a")])
    disconnect(admin, store._link)
    with pytest.raises(StoreUnavailable), store.transaction():
        pass
    reconnected(store)
    with store.transaction():
        assert store._names == {}


@pytest.mark.parametrize("open_it", [open_store, open_reader])
def test_a_server_that_is_not_there(open_it):
    with pytest.raises(StoreUnavailable) as caught:
        open_it("postgresql://ada:secret@127.0.0.1:1/holdfast")
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_an_unknown_url_is_refused():
    with pytest.raises(BadSettings):
        open_store("mysql://somewhere")


# ---- schemas and migrations


def test_tables_live_in_the_schema_of_the_url_or_in_holdfast(postgres_url: str, admin):
    store = PostgresStore(postgres_url)
    try:
        found = admin.execute(
            "select schemaname from pg_tables where tablename = 'events' and schemaname !~ 'test_|grown'"
        )
        assert found.fetchall() == [("holdfast",)]
    finally:
        store.close()
        admin.execute("drop schema holdfast cascade")


@pytest.mark.parametrize(
    ("options", "schema"),
    [
        ("", "holdfast"),
        ("?options=-c%20search_path%3Dteam", "team"),
        ("?options=-csearch_path%3Dteam%20-c%20jit%3Doff", "team"),
        ("?options=-c%20jit%3Doff%20-c%20search_path%3D%22Team-A%22,public", "Team-A"),
    ],
)
def test_the_schema_is_read_from_the_url(options: str, schema: str):
    assert postgres_connection.schema_of(f"postgresql://h/d{options}") == schema


def test_a_reader_makes_nothing_and_writes_nothing(url: str, store: PostgresStore, reader: PostgresReader, admin):
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        reader._link.db.execute("delete from events")


def test_a_newer_schema_is_refused(url: str, store: PostgresStore):
    with store.transaction():
        store.set_meta("schema", "99")
    with pytest.raises(SchemaTooNew, match="schema 99"):
        open_store(url)


def test_a_newer_schema_is_refused_by_a_daemon_that_already_runs(opened):
    old, new = opened(), opened()
    an_engine(old).handle([an_event()])
    with new.transaction():
        new.set_meta("schema", "99")
    with pytest.raises(SchemaTooNew):
        an_engine(old).handle([an_event()])


def test_many_daemons_may_start_at_once(url: str):
    def start(_: int) -> int:
        store = PostgresStore(url)
        (outcome,) = an_engine(store).handle([an_event()])
        store.close()
        return outcome.seq

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(start, range(8))) == list(range(1, 9))


def test_a_migration_is_applied_once(opened, monkeypatch: pytest.MonkeyPatch):
    an_engine(opened()).handle([an_event()])
    more = [
        *backup.load_migrations("postgres"),
        (NEXT, "create table extra (x integer); insert into extra values (1)"),
    ]
    monkeypatch.setattr(backup, "load_migrations", lambda _dialect: more)
    for _ in range(2):
        store = opened()
        assert store._db.execute("select count(*) from extra").fetchone() == (1,)
        assert backup.postgres_version(store._db, store._link.schema) == NEXT
        with store.transaction() as head:
            assert head == 1


def test_a_failing_migration_changes_nothing(opened, monkeypatch: pytest.MonkeyPatch):
    store = opened()
    more = [
        *backup.load_migrations("postgres"),
        (NEXT, "create table extra (x integer); insert into nowhere values (1)"),
    ]
    monkeypatch.setattr(backup, "load_migrations", lambda _dialect: more)
    with pytest.raises(psycopg.errors.UndefinedTable):
        opened()
    assert store._db.execute("select to_regclass('extra')").fetchone() == (None,)
    assert backup.postgres_version(store._db, store._link.schema) == NEXT - 1


# ---- growth (P11)


@pytest.fixture(scope="module")
def grown(postgres_url: str) -> Iterator[PostgresReader]:
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20search_path%3Dgrown"
    store = PostgresStore(url)
    engine = an_engine(store)
    for start in range(0, 20_000, 500):
        engine.handle(
            [an_event(session=f"s-{n % 997}", project=f"/p{n % 7}", body=b"b") for n in range(start, start + 500)]
        )
    store._db.execute("vacuum analyze")
    reader = PostgresReader(url)
    yield reader
    reader.close()
    store._db.execute("drop schema grown cascade")
    store.close()


def plan(reader: PostgresReader, sql: bytes, values: list) -> str:
    return "\n".join(line for (line,) in reader._link.db.execute(b"explain " + sql, values))


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (EventQuery(newest=True), "Index Scan Backward using events_pkey"),
        (EventQuery(after=10_000), "Index Scan using events_pkey"),
        (EventQuery(session="s-5", newest=True), "events_by_session"),
        (EventQuery(session="s-5", before=9_000, newest=True), "events_by_session"),
        (EventQuery(project="/p5", after=9_000, bodies=True), "Index Scan using events_"),
    ],
)
def test_a_page_is_read_along_an_index(grown: PostgresReader, query: EventQuery, index: str):
    ids = dict(grown._all(postgres_connection.SQL["name_ids"], ["s-5", "/p5"]))
    wanted = select_events(query, ids.get, "%s")
    assert wanted
    found = plan(grown, wanted[0].encode(), wanted[1])
    assert index in found
    assert "Seq Scan" not in found


@pytest.mark.parametrize(
    "query",
    [
        StateQuery(kind="count", limit=5),
        StateQuery(kind="count", before=(1, "s-1"), limit=5),
        StateQuery(kind="count", project="/p5", limit=5),
        StateQuery(kind="count", status="odd", limit=5),
    ],
)
def test_a_list_is_read_along_an_index(grown: PostgresReader, query: StateQuery, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[bytes, list]] = []
    monkeypatch.setattr(grown, "_all", lambda sql, *values: asked.append((sql, list(values))) or [])
    grown.states(query)
    found = plan(grown, *asked[-1])
    assert "states_by_" in found
    assert "Seq Scan on states" not in found
    assert "Sort" not in found
