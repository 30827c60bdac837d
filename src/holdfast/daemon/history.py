"""Keeps the full-text index of the log up with it: after the answers, in small portions, also for an old log."""

import threading
from typing import TYPE_CHECKING

from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.history import HistoryPage, next_page

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

PORTION = 32
"""Events that the writer takes at once: a hook that comes meanwhile waits for no more than these."""
COLLECT_S, PAUSE_S, LOOK_AGAIN_S = 0.5, 0.005, 5.0
"""Collected for a while: an index that is brought up after every event would take the processor from the next hook."""


class HistoryIndexer:
    def __init__(self, daemon: "Daemon", stopping: threading.Event) -> None:
        self._daemon, self._stopping = daemon, stopping
        self._committed = threading.Event()

    def wake(self) -> None:
        self._committed.set()

    def run(self) -> None:
        """Until the daemon stops. Events of one moment are collected and indexed together."""
        while not self._stopping.is_set():
            self._catch_up()
            self._committed.wait(LOOK_AGAIN_S)
            self._committed.clear()
            self._stopping.wait(COLLECT_S)

    def _catch_up(self) -> None:
        try:
            reader = self._daemon.app.store.reader()
            try:
                while not self._stopping.is_set() and (page := next_page(reader, PORTION)):
                    self._daemon.call(lambda page=page: self._write(page))
                    self._stopping.wait(PAUSE_S)
            finally:
                reader.close()
        except StoreDamaged:
            self._daemon.background.look_for_damage()
        except StoreUnavailable as error:
            self._daemon.log.error("history.waits", error)
        except Exception as error:
            if not self._stopping.is_set():
                self._daemon.log.error("history.failed", error)

    def _write(self, page: HistoryPage) -> None:
        """In the writer thread. It need not last: after a power cut the mark is as old as the index."""
        store = self._daemon.app.store
        with store.transaction(lasting=False):
            store.index_history(page.entries, str(page.before), str(page.after))
