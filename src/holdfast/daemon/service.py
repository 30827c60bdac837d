"""The running daemon: what belongs together, begun and ended in order."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import holdfast as package
from holdfast import __version__
from holdfast.app import App, all_features, build_app, open_settings, store_url
from holdfast.core.decision import Delivery
from holdfast.core.engine import Committed, Engine, Outcome
from holdfast.core.errors import HoldfastError, StoreDamaged
from holdfast.core.event import Event
from holdfast.core.feature import Feature, WatchCall
from holdfast.core.ids import delivery_key
from holdfast.core.lazy import lazy_function
from holdfast.core.ports import Store
from holdfast.core.replay import Rebuild, outdated_features
from holdfast.core.times import now_ms
from holdfast.core.transaction import undelivered_answer, undelivered_event
from holdfast.daemon import repair
from holdfast.daemon.fallback_answers import FallbackAnswers
from holdfast.daemon.files import FileWriter
from holdfast.daemon.housekeeping import HistoryIndexer, Housekeeping, LifecycleLog
from holdfast.daemon.status_lines import StatusLines
from holdfast.daemon.upstream import UpstreamProcess
from holdfast.daemon.worker import Worker
from holdfast.ingest.journal import AckLedger, Journal
from holdfast.ingest.log import Log
from holdfast.ingest.pipeline import IngestPipeline
from holdfast.ingest.server import HookServer, listen_on_socket
from holdfast.ingest.spool import Drained, Spool
from holdfast.ingest.store_guard import HighWaterMark, StoreGuard
from holdfast.ingest.writer import WriterCalls
from holdfast.paths import INTENT_SUFFIX, Paths, remove_partials, write_atomically
from holdfast.stores import sqlite_path

# Seconds after a retirement in which no other client makes a daemon of this state folder retire again.
RETIRE_EVERY_S = 3600.0
# Bytes of spool, and events of log, up to which a start handles them before it serves the first hook.
SMALL_SPOOL = 4 << 20
SMALL_LOG = 2_000
# Seconds that another thread waits for the writer thread.
CALL_S = 60.0
IMPORT_FILE = lazy_function("holdfast.imports", "earlier_state", "import_file")
ADOPT_S = 3.0


class Daemon:
    def __init__(self, paths: Paths, log: Log) -> None:
        self.paths, self.log = paths, log
        self.started = time.time()
        self.errors: dict[str, int] = {}
        self.calls = WriterCalls()
        self.copying = threading.Lock()
        """Held while the database is copied or something is erased from it and its copies: never both."""
        database = sqlite_path(store_url(paths, open_settings()))
        self.high_water_mark = HighWaterMark(database)
        self.app = self._build(database)
        self.store_guard = StoreGuard(
            self._engine,
            log,
            lambda error: self.repair_store(error, self.app.store),
            lambda body: self.app.redact(body),
        )
        self.journal = Journal(paths.journal, self.app.cipher)
        self.ledger = AckLedger(paths.ledger)
        self.pipeline = IngestPipeline(self._engine, self.app.agents, self.store_guard, self.journal, self.ledger)
        self.spool = Spool(paths, self._store_spooled)
        self.files = FileWriter(self.app.settings.for_project, log, paths.state, self._ingest_adopted, IMPORT_FILE)
        self.worker = Worker(
            engine=self._engine, pipeline=self.pipeline, features=self.app.features, calls=self.calls, log=log,
            settings=self.app.settings.for_project, clock=now_ms, state_dir=paths.state,
        )  # fmt: skip
        self.fallback = FallbackAnswers(paths.state, self.app.agents, lambda: self.app.store.reader(), log)
        self.pipeline.subscribers += [self.files.watch, self._committed, LifecycleLog(log).write, self.fallback.watch]
        self._undelivered: list[Event] = []
        self._last_event = time.monotonic()
        self._running_build = installed_build()
        self._born_in = self._folder()
        self._reason = ""
        self.background = _Background(self)
        # Outdated features are rebuilt or suspended first:
        # the journal's events must not be applied to old documents.
        self._prepare_documents()
        # it goes into the log before what hooks spooled unanswered.
        self.pipeline.replay_journal()
        self._drain_at_start()
        self.status_lines = StatusLines(lambda: self.app, log)
        # Listening begins last: no hook is accepted before state and journal are in place.
        self.server = HookServer(
            listen_on_socket(paths.hook_socket),
            self._handle,
            self.calls,
            self._flush,
            self._tick,
            self.status_lines.show,
            self._note_undelivered,
        )

    def serve(self) -> None:
        self._record_event("daemon.started", version=__version__, pid=os.getpid())
        self.background.start()
        self.status_lines.start()
        self.server.serve()
        self._finish()

    def stop(self, reason: str) -> None:
        # The first reason is kept: a SIGTERM that follows a retirement does not rename it.
        self._reason = self._reason or reason
        self.server.stopping = True
        self.calls.wake()

    def call(self, work: Any, timeout: float | None = CALL_S) -> Any:
        """Runs `work` in the writer thread."""
        return self.calls.call(work, timeout)

    def _engine(self) -> Engine:
        return self.app.engine

    def _build(self, database: Path | None) -> App:
        try:
            if database:
                repair.check_head(database, self.paths, self.high_water_mark.head)
            return build_app(self.paths, report=self._report)
        except StoreDamaged as error:
            if not database:
                raise
            self.log.error("store.damaged", error)
            self._swap_in(
                database,
                repair.build_replacement(database, self.paths, all_features(), self.high_water_mark.head, now_ms()),
            )
            return build_app(self.paths, report=self._report)

    def repair_store(self, error: StoreDamaged, store: Store) -> bool:
        """In the writer thread, perhaps in the middle of a batch, which is then tried again on what is restored."""
        database = sqlite_path(store.url)
        if not database or store is not self.app.store:
            return bool(database)  # Two met the same damage; the other one was first.
        self.log.error("store.damaged", error)
        try:
            replacement = repair.build_replacement(
                database, self.paths, self.app.features, self.high_water_mark.head, now_ms()
            )
        except (HoldfastError, OSError) as problem:
            self.log.error("store.not-mended", problem)
            return False
        return self._go_on_with(database, replacement)

    def _go_on_with(self, database: Path, replacement: repair.Repair) -> bool:
        try:
            # Closed first, so that no connection still writes to the file that is about to be set aside.
            self.app.store.close()
            self._swap_in(database, replacement)
            # The journal goes on with the same cipher: a key that is found or made later must count for it too.
            self.app = build_app(self.paths, report=self._report, cipher=self.app.cipher)
        except (HoldfastError, OSError) as problem:
            self.log.error("store.not-exchanged", problem)
            os.kill(os.getpid(), signal.SIGTERM)  # The next start finishes it; hooks spool meanwhile.
            return False
        self.fallback.write()
        self.background.rebuild_outdated()
        return True

    def _swap_in(self, database: Path, replacement: repair.Repair) -> None:
        repair.swap_in(database, replacement)
        self.log("store.restored", **msgspec.structs.asdict(replacement))

    def _ingest_adopted(self, events: list[Event]) -> None:
        """Of a file that somebody changed by hand. Not for long: the writer itself may wait for the files."""
        if events:
            self.call(lambda: self.pipeline.commit_events(events), ADOPT_S)

    def _flush(self) -> None:
        """Right after the answers; where the store takes nothing now, at the next tick."""
        self.pipeline.flush()
        lost, self._undelivered = self._undelivered, []
        self._record_events(lost)
        self.pipeline.publish()

    def _committed(self, committed: Committed) -> None:
        self._last_event = time.monotonic()
        self._raise_high_water_mark()
        self.background.history.wake()
        if self.background.watched():
            self.background.committed.set()
        if committed.jobs:
            self.worker.wake()

    def _raise_high_water_mark(self) -> None:
        if self.app.engine.durable:
            self.high_water_mark.saw(self.app.engine.durable)

    def _handle(self, deliveries: Sequence[Delivery]) -> list[Outcome] | None:
        outcomes = self.pipeline.accept(deliveries)
        self._raise_high_water_mark()
        # A development version parses as (), which is never greater: such a client makes no daemon retire.
        newer = [
            d.client
            for d in deliveries
            if d.client != __version__ and parse_version(d.client) > parse_version(__version__)
        ]
        if newer:
            self._retire_for(newer[0])
        return outcomes

    def _retire_for(self, client: str) -> None:
        """An upgraded client replaces an old daemon: once, not in a storm (pain 6)."""
        mark = self.paths.run / "retired"
        if mark.exists() and time.time() - mark.stat().st_mtime < RETIRE_EVERY_S:
            return
        try:
            write_atomically(mark, f"{__version__} for {client}\n".encode())
        except OSError:
            return  # Without the mark it would be a storm.
        self.stop(f"{client} is installed" if client == "another build" else f"a client of version {client} is there")

    def _store_spooled(self, deliveries: Sequence[Delivery]) -> int | None:
        outcomes = self.pipeline.store_spooled(deliveries)
        self._raise_high_water_mark()
        if outcomes is None:
            return None
        self._note_lost([d for d, o in zip(deliveries, outcomes, strict=True) if d.missed and not o.seq])
        return sum(1 for o in outcomes if o.seq)

    def _note_undelivered(self, outcome: Outcome) -> None:
        """Written with what follows the answers: those who are still being answered come first."""
        if outcome.event is not None:
            self._undelivered.append(undelivered_event(outcome.event, outcome.decision))

    def _note_lost(self, spooled: Sequence[Delivery]) -> None:
        """A hook spools what it got no answer to: an answer that is on record all the same was lost."""
        if not spooled:
            return
        reader = self.app.store.reader()
        try:
            decisions = reader.seqs_of_keys([f"{delivery.key}/decision" for delivery in spooled])
            answers = [(d, reader.event(decisions.get(f"{d.key}/decision", 0))) for d in spooled]
        finally:
            reader.close()
        self._record_events([undelivered_answer(d.key, made, d.client_verdict) for d, made in answers if made])

    def _drain_at_start(self) -> None:
        """What waited goes before what comes now, unless there is so much of it that the first hook would wait."""
        if 0 < self.spool.waiting() <= SMALL_SPOOL:
            self.report_drained(self.spool.drain())

    def _prepare_documents(self) -> None:
        """May meet damage. A young log is replayed in milliseconds; an old one beside the hooks (`rebuild_outdated`)."""
        reader = self.app.store.reader()
        try:
            self.fallback.write()
            old = outdated_features(self.app.features, reader)
            self.app.engine.suspend(f.name for f in old)
            if old and reader.head() <= SMALL_LOG:
                finish_rebuild(self, Rebuild(old, reader))
        except StoreDamaged as error:
            self.repair_store(error, self.app.store)
        finally:
            reader.close()

    def report_drained(self, done: Drained) -> None:
        if done:
            self._record_event("spool.drained", taken=done.taken, known=done.known, torn=done.torn)

    def drain_now(self) -> Drained:
        done = self.spool.drain()
        self.report_drained(done)
        return done

    def _folder(self) -> tuple[int, int]:
        """Which folder `run/` is; (0, 0) when there is none."""
        try:
            folder_stat = self.paths.run.lstat()
        except OSError:
            return 0, 0
        return folder_stat.st_dev, folder_stat.st_ino

    def _tick(self) -> None:
        # Hooks now meet the sockets of the new folder: what this daemon writes would be found by nobody.
        if self._folder() != self._born_in:
            self.stop("its state folder was replaced")
            return
        # () means that the files are just being replaced; the next tick looks again.
        if installed_build() not in ((), self._running_build):
            self._retire_for("another build")
            return
        self.pipeline.retry_held()
        settings = self.app.settings.for_project("")["daemon"]
        self.log.max_bytes = settings.log_mb << 20
        idle_s = settings.idle_exit_minutes * 60
        # Viewers on the control socket keep it running without events.
        if idle_s and time.monotonic() - self._last_event > idle_s and not self.background.watched():
            self.stop("idle")

    def take_noticed(self, events: Sequence[Event]) -> None:
        """In the writer thread: what a feature's watcher saw."""
        if events:
            self._record_events(list(events))
            self.pipeline.publish()

    def _record_event(self, kind: str, **data: Any) -> None:
        self.log(kind, **data)
        self._record_events([Event(key=delivery_key(), kind=kind, at=now_ms(), data=data)])

    def _record_events(self, events: list[Event]) -> None:
        if not events:
            return
        try:
            self.pipeline.commit_events(events)
        # These are the daemon's own notes: a store that takes nothing must not fail the hook they come with.
        except Exception as error:
            self.log.error("event.not-kept", error, kind=events[0].kind)

    def _report(self, feature: str, event: Event, error: Exception) -> None:
        """A rule that failed on an event: counted, logged, and of no consequence to the agent."""
        self.errors[feature] = self.errors.get(feature, 0) + 1
        self.log.error("feature.failed", error, feature=feature, seq=event.seq, kind=event.kind)

    def _finish(self) -> None:
        # Whatever makes events stops first, then the last event is written;
        self.background.stop()
        self.worker.stop()
        self._record_event("daemon.stopped", reason=self._reason)
        self._flush()
        self._give_jobs_back()
        self.files.stop()
        self.journal.close()
        self.ledger.close()
        # In a folder that was put in its place lie the sockets of another daemon.
        for name in (self.paths.hook_socket, self.paths.control_socket) if self._folder() == self._born_in else ():
            name.unlink(missing_ok=True)
        self.app.store.close()

    def _give_jobs_back(self) -> None:
        try:
            with self.app.store.transaction():
                self.app.store.release(self.worker.owner)
        except Exception as error:  # Their leases run out by themselves.
            self.log.error("jobs.not-given-back", error)


