"""The web server process: the guard, the routes behind it, and a loopback socket."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI

from holdfast import __version__
from holdfast.agents import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.errors import CommandRefused
from holdfast.daemon.ingest.log import Log
from holdfast.doors.loopback_guard import App, Receive, Scope, Send
from holdfast.doors.web import api, keys, oak, page_routes, running
from holdfast.doors.web.guard import Guard
from holdfast.doors.web.keys import Keys
from holdfast.doors.web.live import Live
from holdfast.doors.web.pages import Static
from holdfast.doors.web.permissions import Routes
from holdfast.doors.web.view_client import ViewClient
from holdfast.paths import Paths

HOST = "127.0.0.1"
MOST_AT_ONCE = 300
CHECK_S = 5.0
BACKLOG = 256


@dataclass
class WebContext:
    """What the routes share."""

    paths: Paths
    port: int
    keys: Keys
    client: ViewClient
    live: Live
    log: Log
    static: Static = field(default_factory=Static)
    last_seen: float = field(default_factory=time.monotonic)
    warm: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None
    """Ends the server; set when it runs."""

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    def new_link(self) -> str:
        return f"{self.address}/open?once={self.keys.new_link()}"


def build_app(paths: Paths, port: int, agents: Mapping[str, Agent] = AGENTS) -> tuple[App, WebContext, Routes]:
    client = ViewClient(paths)
    web_context = WebContext(
        paths, port, Keys(keys.read_or_create_token(paths), port), client, Live(client), Log(paths.logs / "web.log")
    )
    web = FastAPI(
        title="Holdfast", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
        lifespan=lambda _web: _app_lifespan(web_context),
    )  # fmt: skip
    routes = Routes(web)
    for part in (oak, page_routes, api):
        part.register(routes, web_context, agents)
    routes.check()
    guard = Guard(
        _note_requests(web, web_context), routes, web_context.keys, port,
        address=lambda: str(client.app.settings.for_project("")["attention"].address),
    )  # fmt: skip
    return guard, web_context, routes


@contextlib.asynccontextmanager
async def _app_lifespan(web_context: WebContext) -> AsyncIterator[None]:
    yield
    await web_context.live.stop()
    web_context.client.close()


def _note_requests(web: FastAPI, web_context: WebContext) -> App:
    """A request that passed the guard shows activity."""

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        web_context.last_seen = time.monotonic()
        await web(scope, receive, send)

    return noted


class Server(uvicorn.Server):
    """Ends by itself without viewers for a while, or when there is nothing left to show."""

    def __init__(self, config: uvicorn.Config, web_context: WebContext) -> None:
        super().__init__(config)
        self._house = web_context
        self._born_in = web_context.paths.run_identity()
        web_context.stop = self.stop_serving

    def stop_serving(self) -> None:
        self._house.live.stopping = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._idle = asyncio.create_task(self._watch_idleness())
        self._warm = asyncio.create_task(self._warm_up())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams end first: uvicorn would wait for them.
        await self._house.live.stop()
        await super().shutdown(sockets)

    async def _warm_up(self) -> None:
        try:
            await self._house.client.run(self._house.warm)
        except Exception as error:  # Whoever looks first will see it.
            self._house.log.error("web.not-warm", error)

    async def _watch_idleness(self) -> None:
        web_context = self._house
        while not self.should_exit:
            await asyncio.sleep(CHECK_S)
            if web_context.paths.run_identity() != self._born_in:
                self.stop_serving()  # The state directory was thrown away or replaced, and everything with it.
                return
            minutes = web_context.client.app.settings.for_project("")["dashboard"].idle_minutes
            # An open page may stay for hours without a request.
            if web_context.live.viewers:
                web_context.last_seen = time.monotonic()
            elif minutes and time.monotonic() - web_context.last_seen > minutes * 60:
                self.stop_serving()


def serve_dashboard(paths: Paths, port: int, *, or_another: bool = False, tell: Any = None) -> None:
    lease = running.server_lease(paths.prepare())
    if not lease.acquire():
        other = running.running_server(paths) or {}
        raise CommandRefused(
            f"one is running already, on port {other.get('port', 'unknown')}", fix="End it: holdfast dashboard --stop"
        )
    sock = _bind_port(port, or_another)
    port = sock.getsockname()[1]
    web, web_context, _ = build_app(paths, port)
    sock.listen(BACKLOG)
    sock.setblocking(False)
    # After `listen`: whoever reads the address can connect.
    running.write_address(paths, port)
    if tell:
        tell(web_context)
    config = uvicorn.Config(
        web, log_level="warning", access_log=False, server_header=False, limit_concurrency=MOST_AT_ONCE,
        timeout_keep_alive=15, timeout_graceful_shutdown=2, ws="none", lifespan="on",
    )  # fmt: skip
    born_in = paths.run_identity()
    try:
        Server(config, web_context).run(sockets=[sock])
    finally:
        # A folder put in its place holds another server's address.
        if paths.run_identity() == born_in:
            running.remove_address(paths)
        lease.release()


def _bind_port(port: int, or_another: bool) -> socket.socket:
    # Port 0 is any free one.
    for candidate in (port, 0) if or_another else (port,):
        # The protocol is named: only then does asyncio set TCP_NODELAY.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, candidate))
        except OSError as error:
            sock.close()
            problem = error
        else:
            return sock
    raise CommandRefused(f"port {port} cannot be used: {problem.strerror}", fix="Choose another one with --port.")
