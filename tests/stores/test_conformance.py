"""What every store promises, on every engine: the log, exactly once, all or nothing, pages, documents."""

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from holdfast.core.event import BODY_LIMIT, Event
from holdfast.core.kinds import KINDS, UPCASTERS, Payload, event_kind
from holdfast.core.ports import EventQuery, Reader, Ref, StateQuery, Store
from tests.factories import NOON, a_job, a_row, an_engine, an_event, counted, events

from .conftest import Place


class Stop(Exception):
    """Raised inside a transaction to undo it."""


def append(store: Store, *given: Event) -> list[Event]:
    """Numbers them after the head, as the engine does."""
    with store.transaction() as head:
        numbered = [msgspec.structs.replace(e, seq=head + n) for n, e in enumerate(given, 1)]
        store.append(numbered)
    return numbered


# ---- the log


def test_events_come_back_as_they_went_in(store: Store, reader: Reader):
    written = append(
        store,
        an_event(data={"text": "naïve 日本 🦀\u2028", "nested": {"list": [1, 2.5, None, True]}, "big": 2**70}),
        an_event(data={"nul": "a\x00b", "key\x00": 1}, body=b"\x00\xff not utf-8 \x00"),
        an_event(body=b"x" * BODY_LIMIT),
        Event(key="bare", kind="unknown", at=0),
        an_event(session="s" * 512, project="/prøject", tool="mcp__a__b"),
    )
    assert reader.events(EventQuery(bodies=True)) == written
    assert [reader.event(e.seq) for e in written] == written


def test_names_no_text_column_would_take_are_kept_apart(store: Store, reader: Reader):
    one, two = append(store, an_event(session="a\x00b", key="k\x00"), an_event(session="a\x1b0000b", key="k\x1b0000"))
    assert reader.events(EventQuery(session="a\x00b")) == [one]
    assert reader.events(EventQuery(session="a\x1b0000b")) == [two]
    assert reader.seqs_of_keys(["k\x00", "k\x1b0000"]) == {"k\x00": 1, "k\x1b0000": 2}


def test_the_kept_body_may_be_shorter_than_the_whole_was(store: Store, reader: Reader):
    append(store, an_event(body=b"cut", body_size=10_000_000, body_hash="of-the-whole"))
    read = reader.event(1)
    assert read and (read.body, read.body_size, read.body_hash) == (b"cut", 10_000_000, "of-the-whole")


def test_bodies_are_read_only_when_asked_for(store: Store, reader: Reader):
    append(store, an_event(body=b"payload"))
    (event,) = reader.events(EventQuery())
    assert (event.body, event.body_size, event.body_hash) == (b"", 0, "")


@event_kind("test.greeted", version=2)
class Greeted(Payload):
    """Somebody said hello."""

    text: str = ""


def test_old_events_read_as_today(store: Store, reader: Reader, monkeypatch: pytest.MonkeyPatch):
    """The upcaster runs on what an older version wrote, and only on that."""
    monkeypatch.setitem(UPCASTERS, ("test.greeted", 1), lambda fields: {"text": fields["txt"] + "!"})
    monkeypatch.setattr(Greeted, "VERSION", 1)
    monkeypatch.setitem(KINDS, "test.greeted", None)
    append(store, an_event(kind="test.greeted", data={"txt": "hi"}))
    monkeypatch.setitem(KINDS, "test.greeted", Greeted)
    monkeypatch.setattr(Greeted, "VERSION", 2)
    append(store, an_event(kind="test.greeted", data={"text": "ho"}))
    assert [e.data for e in reader.events(EventQuery())] == [Greeted(text="hi!"), Greeted(text="ho")]


def test_an_empty_store_answers(reader: Reader):
    assert reader.head() == 0
    assert reader.events(EventQuery()) == []
    assert reader.event(1) is None
    assert reader.state(Ref("session", "s-1")) is None
    assert reader.seqs_of_keys(["nobody"]) == {}
    assert reader.meta("nothing") == ""
    assert reader.jobs() == []
    assert reader.counts() == {"events": 0, "jobs": 0, "dead_jobs": 0, "oldest_body": 0}


def test_marks_are_the_first_and_every_so_manieth(store: Store, reader: Reader):
    append(store, *(an_event(session=f"s-{n % 2}", kind="note.added" if n % 3 else "turn.ended") for n in range(30)))
    for query in (EventQuery(), EventQuery(session="s-1"), EventQuery(session="s-1", kinds=("turn.ended",), after=7)):
        every = [e.seq for e in reader.events(query)]
        assert reader.marks(query, 4) == every[::4]
    assert reader.marks(EventQuery(session="nobody"), 4) == []


