"""What other processes do in these tests: `python -m tests.stores.workers append PATH PREFIX`, or `processes(…)`."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.stores.sqlite import SqliteStore
from tests.factories import an_engine, an_event


@contextlib.contextmanager
def processes(work: Callable[..., None], each: Iterable[tuple[Any, ...]]) -> Iterator[None]:
    """All of them run while the block does; each must end well."""
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=work, args=args) for args in each]
    for process in running:
        process.start()
    try:
        yield
        for process in running:
            process.join(60)
        assert [process.exitcode for process in running] == [0] * len(running)
    finally:
        for process in running:
            process.kill()


def send(queue: multiprocessing.SimpleQueue, worker: int, count: int) -> None:
    """No engine: it tells the one that writes."""
    for n in range(count):
        queue.put(f"{worker}/{n}")


def appending(path: Path, prefix: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.stores.workers", "append", str(path), prefix]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def _append(path: str, prefix: str) -> None:
    """Until killed: a key is printed only after `handle` came back."""
    engine, n = an_engine(SqliteStore(Path(path))), 0
    while True:
        batch = [f"{prefix}/{n + i}" for i in range(1 + n % 4)]
        engine.handle([an_event(key=key, body=b"b" * 3000) for key in batch])
        os.write(1, "".join(f"{key}\n" for key in batch).encode())
        n += len(batch)


if __name__ == "__main__":
    _append(*sys.argv[2:])
