"""The one thread that writes. It answers hooks first, and runs what other threads ask of it in between."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class WriterCalls:
    """Work handed to the writer thread from outside; `fileno` wakes its poll."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[[], Any], Future]] = deque()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._closed = self._woken = False
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self._wake_out.fileno()

    def call(self, work: Callable[[], T], timeout: float | None = 60) -> T:
        return self.submit(work).result(timeout)

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(RuntimeError("the daemon is stopping"))
                return future
            self._calls.append((work, future))
        self.wake()
        return future

    def wake(self) -> None:
        """Takes no lock: signal handlers call it."""
        self._woken = True
        try:
            self._wake_in.send(b"!")
        except BlockingIOError:
            pass  # Already awake.

    def waiting(self) -> bool:
        return bool(self._calls)

    def run_waiting(self) -> int:
        if not self._calls:
            if self._woken:
                self._drain()
            return 0
        self._drain()
        done = 0
        while self._calls:
            work, future = self._calls.popleft()
            done += 1
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        return done

    def close(self) -> None:
        with self._lock:
            self._closed = True
        while self._calls:
            self._calls.popleft()[1].set_exception(RuntimeError("the daemon is stopping"))

    def _drain(self) -> None:
        self._woken = False
        try:
            while self._wake_out.recv(4096):
                pass
        except BlockingIOError:
            pass