def test_head_and_counts_follow(store: Store, reader: Reader):
    append(store, an_event(), an_event(body=b"x"), an_event(body=b"y"))
    with store.transaction() as head:
        store.enqueue([a_job(), a_job()], NOON)
        (first, _) = store.claim("me", NOON, 1000, 5, ["index"])
        store.retry(first.id, "me", NOON, "broken", dead=True)
    assert (head, reader.head()) == (3, 3)
    assert reader.counts() == {"events": 3, "jobs": 1, "dead_jobs": 1, "oldest_body": 2}


# ---- exactly once (P3)


def test_a_key_happens_once_in_a_batch_later_and_after_a_reopen(place: Place):
    engine = place.an_engine()
    event = an_event()
    assert [o.seq for o in engine.handle([event, event, an_event()])] == [1, 0, 2]
    assert [o.seq for o in engine.handle([event])] == [0]
    place.close()
    again = place.an_engine()
    assert [o.seq for o in again.handle([an_event(), event])] == [3, 0]
    assert place.reader().state(counted())["n"] == 3  # type: ignore[index]


def test_the_store_itself_refuses_a_key_twice(store: Store, reader: Reader):
    append(store, an_event(key="once"))
    with pytest.raises(Exception, match=r"(?i)unique"):
        append(store, an_event(key="before"), an_event(key="once"))
    assert reader.head() == 1
    append(store, an_event(key="before"))
    assert reader.seqs_of_keys(["once", "before"]) == {"once": 1, "before": 2}


def test_known_finds_many_at_once(store: Store, reader: Reader):
    written = append(store, *events(300))
    keys = [e.key for e in written]
    with store.transaction():
        assert store.seqs_of_keys([*keys, "other"]) == {e.key: e.seq for e in written}
        assert store.seqs_of_keys([]) == {}
    assert len(reader.seqs_of_keys(iter(keys))) == 300


# ---- all or nothing


def test_a_failed_transaction_leaves_nothing(store: Store, reader: Reader):
    append(store, an_event())
    with pytest.raises(Stop), store.transaction() as head:
        store.append([an_event(seq=head + 1, session="new", body=b"b")])
        store.save([a_row()])
        store.enqueue([a_job()], NOON)
        store.set_meta("a", "b")
        raise Stop
    assert reader.counts() == {"events": 1, "jobs": 0, "dead_jobs": 0, "oldest_body": 0}
    assert (reader.state(Ref("session", "s-1")), reader.meta("a")) == (None, "")
    assert reader.events(EventQuery(session="new")) == []


def test_names_of_a_failed_transaction_are_not_remembered(store: Store, reader: Reader):
    with pytest.raises(Stop), store.transaction():
        store.append([an_event(seq=1, session="ghost")])
        raise Stop
    append(store, an_event(session="taker of the ghost's number"), an_event(session="ghost"))
    assert [e.session for e in reader.events(EventQuery())] == ["taker of the ghost's number", "ghost"]
    assert [e.seq for e in reader.events(EventQuery(session="ghost"))] == [2]


def test_documents_of_a_failed_transaction_are_not_remembered(store: Store, reader: Reader):
    engine = an_engine(store)

    def fail(_store: Store) -> None:
        raise Stop

    engine.handle([an_event()])
    with pytest.raises(Stop):
        engine.handle(events(5), also=fail)
    assert [o.seq for o in engine.handle(events(2))] == [2, 3]
    assert reader.state(counted())["n"] == 3  # type: ignore[index]


def test_nothing_is_seen_before_the_commit(store: Store, reader: Reader):
    with store.transaction():
        store.append([an_event(seq=1)])
        store.save([a_row()])
        assert store.seqs_of_keys(["sent"]) == {}  # a question sends what was only queued
        assert (reader.head(), reader.state(Ref("session", "s-1"))) == (0, None)
    assert (reader.head(), reader.state(Ref("session", "s-1"))) == (1, {"n": 1})


def test_a_reader_works_while_another_thread_writes(place: Place):
    engine, done = place.an_engine(), threading.Event()

    def read() -> list[int]:
        reader, seen = place.reader(), []
        while not (seen and done.is_set()):
            seqs = [e.seq for e in reader.events(EventQuery(limit=10_000))]
            assert seqs == list(range(1, len(seqs) + 1))
            assert (reader.state(counted()) or {"n": 0})["n"] >= len(seqs)
            seen.append(len(seqs))
        return seen

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for _ in range(40):
            engine.handle(events(5))
        done.set()
        seen = reading.result()
    assert seen == sorted(seen)


