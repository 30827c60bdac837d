"""The official SDK's client, connected to a real `holdfast mcp` over stdio and over HTTP."""

import http.client
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import mcp

from tests.kit import BIN, World, awaited

Connected = AbstractAsyncContextManager[mcp.ClientSession]


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

    def request(
        self, method: str = "POST", path: str = "/mcp", token: str | None = None, body: str = "{}", **headers: str
    ) -> http.client.HTTPResponse:
        given = {"Host": f"127.0.0.1:{self.port}", "Content-Type": "application/json", "Accept": "application/json"}
        given |= {"Authorization": f"Bearer {self.token if token is None else token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body, {name: value for name, value in given.items() if value})
        return connection.getresponse()

    def status(self, method: str = "POST", path: str = "/mcp", token: str | None = None, **headers: str) -> int:
        return self.request(method, path, token, **headers).status

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@asynccontextmanager
async def over_stdio(world: World, handshake: bool = True) -> AsyncIterator[mcp.ClientSession]:
    from mcp.client.stdio import stdio_client

    server = mcp.StdioServerParameters(
        command=str(BIN / "holdfast"), args=["mcp"], env=world.env, cwd=str(world.project)
    )
    async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
        await _begin(session, handshake)
        yield session


async def _begin(session: mcp.ClientSession, handshake: bool) -> None:
    """By `initialize`, or by the stateless revision of 2026-07-28."""
    if handshake:
        await session.initialize()
        return
    session.adopt(mcp.types.DiscoverResult.model_validate(await session.send_discover("2026-07-28")))


@asynccontextmanager
async def over_http(served: Served, query: str = "", handshake: bool = True) -> AsyncIterator[mcp.ClientSession]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {served.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as client,
        streamable_http_client(served.url + query, http_client=client) as streams,
        mcp.ClientSession(*streams[:2]) as session,
    ):
        await _begin(session, handshake)
        yield session


def call_tools(connected: Connected, *asked: tuple[str, dict[str, Any]]) -> list[mcp.types.CallToolResult]:
    async def ask() -> list[mcp.types.CallToolResult]:
        async with connected as session:
            return [await session.call_tool(name, args) for name, args in asked]

    return awaited(ask())


def text_of(result: mcp.types.CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, mcp.types.TextContent)
    return content.text
