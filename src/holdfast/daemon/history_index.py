"""Keeps the full-text index of the log up to date."""

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.history import HistoryPage, next_page
from holdfast.core.ports import Store

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

PORTION = 32
"""Events per write: a hook waits for no more than these."""
COLLECT_S, PAUSE_S, LOOK_AGAIN_S = 0.5, 0.005, 5.0
"""Events are collected first: indexing after every event would take the processor from the next hook."""
AFTER_IMPORT_S = 1.0


class HistoryIndexer:
    def __init__(self, daemon: "Daemon", stopping: threading.Event) -> None:
        self._daemon, self._stopping = daemon, stopping
        self._committed = threading.Event()
        self._not_before = 0.0

    def wake(self) -> None:
        self._committed.set()

    def postpone(self) -> None:
        """Defer indexing while an import is running."""
        self._not_before = time.monotonic() + AFTER_IMPORT_S

    @property
    def _is_postponed(self) -> bool:
        return time.monotonic() < self._not_before

    def run(self) -> None:
        """Runs until the daemon stops; events of one moment are indexed together."""
        while not self._stopping.is_set():
            self._catch_up()
            self._committed.wait(LOOK_AGAIN_S)
            self._committed.clear()
            self._stopping.wait(COLLECT_S)
            while self._is_postponed and not self._stopping.is_set():
                self._stopping.wait(COLLECT_S)

    def _catch_up(self) -> None:
        try:
            reader = self._daemon.app.store.reader()
            try:
                while not self._stopping.is_set() and (page := next_page(reader, PORTION)):
                    self._daemon.worker.change_rows(partial(_index_page, page), idle=True)
                    self._stopping.wait(PAUSE_S)
                    if self._is_postponed:
                        # The rest must not wait for the next commit.
                        self.wake()
                        return
            finally:
                reader.close()
        except StoreDamaged:
            self._daemon.background.look_for_damage()
        except StoreUnavailable as error:
            self._daemon.log.error("history.waits", error)
        except Exception as error:
            # While stopping, the store may close underneath.
            if not self._stopping.is_set():
                self._daemon.log.error("history.failed", error)


def _index_page(page: HistoryPage, store: Store) -> None:
    """Not durable: after a power cut the mark is as old as the index."""
    store.index_history(page.entries, str(page.before), str(page.after))
