"""Where the store is a server: the thread at the door journals and answers what nobody decides on, another one stores.

A file of our own is written in less time than a thread takes to wake, so there the two are one thread (`ingest.server`).
"""

import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.ingest.pipeline import NOTHING_TO_SAY, IngestPipeline
from holdfast.ingest.server import IDLE_S, LARGEST_BATCH, TICK_S, Answer, Asked, Handle
from holdfast.ingest.writer import WriterCalls


class Door:
    """`take` is the door's, everything else the writer's. Answers are sent by the door, which `sends` wakes."""

    def __init__(self, pipeline: IngestPipeline, accept: Handle, calls: WriterCalls, sends: WriterCalls) -> None:
        self._pipeline, self._accept, self._calls, self._sends = pipeline, accept, calls, sends
        self._waiting: deque[tuple[Sequence[Asked], Answer]] = deque()

    def take(self, batch: Sequence[Asked], answer: Answer) -> None:
        quiet = [one for one in batch if self._pipeline.is_quiet(one[1])]
        if quiet and self._pipeline.journal_beside([delivery for _, delivery in quiet]):
            answer(quiet, [NOTHING_TO_SAY] * len(quiet))
            # It is stored as soon as the writer has time.
            self._calls.wake()
            kept = set(map(id, quiet))
            batch = [one for one in batch if id(one) not in kept]
        if batch:
            self._waiting.append((batch, answer))
            self._calls.submit(self._serve_waiting, first=True)

    def _serve_waiting(self) -> None:
        """All that came while the writer waited for the server share one transaction, and with it one way there."""
        while self._waiting:
            groups = [self._waiting.popleft()]
            while self._waiting and sum(len(batch) for batch, _ in groups) < LARGEST_BATCH:
                groups.append(self._waiting.popleft())
            self._serve(groups)

    def _serve(self, groups: Sequence[tuple[Sequence[Asked], Answer]]) -> None:
        outcomes = None
        try:
            outcomes = self._accept([delivery for batch, _ in groups for _, delivery in batch])
        finally:
            rest = outcomes
            for batch, answer in groups:
                answers, rest = (rest[: len(batch)], rest[len(batch) :]) if rest is not None else (None, None)
                self._sends.submit(partial(answer, batch, answers))


class WriterThread:
    """The writer, where it is not the thread at the door: hooks that wait first, then what was answered, then the others."""

    def __init__(
        self, calls: WriterCalls, has_pending: Callable[[], bool], flush: Callable[[], None], tick: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:  # fmt: skip
        self._calls, self._has_pending, self._flush, self._tick, self._failed = calls, has_pending, flush, tick, failed
        self._stopping = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What was handed to it is done; then it ends. Raises what ended it before its time."""
        self._stopping = True
        self._calls.wake()
        self._thread.join()
        self._calls.run_first()
        self._calls.run_waiting()
        self._calls.close()
        if self._error:
            raise self._error

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            # As in a daemon of one thread: it ends, and the next hook starts another.
            self._error = error
            self._failed()

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._calls.fileno(), select.POLLIN)
        next_tick = 0.0
        while not self._stopping:
            wait_s = IDLE_S if self._calls.has_put_off() else max(0.0, next_tick - time.monotonic())
            came = poll.poll(0 if self._has_pending() or self._calls.waiting() else wait_s * 1000)
            ran = self._calls.run_first()
            # Before commands: who was answered finds what was answered.
            if ran or self._has_pending():
                self._flush()
            if self._calls.run_waiting() or self._calls.run_put_off(idle=not came):
                self._flush()
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                self._tick()
                self._flush()
