"""Checkpoints SQLite's write-ahead log in a thread of its own."""

import contextlib
import threading
from pathlib import Path

import apsw

from holdfast.stores.sqlite_connection import BUSY_MS

# In pages of the write-ahead log; SQLite's default is a thousand, inside a commit.
FULL_PAGES = 4000


class Checkpointer:
    """The thread starts when first needed: a store that is only read has none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._due, self._closing = threading.Event(), False
        self._thread: threading.Thread | None = None

    def watch(self, db: apsw.Connection) -> None:
        """Replaces SQLite's own checkpoint."""
        db.set_wal_hook(self._grown)

    def _grown(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages >= FULL_PAGES and not self._due.is_set():
            self._due.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
                self._thread.start()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        db: apsw.Connection | None = None
        while self._due.wait():
            self._due.clear()  # Before the work, or what is asked for meanwhile would be forgotten.
            if self._closing:
                break
            # A full disk or damage: the writer meets it too and reports it. The next commit asks again.
            with contextlib.suppress(apsw.Error):
                db = db or self._connection()
                # PASSIVE waits for nobody: it stops neither the writer nor a reader.
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if db:
            db.close()

    def _connection(self) -> apsw.Connection:
        db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(BUSY_MS)
        db.pragma("journal_mode")  # Until it has looked into the file it knows of no log and carries nothing over.
        return db

    def close(self) -> None:
        self._closing = True
        self._due.set()
        if self._thread:
            self._thread.join()
