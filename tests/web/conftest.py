"""A Holdfast that also listens on HTTP."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.kit import BIN, World, wait_until


@dataclass(frozen=True)
class Door:
    world: World
    port: int

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/api/oak/ci"


@pytest.fixture
def door(world: World) -> Iterator[Door]:
    pytest.importorskip("fastapi")
    port = _free_port()
    serving = subprocess.Popen(
        [BIN / "holdfast", "serve", "--port", str(port)], env=world.env, cwd=world.project,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: _answers(port), "it listens")
        yield Door(world, port)
    finally:
        serving.terminate()
        serving.wait(10)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
