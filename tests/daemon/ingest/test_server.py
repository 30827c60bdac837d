"""A frame comes in as many pieces as its client and the kernel make of it."""

import select
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.core.decision import Delivery
from holdfast.core.engine import Outcome
from holdfast.daemon.ingest.frames import EMPTY_ANSWER, as_frame
from holdfast.daemon.ingest.server import FIRST_READ, MOST_CHUNKS, HookServer, listen_on_socket
from holdfast.daemon.ingest.writer import WriterCalls

HEADER = {"key": "a1", "agent": "claude-code", "event": "PostToolUse", "mode": "ask", "cwd": "/p"}


@pytest.mark.parametrize(
    ("size", "piece"), [(300, 1), (300, 7), (40_000, 90), (400_000, FIRST_READ - 1), (400_000, FIRST_READ + 1)]
)
def test_a_frame_in_pieces_is_one_delivery(tmp_path: Path, size: int, piece: int) -> None:
    came: list[Delivery] = []

    def handle(deliveries: Sequence[Delivery]) -> list[Outcome]:
        came.extend(deliveries)
        return [Outcome() for _ in deliveries]

    listening = listen_on_socket(tmp_path / "hook.sock")
    server = HookServer(listening, handle, WriterCalls(), lambda: None, lambda: None)
    # One thread does both sides, so that the server sees each piece by itself.
    server._poll.register(listening.fileno(), select.POLLIN)
    body = bytes(n % 251 for n in range(size))
    frame = as_frame(HEADER, body)
    with socket.socket(socket.AF_UNIX) as client, listening:
        client.connect(str(tmp_path / "hook.sock"))
        most = 0
        for at in range(0, len(frame), piece):
            assert not came
            client.sendall(frame[at : at + piece])
            server._wait(1.0)
            most = max(most, *(len(one.chunks) for one in server._open.values()), 0)
        server._answer_ready()
        assert client.recv(99) == EMPTY_ANSWER
    assert [(one.key, one.cwd, one.body) for one in came] == [("a1", "/p", body)]
    assert 0 < most <= MOST_CHUNKS + 1
