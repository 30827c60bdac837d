"""Serves MCP over stdin and stdout, one message per line."""

import os
import sys
import threading

from holdfast import client
from holdfast.doors.mcp.connection import INVALID_REQUEST, NO_ANSWER, Connection, error_reply
from holdfast.doors.mcp.context import Caller

LONGEST_LINE = 4 << 20
HIDDEN_ON_STDIO = frozenset(("project", "pid"))
"""The parent agent works in one project and holds its leases itself."""


def serve_stdio() -> None:
    out, lock = sys.stdout.buffer, threading.Lock()

    def send(message: bytes) -> None:
        if message == NO_ANSWER:
            return
        with lock:
            out.write(message + b"\n")
            out.flush()

    connection = Connection(Caller(client.current_project(), client.current_session(), os.getppid()), HIDDEN_ON_STDIO)
    try:
        for line in iter(lambda: sys.stdin.buffer.readline(LONGEST_LINE), b""):
            # Too long: the rest of the line is dropped, and the next message is read as usual.
            if not line.endswith(b"\n") and len(line) >= LONGEST_LINE:
                _skip_line()
                send(error_reply(None, INVALID_REQUEST, f"a message is at most {LONGEST_LINE} bytes long"))
            elif line.strip():
                connection.receive(line, send)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        connection.close()


def _skip_line() -> None:
    while (rest := sys.stdin.buffer.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass
