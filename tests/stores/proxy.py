"""A way to a PostgreSQL that listens on a socket of its own: it can be made long, silent, cut or watched, and counts turns."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg import conninfo

from holdfast.stores.postgres_connection import LOCK_CLASS

_numbers = itertools.count(1)
NAME = ".s.PGSQL.5432"
BACKEND_KEY = b"K\0\0\0\x0c"
"""How the message begins by which a server names the process of a connection."""


class DatabaseProxy:
    """`delay_s` is for each way. Silent: what is sent is taken, and nothing comes back. Cut: nobody is let in."""

    def __init__(self, url: str, folder: Path, delay_s: float = 0.0) -> None:
        self._target = f"{conninfo.conninfo_to_dict(url)['host']}/{NAME}"
        # A socket's path may have 107 bytes.
        self._folder = Path("/tmp") / f"hfway{folder.stat().st_ino}-{next(_numbers)}"
        self.url = url.replace(str(conninfo.conninfo_to_dict(url)["host"]), str(self._folder))
        self.delay_s, self.silent, self.cut, self.turns = delay_s, False, False, 0
        """`turns`: how often the server answered something that was asked since the last answer."""
        self.watch: Callable[[int], None] = lambda _backend: None
        """Called whenever a piece is on its way to or from a process of the server, before it is passed on."""
        self._open: set[socket.socket] = set()

    def __enter__(self) -> "DatabaseProxy":
        self._folder.mkdir(mode=0o700)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._folder / NAME))
        self._listening.listen(50)
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self.drop_all()
        (self._folder / NAME).unlink()
        self._folder.rmdir()

    def drop_all(self) -> None:
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                if self.cut:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._open |= {near, far}
                asked, backend = threading.Event(), list[int]()
                for pair in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._copy, args=(*pair, asked, backend), daemon=True).start()

    def _copy(
        self, source: socket.socket, target: socket.socket, there: bool, asked: threading.Event, backend: list[int]
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                time.sleep(self.delay_s)
                if self.silent:
                    continue
                if not there and not backend and (at := piece.find(BACKEND_KEY)) >= 0:
                    backend.append(int.from_bytes(piece[at + 5 : at + 9]))
                if backend:
                    self.watch(backend[0])
                if there:
                    asked.set()
                elif asked.is_set():
                    asked.clear()
                    self.turns += 1
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open -= {source, target}


@contextlib.contextmanager
def noting_locks(proxy: DatabaseProxy, url: str) -> Iterator[list[int]]:
    """Whether a connection had the writers' lock, each time something was on its way to it or from it."""
    seen: list[int] = []
    one_at_a_time = threading.Lock()
    held = "select count(*) from pg_locks where locktype = 'advisory' and granted and classid = %s and pid = %s"
    with psycopg.connect(url, autocommit=True) as beside:

        def note(backend: int) -> None:
            with one_at_a_time:
                row = beside.execute(held, (LOCK_CLASS, backend)).fetchone()
                seen.append(row[0] if row else 0)

        proxy.watch = note
        try:
            yield seen
        finally:
            proxy.watch = lambda _backend: None