# ---- pages


@pytest.fixture
def a_log(store: Store) -> Store:
    """1-30: sessions a, b, c in turn; kinds turn.ended on every fifth; projects /x up to 15, then /y."""
    append(
        store,
        *(
            an_event(
                session="abc"[n % 3],
                project="/x" if n <= 15 else "/y",
                kind="turn.ended" if n % 5 == 0 else "tool.finished",
                tool="Edit" if n % 2 else "Bash",
                at=NOON + n,
                body=b"%d" % n,
            )
            for n in range(1, 31)
        ),
    )
    return store


@pytest.mark.parametrize(
    ("query", "seqs"),
    [
        (EventQuery(limit=4), [1, 2, 3, 4]),
        (EventQuery(limit=3, newest=True), [28, 29, 30]),
        (EventQuery(limit=3, after=10), [11, 12, 13]),
        (EventQuery(limit=3, before=10), [1, 2, 3]),
        (EventQuery(limit=3, before=10, newest=True), [7, 8, 9]),
        (EventQuery(after=10, before=13), [11, 12]),
        (EventQuery(session="a"), [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]),
        (EventQuery(session="a", before=27, newest=True, limit=2), [21, 24]),
        (EventQuery(project="/x", after=12), [13, 14, 15]),
        (EventQuery(project="/y", session="b", before=23), [16, 19, 22]),
        (EventQuery(kinds=("turn.ended",)), [5, 10, 15, 20, 25, 30]),
        (EventQuery(kinds=("turn.ended", "tool.finished"), limit=2), [1, 2]),
        (EventQuery(kinds=("turn.ended", "never.seen"), limit=2), [5, 10]),
        (EventQuery(tool="Bash", session="a"), [6, 12, 18, 24, 30]),
        (EventQuery(since=NOON + 29), [29, 30]),
        (EventQuery(until=NOON + 3), [1, 2]),
        (EventQuery(session="never seen"), []),
        (EventQuery(kinds=("never.seen",)), []),
        (EventQuery(project="/z"), []),
    ],
)
def test_a_page(a_log: Store, reader: Reader, query: EventQuery, seqs: list[int]):
    assert [e.seq for e in reader.events(query)] == seqs
    with_bodies = reader.events(msgspec.structs.replace(query, bodies=True))
    assert [e.body for e in with_bodies] == [b"%d" % seq for seq in seqs]


def test_pages_put_together_are_the_log(a_log: Store, reader: Reader):
    forward, after = [], 0
    while page := reader.events(EventQuery(after=after, limit=7)):
        forward += page
        after = page[-1].seq
    assert forward == reader.events(EventQuery()) == list(reader.replay())


@pytest.mark.parametrize("only", [{"session": "a"}, {"project": "/x"}, {"session": "b", "project": "/y"}, {}])
def test_replay_gives_every_event_of_its_part(a_log: Store, reader: Reader, only: dict[str, str]):
    expected = [e.seq for e in reader.events(EventQuery(**only)) if e.seq > 4]
    assert [e.seq for e in reader.replay(after=4, **only)] == expected


# ---- documents


def test_documents_are_saved_replaced_and_loaded(store: Store, reader: Reader):
    refs = [Ref("session", f"s-{n}") for n in range(50)]
    with store.transaction():
        store.save([a_row(key=ref.key, doc={"n": 0, "text": "é\x00🦀"}) for ref in refs])
        store.save([a_row(key="s-7", doc={"n": 7}), a_row(key="s-7", doc={"n": 8}), a_row(kind="project", doc={})])
        found = store.load([*refs, Ref("session", "nobody")])
    assert len(found) == 50
    loaded = [msgspec.json.decode(found[ref]) for ref in refs[7:9]]
    assert loaded == [{"n": 8}, {"n": 0, "text": "é\x00🦀"}]
    assert (reader.state(refs[7]), reader.state(Ref("project", "s-1"))) == ({"n": 8}, {})


def test_documents_keep_the_order_of_their_keys(store: Store, reader: Reader):
    with store.transaction():
        store.save([a_row(doc={"z": 1, "a": {"y": 2, "b": 3}})])
    assert str(reader.state(Ref("session", "s-1"))) == "{'z': 1, 'a': {'y': 2, 'b': 3}}"


