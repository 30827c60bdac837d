"""What other processes do in these tests: `python -m tests.stores.workers append URL PREFIX`, or `processes(…)`."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from holdfast.stores import open_store
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


def update(url: str, worker: int, count: int) -> None:
    """Its own engine on a shared database."""
    engine = an_engine(open_store(url))
    for n in range(count):
        engine.handle([an_event(key=f"{worker}/{n}", session="shared")])


def send(queue: multiprocessing.SimpleQueue, worker: int, count: int) -> None:
    """No engine: it tells the one that writes."""
    for n in range(count):
        queue.put(f"{worker}/{n}")


def appending(url: str, prefix: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.stores.workers", "append", url, prefix]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def _append(url: str, prefix: str) -> None:
    """Until killed: a key is printed only after `handle` came back."""
    engine, n = an_engine(open_store(url)), 0
    while True:
        batch = [f"{prefix}/{n + i}" for i in range(1 + n % 4)]
        engine.handle([an_event(key=key, body=b"b" * 3000) for key in batch])
        os.write(1, "".join(f"{key}\n" for key in batch).encode())
        n += len(batch)


if __name__ == "__main__":
    _append(*sys.argv[2:])
