"""The running daemon: builds its parts and starts and stops them in order."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import holdfast as package
from holdfast import __version__
from holdfast.app import App, all_features, build_app, database_path, open_settings
from holdfast.core.decision import Delivery
from holdfast.core.engine import Committed, Engine, Outcome
from holdfast.core.errors import HoldfastError, StoreDamaged
from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.ids import delivery_key
from holdfast.core.lazy import lazy_function
from holdfast.core.ports import Store
from holdfast.core.replay import Rebuild, outdated_features
from holdfast.core.times import now_ms
from holdfast.core.transaction import undelivered_answer, undelivered_event
from holdfast.daemon import repair
from holdfast.daemon.background import Background, finish_rebuild
from holdfast.daemon.failures import forget_failures
from holdfast.daemon.fallback_answers import FallbackAnswers
from holdfast.daemon.files import FileWriter
from holdfast.daemon.git_questions import answer_git
from holdfast.daemon.heads import HeadNotes
from holdfast.daemon.held_hooks import HeldHooks
from holdfast.daemon.ingest.before_answer import BeforeAnswer
from holdfast.daemon.ingest.high_water import HighWaterMark
from holdfast.daemon.ingest.journal import AckLedger, Journal
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.ingest.pipeline import IngestPipeline
from holdfast.daemon.ingest.server import HookServer, listen_on_socket
from holdfast.daemon.ingest.spool import Drained, Spool
from holdfast.daemon.ingest.store_guard import StoreGuard
from holdfast.daemon.ingest.writer import WriterCalls
from holdfast.daemon.lifecycle_log import LifecycleLog
from holdfast.daemon.restores import settle_restores
from holdfast.daemon.side_answers import SideAnswers
from holdfast.daemon.status_lines import StatusLines
from holdfast.daemon.worker import Worker
from holdfast.paths import Paths, write_atomically

# Seconds after a retirement in which no other client can retire a daemon of this state folder.
RETIRE_EVERY_S = 3600.0
# Bytes of spool and events of log that a start processes before it serves the first hook.
SMALL_SPOOL = 4 << 20
SMALL_LOG = 2_000
# Seconds that another thread waits for the writer thread.
CALL_S = 60.0
IMPORT_FILE = lazy_function("holdfast.setup.imports", "earlier_state", "import_file")
ADOPT_S = 3.0


class Daemon:
    def __init__(self, paths: Paths, log: Log) -> None:
        self.paths, self.log = paths, log
        self.started = time.time()
        self.errors: dict[str, int] = {}
        self.calls = WriterCalls()
        self.copying = threading.Lock()
        """Held while the database is copied or erased from: never both."""
        self.database = database_path(paths, open_settings())
        self.high_water_mark = HighWaterMark(self.database)
        self.heads = HeadNotes(paths.heads)
        self.app = self._build()
        self.store_guard = StoreGuard(
            self._engine,
            log,
            lambda error: self.repair_store(error, self.app.store),
            lambda body: self.app.redact(body),
        )
        self.journal = Journal(paths.journal, self.app.cipher)
        self.ledger = AckLedger(paths.ledger)
        before_answer = BeforeAnswer(
            lambda: self.app, lambda name, e: self.log.error("feature.failed", e, feature=name)
        )
        self.pipeline = IngestPipeline(
            self._engine, self.app.agents, self.store_guard, self.journal, self.ledger, before_answer
        )
        self.spool = Spool(paths, self.store_spooled)
        self.files = FileWriter(self.app.settings.for_project, log, paths.state, self._ingest_adopted, IMPORT_FILE)
        self.worker = Worker(
            engine=self._engine, pipeline=self.pipeline, features=self.app.features, calls=self.calls, log=log,
            settings=self.app.settings.for_project, clock=now_ms, state_dir=paths.state,
        )  # fmt: skip
        self.fallback = FallbackAnswers(paths.state, self.app.agents, lambda: self.app.store.reader(), log)
        self.held_hooks = HeldHooks(lambda: self.app, log)
        self.pipeline.subscribers += [
            self.files.watch, self._committed, LifecycleLog(log).write, self.fallback.watch, self.held_hooks.committed,
        ]  # fmt: skip
        self._undelivered: list[Event] = []
        self._last_event = time.monotonic()
        self._running_build = installed_build()
        self._born_in = self.paths.run_identity()
        self._reason = ""
        self.background = Background(self)
        # Outdated features are rebuilt or suspended first: the journal's events must not be applied to old documents.
        self._prepare_documents()
        # The journal precedes what hooks spooled unanswered.
        self.pipeline.replay_journal()
        self.drain_small_spool()
        settle_restores(self)
        lines = StatusLines(lambda: self.app, lambda reader: self.background.health.described(reader))
        self._aside = {
            "show": SideAnswers("status-lines", lines.line, log),
            "hold": SideAnswers("git-questions", partial(answer_git, self), log),
        }
        # Listening begins last: no hook is accepted before state and journal are ready.
        listening = listen_on_socket(paths.hook_socket)
        self.server = HookServer(
            listening,
            self._handle,
            self.calls,
            self._flush,
            self._tick,
            {mode: one.take for mode, one in self._aside.items()},
            self._note_undelivered,
            self.held_hooks.take,
        )

    def serve(self) -> None:
        failing_since = forget_failures(self.paths)
        self._record_event("daemon.started", version=__version__, pid=os.getpid(), failing_since=failing_since)
        self.background.start()
        for one in self._aside.values():
            one.start()
        self.server.serve()
        self._finish()

    def stop(self, reason: str) -> None:
        # The first reason is kept: a SIGTERM after a retirement does not rename it.
        self._reason = self._reason or reason
        self.server.stop()

    def call(self, work: Any, timeout: float | None = CALL_S) -> Any:
        """Run `work` on the writer thread."""
        return self.calls.call(work, timeout)

    def _engine(self) -> Engine:
        return self.app.engine

    def _build(self) -> App:
        try:
            repair.check_head(self.database, self.paths, self.high_water_mark.head)
            return build_app(self.paths, report=self._report)
        except StoreDamaged as error:
            self.log.error("store.damaged", error)
            self._swap_in(self._build_replacement(all_features()))
            return build_app(self.paths, report=self._report)

    def _build_replacement(self, features: Sequence[Feature]) -> repair.Repair:
        return repair.build_replacement(self.database, self.paths, features, self.high_water_mark.head, now_ms())

    def repair_store(self, error: StoreDamaged, store: Store) -> bool:
        """On the writer thread, perhaps in the middle of a batch, which is then retried on the restored store."""
        if store is not self.app.store:
            return True  # Two met the same damage; the other one was first.
        self.log.error("store.damaged", error)
        try:
            replacement = self._build_replacement(self.app.features)
        except (HoldfastError, OSError) as problem:
            self.log.error("store.not-mended", problem)
            return False
        return self._go_on_with(replacement)

    def _go_on_with(self, replacement: repair.Repair) -> bool:
        try:
            # Closed first, so that no connection still writes to the file being set aside.
            self.app.store.close()
            self._swap_in(replacement)
            # The journal keeps the same cipher: a key found or made later must count for it too.
            self.app = build_app(self.paths, report=self._report, cipher=self.app.cipher)
        except (HoldfastError, OSError) as problem:
            self.log.error("store.not-exchanged", problem)
            os.kill(os.getpid(), signal.SIGTERM)  # The next start finishes it; hooks spool meanwhile.
            return False
        self.fallback.write()
        self.background.rebuild_outdated()
        return True

    def _swap_in(self, replacement: repair.Repair) -> None:
        repair.swap_in(self.database, replacement)
        self.log("store.restored", **msgspec.structs.asdict(replacement))

    def _ingest_adopted(self, events: list[Event]) -> None:
        """Append the events of a file that somebody edited. Bounded, because the writer itself may wait for the files."""
        if events:
            self.call(lambda: self.pipeline.commit_events(events), ADOPT_S)

    def _flush(self) -> None:
        """Right after the answers; if the store is unavailable, at the next tick."""
        self.pipeline.flush()
        lost, self._undelivered = self._undelivered, []
        self._record_events(lost)
        self.pipeline.publish()

    def _committed(self, committed: Committed) -> None:
        head = self.app.store.head
        # A power cut may undo what is not durable; a noted head would then miss it.
        if head[0] <= self.app.engine.durable:
            self.heads.saw(head, now_ms())
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
        self._retire_for_newer(deliveries)
        return outcomes

    def _retire_for_newer(self, deliveries: Sequence[Delivery]) -> None:
        # A development version parses as (), which is never greater: such a client retires no daemon.
        newer = [
            d.client
            for d in deliveries
            if d.client != __version__ and parse_version(d.client) > parse_version(__version__)
        ]
        if newer:
            self._retire_for(newer[0])

    def may_be_replaced(self, version: str) -> bool:
        """Anyone may replace it if another build is installed, or the client is newer (once an hour, as with hooks)."""
        if installed_build() not in ((), self._running_build):
            return True
        return parse_version(version) > parse_version(__version__) and self._mark_retired(version)

    def _retire_for(self, client: str) -> None:
        """An upgraded client replaces an old daemon once, not in a storm (pain 6)."""
        if self._mark_retired(client):
            known = client == "another build"
            self.stop(f"{client} is installed" if known else f"a client of version {client} is there")

    def _mark_retired(self, client: str) -> bool:
        mark = self.paths.run / "retired"
        if mark.exists() and time.time() - mark.stat().st_mtime < RETIRE_EVERY_S:
            return False
        try:
            write_atomically(mark, f"{__version__} for {client}\n".encode())
        except OSError:
            return False  # Without the mark it would be a storm.
        return True

    def store_spooled(self, deliveries: Sequence[Delivery]) -> int | None:
        outcomes = self.pipeline.store_spooled(deliveries)
        self._raise_high_water_mark()
        if outcomes is None:
            return None
        self._note_lost([d for d, o in zip(deliveries, outcomes, strict=True) if d.missed and not o.seq])
        return sum(1 for o in outcomes if o.seq)

    def _note_undelivered(self, outcome: Outcome) -> None:
        """Written with what follows the answers: pending answers come first."""
        if outcome.event is not None:
            self._undelivered.append(undelivered_event(outcome.event, outcome.decision))

    def _note_lost(self, spooled: Sequence[Delivery]) -> None:
        """A hook spools what it got no answer to: an answer on record for it was lost."""
        if not spooled:
            return
        reader = self.app.store.reader()
        try:
            decisions = reader.seqs_of_keys([f"{delivery.key}/decision" for delivery in spooled])
            answers = [(d, reader.event(decisions.get(f"{d.key}/decision", 0))) for d in spooled]
        finally:
            reader.close()
        self._record_events([undelivered_answer(d.key, made, d.client_verdict) for d, made in answers if made])

    def drain_small_spool(self) -> None:
        """Ingest the spool, unless it is so large that a hook would wait."""
        if 0 < self.spool.waiting() <= SMALL_SPOOL:
            self.report_drained(self.spool.drain())

    def _prepare_documents(self) -> None:
        """May meet damage. A young log is replayed in milliseconds; an old one in the background (`rebuild_outdated`)."""
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

    def _tick(self) -> None:
        # Hooks now use the sockets of the new folder: nobody would find what this daemon writes.
        if self.paths.run_identity() != self._born_in:
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
        if idle_s and self.seconds_without_events() > idle_s and not self.background.watched():
            self.stop("idle")

    def seconds_without_events(self) -> float:
        return time.monotonic() - self._last_event

    def take_noticed(self, events: Sequence[Event]) -> None:
        """On the writer thread: append what a feature's watcher noticed."""
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
        # These are the daemon's own notes: an unavailable store must not fail the hook they come with.
        except Exception as error:
            self.log.error("event.not-kept", error, kind=events[0].kind)

    def _report(self, feature: str, event: Event, error: Exception) -> None:
        """Count and log a rule that failed on an event; the agent is not affected."""
        self.errors[feature] = self.errors.get(feature, 0) + 1
        self.log.error("feature.failed", error, feature=feature, seq=event.seq, kind=event.kind)

    def _finish(self) -> None:
        # Whatever makes events stops first, then the last event is written.
        self.background.stop()
        self.worker.stop()
        self.held_hooks.stop()
        self._record_event("daemon.stopped", reason=self._reason)
        self._flush()
        self.heads.note(self.app.store.head, now_ms())
        self._give_jobs_back()
        self.files.stop()
        self.journal.close()
        self.ledger.close()
        # A folder put in its place holds the sockets of another daemon.
        for name in (
            (self.paths.hook_socket, self.paths.control_socket) if self.paths.run_identity() == self._born_in else ()
        ):
            name.unlink(missing_ok=True)
        self.app.store.close()

    def _give_jobs_back(self) -> None:
        try:
            with self.app.store.transaction():
                self.app.store.release(self.worker.owner)
        except Exception as error:  # Their leases run out by themselves.
            self.log.error("jobs.not-given-back", error)


def installed_build() -> tuple[int, ...]:
    """Identify the installed build: installing writes its files again, even at the same version."""
    try:
        file_stat = Path(package.__file__).stat()
    except OSError:
        return ()  # While it is being replaced there may be none.
    return file_stat.st_dev, file_stat.st_ino, file_stat.st_mtime_ns, file_stat.st_size


def parse_version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(int(p) for p in parts) if all(p.isdigit() for p in parts) else ()
