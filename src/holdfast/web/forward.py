"""Hands a hook in at the daemon's own door, so that it is as durable and as unique as any other."""

import hashlib
import socket
import time
from typing import Any

import msgspec

from holdfast import __version__
from holdfast.client import connect_socket
from holdfast.core.errors import DaemonUnreachable
from holdfast.core.ids import delivery_key
from holdfast.ingest.frames import ANSWER, LENGTH, as_frame
from holdfast.paths import Paths

PATIENCE_S = 5.0


def forward_hook(paths: Paths, mode: str, agent: str, event: str, payload: dict[str, Any], once: str = "") -> bytes:
    """The reply, after the commit. `once` makes a repeated request one event."""
    header = {
        # The same text gives the same key, and the log takes a key once.
        "key": hashlib.sha256(once.encode()).hexdigest()[:32] if once else delivery_key(),
        "mode": mode,
        "agent": agent,
        "event": event,
        "at": str(time.time_ns() // 1_000_000),
        "cwd": payload["cwd"] if isinstance(payload.get("cwd"), str) else "",
        "state": str(paths.state),
        "client": __version__,
        "via": "http",
    }
    try:
        return _exchange_frame(paths, as_frame(header, msgspec.json.encode(payload)))
    except OSError as error:
        raise DaemonUnreachable(str(error), fix="Nothing was recorded; try again.") from error


def _exchange_frame(paths: Paths, frame: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_S)
        connect_socket(sock, paths.hook_socket)
        sock.sendall(frame)
        with sock.makefile("rb") as answer:
            head = answer.read(len(ANSWER) + LENGTH.size)
            if len(head) < len(ANSWER) + LENGTH.size or not head.startswith(ANSWER):
                raise OSError("it closed the connection")
            return answer.read(LENGTH.unpack(head[len(ANSWER) :])[0])