@pytest.fixture
def listed(store: Store, reader: Reader) -> Reader:
    """k00 … k19, two at each moment."""
    rows = [
        a_row(key=f"k{n:02}", at=n // 2, project=f"/{'xy'[n % 2]}", status="open" if n % 4 else "shut", doc={"n": n})
        for n in range(20)
    ]
    with store.transaction():
        store.save([*rows, a_row(kind="project", key="other")])
    return reader


@pytest.mark.parametrize(
    ("only", "numbers"),
    [
        ({}, range(20)),
        ({"project": "/x"}, range(0, 20, 2)),
        ({"status": "shut"}, range(0, 20, 4)),
        ({"project": "/x", "status": "open"}, range(2, 20, 4)),
        ({"project": "/nowhere"}, []),
        ({"status": "lost"}, []),
    ],
)
def test_lists_are_paged_newest_first(listed: Reader, only: dict[str, str], numbers: list[int]):
    seen, before = [], None
    while page := listed.states(StateQuery(kind="session", limit=3, before=before, **only)):
        seen += page
        before = (page[-1][1]["n"] // 2, page[-1][0].key)
    assert [(ref.key, doc["n"]) for ref, doc in seen] == [(f"k{n:02}", n) for n in reversed(numbers)]


def test_keys_are_found_by_how_they_begin(store: Store, reader: Reader):
    keys = ["abc", "abcd", "ab\N{SNOWMAN}", "ab\U0010fffe", "ac", "a", "ab%", "AB", "ab_"]
    with store.transaction():
        store.save([a_row(key=key, at=n) for n, key in enumerate(keys)])
    found = [ref.key for ref, _ in reader.states(StateQuery(kind="session", prefix="ab"))]
    assert found == ["ab_", "ab%", "ab\U0010fffe", "ab\N{SNOWMAN}", "abcd", "abc"]
    assert [ref.key for ref, _ in reader.states(StateQuery(kind="session", prefix="ab", limit=1))] == ["ab_"]
    assert reader.states(StateQuery(kind="session", prefix="ab'; --")) == []


def test_keys_sort_by_code_point_on_every_engine(store: Store, reader: Reader):
    keys = ["Z", "a", "B", "é", "_", "1", "a b", "a-b"]
    with store.transaction():
        store.save([a_row(key=key) for key in keys])
    assert [ref.key for ref, _ in reader.states(StateQuery(kind="session"))] == sorted(keys, reverse=True)
    assert [row.ref.key for row in reader.rows("counter")] == sorted(keys)


def test_the_documents_of_one_feature_are_listed_and_dropped(store: Store, reader: Reader):
    mine = [a_row(key=f"{n:04}", project="/p", status="open", version=3, at=n) for n in range(2_500)]
    with store.transaction():
        store.save([*mine, a_row(key="other", feature="gates")])
    assert list(reader.rows("counter")) == mine
    with store.transaction():
        store.drop_states("counter")
    assert list(reader.rows("counter")) == []
    assert len(list(reader.rows("gates"))) == 1


# ---- the rest


def test_expired_bodies_leave_events_and_facts(store: Store, reader: Reader):
    written = append(store, *(an_event(at=at, body=b"body", data={"at": at}) for at in (10, 20, 30, 40)))
    with store.transaction():
        assert store.expire_bodies(older_than=35, limit=2) == 2
        assert store.expire_bodies(older_than=35, limit=2) == 1
        assert store.expire_bodies(older_than=35, limit=2) == 0
    read = reader.events(EventQuery(bodies=True))
    assert [e.body for e in read] == [b"", b"", b"", b"body"]
    assert [(e.key, e.data) for e in read] == [(e.key, e.data) for e in written]
    assert reader.counts()["oldest_body"] == 4


def test_meta_is_kept_and_replaced(place: Place):
    store = place.store()
    for value in ("one", "two é\x00", ""):
        with store.transaction():
            store.set_meta("feature:gates", value)
        assert place.reader().meta("feature:gates") == value


def test_everything_is_there_after_a_reopen(place: Place):
    store = place.store()
    written = append(store, *events(3, body=b"b"))
    with store.transaction():
        store.save([a_row()])
        store.enqueue([a_job()], NOON)
    place.close()
    reopened, reader = place.store(), place.reader()
    assert reader.events(EventQuery(bodies=True)) == written
    assert (reader.state(Ref("session", "s-1")), len(reader.jobs())) == ({"n": 1}, 1)
    with reopened.transaction() as head:
        assert head == 3


def test_the_first_event_that_names_an_agent_tells_whose_session_it_is(store: Store):
    append(
        store,
        an_event(session="a", agent=""),
        an_event(session="a", agent="codex"),
        an_event(session="a", agent="qwen"),
        an_event(session="b", agent="gemini"),
        an_event(session="c", agent=""),
    )
    with store.transaction():
        assert store.session_agents(["a", "b", "c", "d"]) == {"a": "codex", "b": "gemini"}
