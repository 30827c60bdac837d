"""Answers clients that no hook may wait for, each kind from a thread of its own."""

import _socket
import queue
import threading
from collections.abc import Callable

from holdfast.core.decision import Delivery
from holdfast.daemon.ingest.frames import answer_frame
from holdfast.daemon.ingest.log import Log

# Waiting requests; further ones are refused.
LONGEST_QUEUE = 64
# In seconds.
SEND_S = 0.2


class SideAnswers:
    def __init__(self, name: str, answer: Callable[[Delivery], str], log: Log) -> None:
        self._name, self._answer, self._log = name, answer, log
        self._waiting: queue.Queue[tuple[_socket.socket, Delivery]] = queue.Queue(LONGEST_QUEUE)

    def start(self) -> None:
        threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def take(self, sock: _socket.socket, delivery: Delivery) -> None:
        """Take over the connection, and close it."""
        try:
            self._waiting.put_nowait((sock, delivery))
        except queue.Full:
            # No answer at all: waiting for room would hold up the hook thread.
            sock.close()

    def _serve(self) -> None:
        while True:
            sock, delivery = self._waiting.get()
            try:
                sock.settimeout(SEND_S)
                sock.sendall(answer_frame(self._text(delivery).encode()))
            except OSError:
                pass
            finally:
                sock.close()

    def _text(self, delivery: Delivery) -> str:
        """Nothing rather than an error: it is on somebody's screen, or git waits for it."""
        try:
            return self._answer(delivery)
        except Exception as error:
            self._log.error(f"{self._name}.failed", error)
            return ""
