"""Asks the features' views on a reader of this process; the daemon is asked only for what it alone knows."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from holdfast.app import database_path, open_read_only
from holdfast.client import DaemonClient
from holdfast.core.errors import DaemonUnreachable, HoldfastError
from holdfast.core.ports import Reader
from holdfast.paths import Paths
from holdfast.stores.sqlite_reader import SqliteReader

Made = TypeVar("Made")

READERS = 4
PATIENCE_S = 20.0
IN_THE_DAEMON = frozenset(
    (
        "attention.show",
        "attention.linked",
        "gates.codes",
        "memory.search",
        "reindex.search",
        "reindex.status",
        "reindex.why",
    )
)
"""Views that need data in memory (an index, codes), which the daemon has already."""


class TooSlow(HoldfastError):
    """That took too long"""


class ViewClient:
    """Few threads, each with its own reader, so that many viewers cost memory once."""

    def __init__(self, paths: Paths) -> None:
        self.paths, self.app = paths, open_read_only(paths)
        self.database = database_path(paths, self.app.settings)
        self._client = DaemonClient(paths, timeout=PATIENCE_S)
        self._threads = threading.local()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="views")

    async def run(self, work: Callable[[], Made], within_s: float = PATIENCE_S) -> Made:
        """Run in one of our threads; the caller gets an error when it takes too long."""
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._pool, work), within_s)
        except TimeoutError:
            raise TooSlow(f"no answer within {within_s:.0f} s", fix="Try again, or ask for less.") from None

    def view(self, name: str, args: Mapping[str, Any] | None = None, *, project: str = "", session: str = "") -> Any:
        """The same answer as --json on the command line, for `project` and `session`."""
        if name in IN_THE_DAEMON:
            return self.daemon("view", name=name, args=args or {}, project=project, session=session)
        call = self.app.call(name, args or {}, self.reader(), session=session, project=project)
        return self.app.view(name, call)

    def status(self) -> dict[str, Any] | None:
        """The daemon's own status; None without a daemon."""
        try:
            value: dict[str, Any] | None = self.daemon("status", start=False)
            return value
        except DaemonUnreachable:
            return None

    def daemon(self, op: str, *, start: bool = True, **request: Any) -> Any:
        return self._client.ask(op, start=start, **request)

    def reader(self) -> Reader:
        """This thread's reader. A restored database is opened again."""
        file = self._file()
        cached: Reader | None = getattr(self._threads, "reader", None)
        if cached is not None and self._threads.file == file:
            return cached
        if cached is not None:
            cached.close()
        self._threads.reader, self._threads.file = SqliteReader(self.database), file
        value: Reader = self._threads.reader
        return value

    def _file(self) -> tuple[int, int]:
        try:
            file_status = os.stat(self.database)  # noqa: PTH116 - asked before every view
        except OSError:
            # Being replaced right now; the next look finds the new file.
            return 0, 0
        return file_status.st_dev, file_status.st_ino

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
