"""The protocol's own conformance suite against a real `holdfast mcp --http`."""

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tests.doors.mcp.clients import Served
from tests.kit import World
from tests.real.programs import program

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""Those that ask for no tool, resource or prompt of the suite's own; the others need its sample server."""


class TokenProxy:
    """Adds the token to each request: the suite cannot send one."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._forward, args=(self._listening.accept()[0],), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with closing(client), closing(socket.create_connection(("127.0.0.1", self._served.port))) as server:
            received = b""
            while b"\r\n\r\n" not in received:
                received += (chunk := client.recv(65536))
                if not chunk:
                    return
            head, _, body = received.partition(b"\r\n\r\n")
            head = head.replace(b":%d" % self.port, b":%d" % self._served.port)
            lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            lines += [b"Authorization: Bearer " + self._served.token.encode(), b"Connection: close"]
            server.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            threading.Thread(target=_copy, args=(client, server), daemon=True).start()
            _copy(server, client)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@pytest.fixture
def proxy(world: World) -> Iterator[TokenProxy]:
    world.start()
    served = Served(world)
    made = TokenProxy(served)
    yield made
    made.close()
    served.stop()


@pytest.mark.real
def test_the_conformance_suite_passes(proxy: TokenProxy) -> None:
    command = program("mcp-conformance")
    node = command.parent / "node"
    for scenario in SCENARIOS:
        run = subprocess.run(
            [node, command, "server", "--url", f"http://127.0.0.1:{proxy.port}/mcp", "--scenario", scenario],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        counted = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", run.stdout)
        assert counted, run.stdout + run.stderr
        assert counted[1] == counted[2] != "0" and counted[3] == "0", run.stdout
