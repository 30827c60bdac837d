"""A Holdfast that also listens on HTTP."""

import contextlib
import http.client
import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.doors.web.keys import Keys
from tests.kit import BIN, World, wait_until


@dataclass(frozen=True)
class Door:
    world: World
    port: int

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/api/oak/ci"

    # ── as a program with the token, as a page with the cookie ─────────────────────────────────────────────────────

    @property
    def token(self) -> str:
        return (self.world.paths.run / "http.token").read_text().strip()

    @property
    def keys(self) -> Keys:
        return Keys(self.token, self.port)

    @property
    def as_program(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def as_page(self) -> dict[str, str]:
        """What a browser sends from a page of ours."""
        return {"Cookie": f"{self.keys.cookie_name}={self.keys.cookie}", "Sec-Fetch-Site": "same-origin"}

    @property
    def as_writing_page(self) -> dict[str, str]:
        own = {"Origin": f"http://127.0.0.1:{self.port}", "X-Holdfast-CSRF": self.keys.csrf}
        return {**self.as_page, **own, "Content-Type": "application/json"}

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """(status, body, headers), as they come over the wire."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            streams = answer.headers.get_content_type() == "text/event-stream"
            return answer.status, b"" if streams else answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def page(self, path: str) -> str:
        status, body, _ = self.ask("GET", path, **self.as_page, Accept="text/html")
        assert status == 200, (path, status, body[:400])
        return body.decode()

    def api(self, path: str) -> Any:
        status, body, _ = self.ask("GET", f"/api/v1/{path}", **self.as_program)
        assert status == 200, (path, status, body[:400])
        return json.loads(body)


@contextlib.contextmanager
def serving(world: World) -> Iterator[Door]:
    pytest.importorskip("fastapi")
    process, port = _started(world)
    try:
        yield Door(world, port)
    finally:
        process.terminate()
        process.wait(20)


def _started(world: World) -> tuple[subprocess.Popen[bytes], int]:
    """Another test may take the port before we do: then it is another one."""
    for _ in range(5):
        port = free_port()
        process = subprocess.Popen(
            [BIN / "holdfast", "serve", "--port", str(port)], env=world.env, cwd=world.project,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(lambda port=port, process=process: _answers(port) or process.poll() is not None, "it listens", 60)
        if process.poll() is None:
            return process, port
    raise AssertionError("no server starts")


@pytest.fixture
def door(world: World) -> Iterator[Door]:
    with serving(world) as opened:
        yield opened


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One for a whole file: with two sessions in it, one of which has ended."""
    world = World(tmp_path_factory.mktemp("world"))
    try:
        with serving(world) as opened:
            tell_a_story(world)
            yield opened
    finally:
        world.close()


def tell_a_story(world: World) -> None:
    first = world.session("first")
    first.start()
    first.prompt("Make it faster")
    first.tool("Edit", file_path=str(world.project / "a.py"), old_string="one\ntwo\n", new_string="one\n2\n")
    first.tool("Bash", command="make test")
    first.failed("Bash", "Exit code 2", call="c9", command="make lint")
    first.fire("SubagentStart", "tell", agent_id="sub-1", agent_type="explorer")
    first.fire("SubagentStop", "tell", agent_id="sub-1", agent_type="explorer")
    first.stop("It is twice as fast.")
    first.end()
    second = world.session("second")
    second.start()
    second.prompt("Now the tests")
    second.before("Bash", command="sleep 100")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
