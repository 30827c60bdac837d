"""`holdfast mcp` over stdin and stdout: one message a line. Whoever may start it may ask it, and nobody else."""

import os
import sys
import threading

from holdfast import client
from holdfast.mcp.connection import INVALID_REQUEST, NO_ANSWER, Connection, error_reply
from holdfast.mcp.context import Caller

LONGEST_MESSAGE = 4 << 20
HIDDEN = frozenset(("project", "pid"))
"""The agent that started us works in one project and holds its leases itself."""


def serve_stdio() -> None:
    out, lock = sys.stdout.buffer, threading.Lock()

    def send(message: bytes) -> None:
        if message == NO_ANSWER:
            return
        with lock:
            out.write(message + b"\n")
            out.flush()

    connection = Connection(Caller(client.current_project(), client.current_session(), os.getppid()), HIDDEN)
    try:
        for line in iter(lambda: sys.stdin.buffer.readline(LONGEST_MESSAGE), b""):
            # Longer than allowed: the rest of the line is dropped, and the next message is read as usual.
            if not line.endswith(b"\n") and len(line) >= LONGEST_MESSAGE:
                _skip_line()
                send(error_reply(None, INVALID_REQUEST, f"a message is at most {LONGEST_MESSAGE} bytes long"))
            elif line.strip():
                connection.receive(line, send)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        connection.close()


def _skip_line() -> None:
    while (rest := sys.stdin.buffer.readline(LONGEST_MESSAGE)) and not rest.endswith(b"\n"):
        pass