def installed_build() -> tuple[int, ...]:
    """Which build of Holdfast lies on the disk: installing one writes its files anew, even at the same version."""
    try:
        file_stat = Path(package.__file__).stat()
    except OSError:
        return ()  # While it is being replaced there may be none.
    return file_stat.st_dev, file_stat.st_ino, file_stat.st_mtime_ns, file_stat.st_size


def parse_version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(int(p) for p in parts) if all(p.isdigit() for p in parts) else ()


class _Background:
    """Everything that is not a hook: begun only when hooks are being served already."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._stopping = threading.Event()
        self.committed = threading.Event()
        self.housekeeping = Housekeeping(daemon)
        self.history = HistoryIndexer(daemon, self._stopping)
        self.upstream = UpstreamProcess(daemon.paths)
        self._control: Any = None

    def start(self) -> None:
        duties = {
            "control": self._open_control,
            "spool": self._drain,
            "erase": self._finish_erasures,
            "history": self.history.run,
            "housekeeping": self._keep_house,
        }
        for name, work in (*duties.items(), ("journal", self._daemon.journal.grow)):
            threading.Thread(target=work, name=name, daemon=True).start()
        for feature in self._daemon.app.features:
            if feature.watch:
                threading.Thread(target=self._watch, args=(feature,), name=f"{feature.name}-watch", daemon=True).start()
        self._daemon.files.start()
        self._daemon.worker.start(self._daemon.app.settings.for_project("")["daemon"].workers)
        self.rebuild_outdated()

    def _watch(self, feature: Feature) -> None:
        daemon = self._daemon

        def handle(noticed: Callable[[], Sequence[Event]]) -> None:
            # what it reads cannot change before its events are written.
            daemon.call(lambda: daemon.take_noticed(noticed()))

        def report(error: Exception) -> None:
            daemon.log.error("watch.failed", error, feature=feature.name)

        assert feature.watch is not None
        try:
            feature.watch(WatchCall(self._stopping, handle, report))
        except Exception as error:
            report(error)

    def watched(self) -> bool:
        return bool(self._control and self._control.busy())

    def stop(self) -> None:
        self._stopping.set()
        self.history.wake()
        self.upstream.stop()
        if self._control:
            self._control.close()

    def rebuild_outdated(self) -> None:
        store = self._daemon.app.store
        reader = store.reader()
        old = outdated_features(self._daemon.app.features, reader)
        if not old:
            reader.close()
            return
        self._daemon.app.engine.suspend(f.name for f in old)
        work = Rebuild(old, reader)
        threading.Thread(target=self._rebuild, args=(work, store), name="rebuild", daemon=True).start()

    def _rebuild(self, work: Rebuild, store: Store) -> None:
        daemon = self._daemon
        try:
            work.read()
            daemon.call(lambda: finish_rebuild(daemon, work))
            daemon.log("state.rebuilt", features=[f.name for f in work.features], events=work.seq)
        except StoreDamaged as error:
            damage = error
            daemon.call(lambda: daemon.repair_store(damage, store))
        except Exception as error:
            daemon.log.error("rebuild.failed", error)

    def look_for_damage(self) -> None:
        self.housekeeping.check_again()

    def _open_control(self) -> None:
        # Imported here, in a background thread: the first hook does not wait for these modules.
        from holdfast.daemon.control import Control

        self._control = Control(self._daemon, self.committed)
        self._control.serve()

    def _drain(self) -> None:
        daemon = self._daemon
        # Only the commit goes through the writer thread; the spool is read and parsed in this one.
        spool = Spool(daemon.paths, lambda batch: daemon.call(lambda: daemon._store_spooled(batch)))
        failed: list[str] = []
        while not self._stopping.wait(1.0):
            try:
                done = spool.drain()
                if done:
                    daemon.call(lambda done=done: daemon.report_drained(done))
                # Logged when the list changes, not every second.
                if done.failed != failed:
                    failed = done.failed
                    daemon.log("spool.stuck", files=failed)
            except Exception as error:
                daemon.log.error("spool.failed", error)

    def _finish_erasures(self) -> None:
        """What was begun before the last daemon died; half-written files of its go too."""
        try:
            remove_partials(self._daemon.paths)
            if any(self._daemon.paths.run.glob(f"*{INTENT_SUFFIX}")):
                self.housekeeping.finish_erasures()
        except Exception as error:
            self._daemon.log.error("erase.failed", error)

    def _keep_house(self) -> None:
        self.upstream.check()
        while not self._stopping.wait(5.0):
            self.housekeeping.round()
            self.upstream.check()


def finish_rebuild(daemon: Daemon, work: Rebuild) -> None:
    """In the writer thread: nothing can be added meanwhile, so catching up ends.

    The event is part of it: another daemon on the same PostgreSQL sees the head move and forgets its documents.
    """
    engine, names = daemon.app.engine, [f.name for f in work.features]
    engine.suspend(names)
    # What was answered and is not stored yet must be in the log before it is read to its end.
    daemon.pipeline.flush()
    work.read()
    now = now_ms()
    event = Event(key=delivery_key(now), kind="state.rebuilt", at=now, data={"features": names, "events": work.seq})
    # The event itself is applied as well, so that the documents stand at the head once it is written.
    work.apply_event(msgspec.structs.replace(event, seq=work.seq + 1))
    daemon.pipeline.commit_events([event], also=work.write)
    engine.forget()
    engine.resume(names)
