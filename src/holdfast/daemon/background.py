"""Everything the daemon does besides hooks: control socket, spool, erasures, index, housekeeping, watchers, jobs,
rebuilds."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import StoreDamaged
from holdfast.core.event import Event
from holdfast.core.feature import Feature, WatchCall
from holdfast.core.ids import delivery_key
from holdfast.core.ports import Store
from holdfast.core.replay import Rebuild, outdated_features
from holdfast.core.times import now_ms
from holdfast.daemon.health import Health
from holdfast.daemon.history_index import HistoryIndexer
from holdfast.daemon.housekeeping import Housekeeping
from holdfast.daemon.ingest.spool import Spool
from holdfast.daemon.restores import settle_restores
from holdfast.daemon.upstream import UpstreamProcess
from holdfast.paths import INTENT_SUFFIX, remove_partials

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon


class Background:
    """Background work, started only once hooks are being served."""

    def __init__(self, daemon: "Daemon") -> None:
        self._daemon = daemon
        self._stopping = threading.Event()
        self.committed = threading.Event()
        self.housekeeping = Housekeeping(daemon)
        self.health = Health(daemon)
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
            # On the writer thread, so that nothing changes before its events are written.
            daemon.call(lambda: daemon.take_noticed(noticed()))

        def report(error: Exception) -> None:
            daemon.log.error("watch.failed", error, feature=feature.name)

        assert feature.watch is not None
        try:
            settings = partial(_section_of, daemon, feature.name)
            feature.watch(WatchCall(self._stopping, handle, report, settings, daemon.paths.state, daemon.app.cipher))
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
        # Imported in a background thread, so that the first hook doesn't wait for these modules.
        from holdfast.daemon.control import Control

        self._control = Control(self._daemon, self.committed)
        self._control.serve()

    def _drain(self) -> None:
        daemon = self._daemon
        # Only the commit needs the writer thread; the spool is read and parsed here.
        spool = Spool(daemon.paths, lambda batch: daemon.call(lambda: daemon.store_spooled(batch)))
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
        """Finish erasures that the last daemon began, and remove its half-written files."""
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
            try:
                self.health.round()
            except Exception as error:
                self._daemon.log.error("health.failed", error)


def _section_of(daemon: "Daemon", name: str, project: str) -> Any:
    return daemon.app.settings.for_project(project).get(name)


def finish_rebuild(daemon: "Daemon", work: Rebuild) -> None:
    """On the writer thread: no events are added meanwhile, so catching up ends."""
    engine, names = daemon.app.engine, [f.name for f in work.features]
    engine.suspend(names)
    # Acknowledged events must be in the log before it is read to its end.
    daemon.pipeline.flush()
    work.read()
    now = now_ms()
    event = Event(key=delivery_key(now), kind="state.rebuilt", at=now, data={"features": names, "events": work.seq})
    # The event itself is applied too, so that the documents match the head.
    daemon.pipeline.commit_events([event], also=lambda store: work.write(store, event))
    engine.forget()
    engine.resume(names)
    settle_restores(daemon)
