"""Maps a function over many items in several processes."""

import collections
import contextlib
import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
Map = Callable[[Callable[[Given], Made], Iterable[Given]], Iterator[Made]]

MOST = 4


@contextlib.contextmanager
def process_map(worth_it: bool) -> Iterator[Map[Any, Any]]:
    """An ordered `map` with a bounded number of items in flight."""
    count = min(MOST, os.cpu_count() or 1)
    if not worth_it or count < 2:
        yield lambda work, items: map(work, items)
        return
    # A fork would copy locks and threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent)
    try:
        yield lambda work, items: _map_ahead(pool, work, items, 2 * count)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """A pool's worker waits for ever if only its parent was killed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _map_ahead(pool: Executor, work: Callable[[Given], Made], items: Iterable[Given], ahead: int) -> Iterator[Made]:
    waiting = iter(items)
    flying: collections.deque[Future[Made]] = collections.deque(
        pool.submit(work, i) for i in itertools.islice(waiting, ahead)
    )
    while flying:
        # Waiting for the oldest keeps the order.
        yield flying.popleft().result()
        flying.extend(pool.submit(work, item) for item in itertools.islice(waiting, 1))
