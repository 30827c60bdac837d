"""How a command asks the daemon: how long it waits for one it started, and what it says when that one dies."""

import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from holdfast import client
from holdfast.core.errors import DaemonUnreachable
from holdfast.paths import Paths

MOST_LOOKS = 500


def test_a_daemon_that_ended_at_once_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looks = iter(range(MOST_LOOKS))
    real_sleep = time.sleep

    def sleep(seconds: float) -> None:
        assert next(looks, None) is not None, "it waits for a process that is gone"
        real_sleep(seconds)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(client, "START_S", float("inf"))
    monkeypatch.setattr(client.time, "sleep", sleep)
    with pytest.raises(DaemonUnreachable, match="no daemon serves"):
        client.DaemonClient(Paths(tmp_path / "state")).start()


@pytest.mark.parametrize("said", [b"", b'{"progress": [1, 2]}\n', b'{"progress": [1,'])
def test_a_daemon_that_dies_in_the_middle_of_an_answer_is_said_in_a_sentence(tmp_path: Path, said: bytes) -> None:
    paths = Paths(tmp_path / "s").prepare()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(paths.control_socket))
    listening.listen()

    def die_while_answering() -> None:
        sock, _ = listening.accept()
        sock.recv(1000)
        sock.sendall(said)
        sock.close()

    threading.Thread(target=die_while_answering, daemon=True).start()
    with listening, pytest.raises(DaemonUnreachable, match="daemon logs"):
        list(client.DaemonClient(paths).stream("rebuild", start=False))
