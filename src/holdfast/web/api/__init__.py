"""The API: /api/v1, the same views as the command line's --json, described by OpenAPI 3.1."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from holdfast.core.agent import Agent
from holdfast.core.errors import CommandRefused
from holdfast.web.api import requests, views
from holdfast.web.api.requests import ERRORS, Answer, json_answer
from holdfast.web.guard import Permission, Routes
from holdfast.web.screen import collect_health

if TYPE_CHECKING:
    from holdfast.web.server import WebContext


# How Holdfast itself is.


def _register_health(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def health() -> Any:
        """The daemon, the store, jobs and errors."""
        return json_answer(await web_context.client.run(lambda: collect_health(web_context.client)))

    routes.add(
        "GET", f"{prefix}/health", Permission.READ, health, response_model=Answer, responses=ERRORS, tags=["health"]
    )


# What a page may do: commands of the features, each named here. Only the daemon carries them out.

ALLOWED_COMMANDS = frozenset(
    (
        "sessions.close", "sessions.reopen", "log.note",
        "gates.satisfy", "gates.approve", "gates.accept", "gates.pause", "gates.resume", "gates.clear",
        "memory.add", "memory.pin", "memory.promote", "memory.keep", "memory.drop", "memory.forget",
        "project.look", "project.add_task", "project.finish_task", "project.dismiss_task",
    )
)  # fmt: skip
"""Nothing that imports or runs a program of the caller's choice; `memory.forget` erases, and its page asks first."""


class Order(BaseModel):
    """A command: its arguments, and for which project and session."""

    model_config = ConfigDict(extra="forbid")

    args: dict[str, Any] = Field(default_factory=dict)
    project: str = Field("", max_length=5000)
    session: str = Field("", max_length=600)


def _register_commands(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def command(name: Annotated[str, Path(max_length=100)], order: Order) -> Any:
        """Carry out one command of a feature. It is an event in the log, like everything else."""
        if name not in ALLOWED_COMMANDS:
            raise CommandRefused(f"{name} cannot be done from a page", fix="Use the command line.")
        request: dict[str, Any] = order.model_dump() | {"name": name}
        return json_answer(await web_context.client.run(lambda: web_context.client.daemon("command", **request)))

    routes.add(
        "POST", f"{prefix}/commands/{{name}}", Permission.WRITE, command,
        response_model=Answer, responses=ERRORS, tags=["commands"],
    )  # fmt: skip


# Server-sent events: what is new in the log, from a number on.

AfterSeq = Annotated[int | None, Query(ge=0, le=1 << 53, description="The last event that is known already.")]
# A proxy must hand the lines on at once.
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def _register_live(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def live(
        after: AfterSeq = None,
        session: Annotated[str, Query(max_length=600)] = "",
        kinds: Annotated[str, Query(max_length=600, description="How kinds begin, e.g. `tool. decision.`")] = "",
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        """Every event after `after` (or after the header Last-Event-ID), then each as it is committed."""
        # A browser that connects again names the last event it has.
        again = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 17 else after
        wanted_kinds = tuple(k for k in kinds.split() if k != "*")
        return StreamingResponse(
            web_context.live.stream(again, session, wanted_kinds), 200, STREAM_HEADERS, "text/event-stream"
        )

    routes.add("GET", f"{prefix}/live", Permission.READ, live, response_class=StreamingResponse, tags=["live"])


# About the server itself: a new link, and its end. Only for who can read the token file.


def _register_server(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def link() -> dict[str, str]:
        return {"link": web_context.new_link(), "address": web_context.address}

    async def stop() -> dict[str, bool]:
        asyncio.get_running_loop().call_later(0.05, web_context.stop)
        return {"stopping": True}

    routes.add("POST", f"{prefix}/link", Permission.TOKEN, link, include_in_schema=False)
    routes.add("POST", f"{prefix}/stop", Permission.TOKEN, stop, include_in_schema=False)


PREFIX = "/api/v1"


def register(routes: Routes, web_context: "WebContext", _agents: Mapping[str, Agent]) -> None:
    requests.register_error_handlers(routes.web, web_context.log)
    for add_part in (views.register, _register_health, _register_commands, _register_live, _register_server):
        add_part(routes, web_context, PREFIX)

    async def openapi() -> dict[str, Any]:
        return routes.web.openapi()

    routes.add("GET", f"{PREFIX}/openapi.json", Permission.READ, openapi, include_in_schema=False)
