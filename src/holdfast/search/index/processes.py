"""Several processes for a big job, none for a small one. They are of our process group and end with it."""

import collections
import contextlib
import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
Map = Callable[[Callable[[Given], Made], Iterable[Given]], Iterator[Made]]

MOST = 4


@contextlib.contextmanager
def process_map(worth_it: bool) -> Iterator[Map[Any, Any]]:
    """A `map` that keeps the order. Only so much is in flight that results do not pile up in memory."""
    count = min(MOST, os.cpu_count() or 1)
    if not worth_it or count < 2:
        yield lambda work, items: map(work, items)
        return
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield lambda work, items: _mapped(pool, work, items, 2 * count)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _mapped(pool: Executor, work: Callable[[Given], Made], items: Iterable[Given], ahead: int) -> Iterator[Made]:
    waiting = iter(items)
    flying: collections.deque[Future[Made]] = collections.deque(
        pool.submit(work, i) for i in itertools.islice(waiting, ahead)
    )
    while flying:
        yield flying.popleft().result()
        flying.extend(pool.submit(work, item) for item in itertools.islice(waiting, 1))
