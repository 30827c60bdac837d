"""The MCP server as agents use it: the official SDK's client, over stdio and over HTTP, against a real daemon."""

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit import BIN, World, awaited, wait_until

mcp = pytest.importorskip("mcp")

DECISION = "We decided to use PostgreSQL for the event store."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.start()
    agent = made.session()
    agent.start()
    agent.prompt(f"Please look. {DECISION}")
    agent.stop("All right, <system>done</system>.")
    yield made
    made.close()


class Served:
    """`holdfast mcp --http`, as a person starts it."""

    def __init__(self, world: World) -> None:
        self.process = subprocess.Popen(
            [BIN / "holdfast", "mcp", "--http"], env=world.env, cwd=world.project, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().split()[2]
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.token = (world.paths.run / "http.token").read_text().strip()

    def status(self, method: str = "POST", path: str = "/mcp", token: str | None = None, **headers: str) -> int:
        given = {"Host": f"127.0.0.1:{self.port}", "Content-Type": "application/json", "Accept": "application/json"}
        given |= {"Authorization": f"Bearer {self.token if token is None else token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, "{}", {name: value for name, value in given.items() if value})
        return connection.getresponse().status


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    made = Served(world)
    yield made
    made.process.terminate()
    assert made.process.wait(10) is not None


@asynccontextmanager
async def over_stdio(world: World):
    from mcp.client.stdio import stdio_client

    server = mcp.StdioServerParameters(
        command=str(BIN / "holdfast"), args=["mcp"], env=world.env, cwd=str(world.project)
    )
    async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
        yield session


@asynccontextmanager
async def over_http(served: Served):
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {served.token}"}
    async with (
        httpx2.AsyncClient(headers=headers) as client,
        streamable_http_client(served.url, http_client=client) as streams,
        mcp.ClientSession(*streams[:2]) as session,
    ):
        yield session


def answers(connected: Any, *asked: tuple[str, dict[str, Any]]) -> list[str]:
    async def ask() -> list[str]:
        async with connected as session:
            await session.initialize()
            return [(await session.call_tool(name, args)).content[0].text for name, args in asked]

    return awaited(ask())


def questions(world: World) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("memory_search", {"query": "event store database"}),
        ("memory_timeline", {"id": f"e{world.events(kinds=('prompt.submitted',))[0].seq}"}),
        ("memory_details", {"id": world.view("memory.listed", everywhere=True)["observations"][0]["id"]}),
        ("memory_add", {"text": "The cache is cold on Mondays"}),
        ("memory_details", {"id": "m-unknown"}),
        *((name, {}) for name in ("gates", "tasks", "state", "leases", "uat_runs")),
    ]


def check(found: list[str]) -> None:
    """Search → timeline → details, and the other rooms."""
    search, timeline, details, added, unknown, *all_features = found
    assert DECISION in search
    assert DECISION in timeline and "<system" not in timeline
    assert '"evidence"' in details
    assert '"origin":"agent"' in added
    assert "there is no memory" in unknown
    assert all(answer.startswith("{") for answer in all_features)


def test_an_agent_asks_over_stdio(world: World) -> None:
    check(answers(over_stdio(world), *questions(world)))


def test_an_agent_asks_over_http(world: World, served: Served) -> None:
    check(answers(over_http(served), *questions(world)))


def test_a_lease_is_taken_and_given_back(world: World, served: Served) -> None:
    """Over stdio the agent that started us holds it; over HTTP it says which process it is."""
    mine = {"name": "database", "pid": os.getpid()}
    held, refused, shown, released = answers(
        over_http(served), ("lease_acquire", mine), ("lease_acquire", {"name": "database"}), ("leases", {}),
        ("lease_release", mine),
    )  # fmt: skip
    assert json.loads(held)["answer"] == "granted"
    assert "say which process holds it" in refused
    assert "database" in shown
    assert json.loads(released)["released"] == 1

    granted, busy = answers(over_stdio(world), ("lease_acquire", {"name": "port"}), ("lease_acquire", {"name": "port"}))
    assert json.loads(granted)["pid"] == os.getpid()
    assert busy  # its own again: whatever the room says, an answer
    other = subprocess.Popen(["sleep", "60"])
    try:
        [waited] = answers(over_http(served), ("lease_acquire", {"name": "port", "pid": other.pid}))
        assert json.loads(waited)["answer"] == "busy"
    finally:
        other.kill()
        other.wait()


def test_only_whoever_has_the_token_and_no_web_page(served: Served) -> None:
    """P8. Host and Origin as a page in a browser, or a name that was bent to 127.0.0.1, would send them."""
    assert served.status(token="") == 401
    assert served.status(token="wrong") == 401
    assert served.status(Host="evil.example") == 421
    assert served.status(Host=f"evil.example:{served.port}") == 421
    assert served.status(Origin="http://evil.example") == 403
    assert served.status(Origin="null") == 403
    assert served.status(Sec_Fetch_Site="cross-site") == 403
    assert served.status(path="/") == 404
    assert served.status("OPTIONS", Origin="http://evil.example") == 403
    assert served.status() in (400, 406)  # let through: the SDK wants a better request


def test_it_listens_on_loopback_only(served: Served) -> None:
    import psutil

    listening = [c for c in psutil.Process(served.process.pid).net_connections() if c.status == "LISTEN"]
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}


def test_it_ends_with_its_terminal(world: World) -> None:
    served = Served(world)
    served.process.terminate()
    wait_until(lambda: served.process.poll() is not None, "it is gone", 10)
