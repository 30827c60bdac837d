"""The writer thread: answers hooks first, and runs other threads' calls in between."""

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LONGEST_PUT_OFF_S = 2.0
"""How long deferred work waits while hooks come without a pause."""


class Pending(Generic[T]):
    """A call to the writer and its result. Not a `Future`, which imports logging and delays the start."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self._done = work, threading.Event()
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._work()
        # Errors belong to the caller: the writer thread must go on.
        except BaseException as error:
            self._error = error
        self._done.set()

    def refuse(self, error: Exception) -> None:
        self._error = error
        self._done.set()

    def result(self, timeout: float | None = None) -> T:
        if not self._done.wait(timeout):
            raise TimeoutError("the daemon's writer is busy")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class WriterCalls:
    """Calls handed to the writer thread; `fileno` wakes its poll."""

    def __init__(self) -> None:
        self._calls: deque[Pending[Any]] = deque()
        self._put_off: deque[tuple[float, Pending[Any]]] = deque()
        """Work for idle moments, with the time each was handed over."""
        # The writer sleeps in poll; a byte through this pair wakes it.
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._closed = self._woken = False
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self._wake_out.fileno()

    def call(self, work: Callable[[], T], timeout: float | None = 60) -> T:
        return self.submit(work).result(timeout)

    def call_when_idle(self, work: Callable[[], T], timeout: float | None = 60) -> T:
        """For work that nobody waits for, such as indexing: hooks, commands and jobs come first."""
        return self.submit(work, idle=True).result(timeout)

    def submit(self, work: Callable[[], T], *, idle: bool = False) -> Pending[T]:
        pending = Pending(work)
        # Under the lock: after `close` no call may enter a queue that nobody empties.
        with self._lock:
            if self._closed:
                pending.refuse(RuntimeError("the daemon is stopping"))
                return pending
            if idle:
                self._put_off.append((time.monotonic(), pending))
            else:
                self._calls.append(pending)
        self.wake()
        return pending

    def wake(self) -> None:
        """Takes no lock, because signal handlers call it."""
        try:
            self._wake_in.send(b"!")
        except BlockingIOError:
            pass  # Already awake.
        # Set after the byte is written: otherwise another thread could look for the byte too early and never again.
        self._woken = True

    def waiting(self) -> bool:
        return bool(self._calls)

    def has_put_off(self) -> bool:
        return bool(self._put_off)

    def run_put_off(self, *, idle: bool) -> bool:
        """Run one piece: a hook may be waiting by now."""
        if not self._put_off or not (idle or time.monotonic() - self._put_off[0][0] > LONGEST_PUT_OFF_S):
            return False
        self._put_off.popleft()[1].run()
        return True

    def run_waiting(self) -> int:
        # Before the calls: one added later wakes the poll again. Also without any call, because a signal handler wakes
        # without one and poll would return at once for ever.
        if self._woken:
            self._drain()
        done = 0
        while self._calls:
            self._calls.popleft().run()
            done += 1
        return done

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for pending in (*self._calls, *(pending for _, pending in self._put_off)):
            pending.refuse(RuntimeError("the daemon is stopping"))
        self._calls.clear()
        self._put_off.clear()

    def _drain(self) -> None:
        self._woken = False
        try:
            while self._wake_out.recv(4096):
                pass
        except BlockingIOError:
            pass
