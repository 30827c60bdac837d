"""Any interleaving of deliveries, duplicates, crashes and drains leaves log and state equal to a model (P3, P5).

In one process for speed, on the real SQLite file and real spool files, with the real Reception, Keeper, Spool and Engine. A crash
is what kill -9 leaves: memory gone, files as they were; now and then in the middle of a commit.
"""

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.ports import EventQuery
from holdfast.core.replay import Rebuild
from holdfast.daemon.ingest.frames import as_frame, as_record
from holdfast.daemon.ingest.journal import Journal
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.ingest.pipeline import IngestPipeline
from holdfast.daemon.ingest.spool import Spool
from holdfast.daemon.ingest.store_guard import StoreGuard
from holdfast.paths import Paths
from holdfast.stores.sqlite import SqliteStore
from tests.factories import a_counter, an_engine, counted

FULL = 2_000
SESSIONS = ("s-1", "s-2", "s-3")


def run(_folder: Path, size: int) -> str:
    run_state_machine_as_test(
        House,
        settings=settings(
            max_examples=size, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck),
            database=None, derandomize=size < FULL,
        ),
    )  # fmt: skip
    return f"{size} histories of up to 30 steps, log and state equal to the model in all"


def read(delivery: Delivery) -> Event:
    session = json.loads(delivery.body)["session"]
    return Event(key=delivery.key, kind="tool.started", at=delivery.at, session=session, agent=delivery.agent)


class House(RuleBasedStateMachine):
    """The model: which keys must be in the log, once each, and how many of each session."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-model-"))
        self.paths = Paths(self.folder / "state").prepare()
        self.log = Log(self.paths.log_file)
        self.sent: dict[str, str] = {}
        self.must: set[str] = set()
        self.may: set[str] = set()
        """Sent, not acknowledged, not spooled: the hook died with it."""
        self.full = False

    @initialize()
    def start(self) -> None:
        self.store = SqliteStore(self.paths.database)
        self.engine = an_engine(self.store, a_counter(), read=read)
        self.store_guard = StoreGuard(lambda: self.engine, self.log, lambda _error: False)
        self.journal = Journal(self.paths.journal)
        self.pipeline = IngestPipeline(lambda: self.engine, {}, self.store_guard, self.journal)
        self.pipeline.replay_journal()
        self.spool = Spool(self.paths, self._take)

    def _take(self, batch) -> int | None:
        outcomes = self.pipeline.store_spooled(batch)
        return None if outcomes is None else sum(1 for o in outcomes if o.seq)

    def _frame(self, key: str) -> bytes:
        header = {"key": key, "mode": "ask", "agent": "a", "event": "PreToolUse", "at": "7"}
        return as_frame(header, json.dumps({"session": self.sent[key]}).encode())

    def _delivery(self, key: str, mode: str = "tell") -> Delivery:
        body = json.dumps({"session": self.sent[key]}).encode()
        return Delivery(key=key, agent="a", event="PreToolUse", mode=mode, at=7, body=body)

    def _spooled(self, key: str, name: str) -> None:
        with (self.paths.spool / name).open("ab") as log:
            log.write(as_record(self._frame(key)))
        self.must.add(key)

    def _new(self, session: str) -> str:
        key = f"{len(self.sent):032x}"
        self.sent[key] = session
        return key

    # ── what may happen ────────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        sessions=st.lists(st.sampled_from(SESSIONS), min_size=1, max_size=5),
        twice=st.booleans(),
        mode=st.sampled_from(("tell", "ask")),
    )
    def deliver(self, sessions: list[str], twice: bool, mode: str) -> None:
        """A batch by the socket; what is not answered the hooks spool."""
        keys = [self._new(session) for session in sessions]
        batch = [self._delivery(key, mode) for key in (*keys, *(keys if twice else ()))]
        if self.pipeline.accept(batch) is None:
            for key in keys:
                self._spooled(key, "spool.log")
        self.must.update(keys)

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        """Something old once more, by either way."""
        if not self.must:
            return
        key = data.draw(st.sampled_from(sorted(self.must)))
        if data.draw(st.booleans()):
            self.pipeline.accept([self._delivery(key)])
        else:
            self._spooled(key, data.draw(st.sampled_from(("spool.log", "other.log"))))

    @rule(session=st.sampled_from(SESSIONS), name=st.sampled_from(("spool.log", "other.log")))
    def spool_one(self, session: str, name: str) -> None:
        self._spooled(self._new(session), name)

    @rule(session=st.sampled_from(SESSIONS), cut=st.integers(1, 60))
    def tear(self, session: str, cut: int) -> None:
        """A hook that died while it wrote: nothing was promised."""
        with (self.paths.spool / "spool.log").open("ab") as log:
            log.write(as_record(self._frame(self._new(session)))[:-cut])

    @rule()
    def settle(self) -> None:
        """As the daemon does when the answers have left. A crash before it is made good at the start after it."""
        self.pipeline.flush()

    @rule()
    def drain(self) -> None:
        self.spool.drain()

    @rule(part=st.integers(0, 3))
    def die_while_draining(self, part: int) -> None:
        """Some of a file is committed, and it is still there: it is read again from its beginning."""

        def take(batch):
            self._take(batch[: len(batch) * part // 3])
            raise _Died

        with contextlib.suppress(_Died):
            Spool(self.paths, take).drain()
        self.crash()

    @rule()
    def fill_the_disk(self) -> None:
        self.full = True
        pages = self.store._db.pragma("page_count")
        self.store._db.pragma("max_page_count", pages)

    @rule()
    def room_again(self) -> None:
        self.full = False
        self.store._db.pragma("max_page_count", 1_000_000)
        self.pipeline.retry_held()

    @rule()
    def crash(self) -> None:
        """Memory is gone. A second copy of the files is opened, as they lay on the disk at that moment."""
        lies = self.folder / "lies"
        shutil.copytree(self.paths.state, lies)
        self.store.close()
        shutil.rmtree(self.paths.state)
        lies.rename(self.paths.state)
        self.start()

    @rule(sessions=st.lists(st.sampled_from(SESSIONS), min_size=1, max_size=3))
    def die_in_a_commit(self, sessions: list[str]) -> None:
        """Before the commit nothing is there; the hooks saw no answer and spooled."""
        keys = [self._new(session) for session in sessions]
        try:
            self.pipeline.commit_events([self._delivery(key) for key in keys], also=_die)
        except _Died:
            pass
        except Exception:
            assert self.full
        for key in keys:
            self._spooled(key, "spool.log")
        self.crash()

    # ── what must hold ─────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def every_key_once(self) -> None:
        if hasattr(self, "store"):
            found = [e.key for e in self._events()]
            assert len(found) == len(set(found))
            assert set(found) <= set(self.sent)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.room_again()
            self.spool.drain()
            self.pipeline.retry_held()
            self.pipeline.flush()
            self._equal_to_the_model()
            self.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _events(self) -> list[Event]:
        reader = self.store.reader()
        try:
            return reader.events(EventQuery(limit=100_000))
        finally:
            reader.close()

    def _equal_to_the_model(self) -> None:
        found = {e.key for e in self._events()}
        assert found == self.must, found ^ self.must
        reader = self.store.reader()
        for session in SESSIONS:
            wanted = sum(1 for key in self.must if self.sent[key] == session)
            doc = reader.state(counted(session))
            assert (doc or {"n": 0})["n"] == wanted
        work = Rebuild((a_counter(),), reader)
        work.read()
        assert work.differences() == []
        reader.close()


class _Died(Exception):
    """kill -9, as seen from inside."""


def _die(_store: object) -> None:
    raise _Died
