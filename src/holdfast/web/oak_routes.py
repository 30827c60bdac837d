"""The routes of seed 004 (S4-2)."""

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from holdfast.core.agent import Agent
from holdfast.core.errors import HoldfastError
from holdfast.core.ports import EventQuery
from holdfast.paths import Paths
from holdfast.web import forward, oak
from holdfast.web.routes import Permission, Routes
from holdfast.web.view_client import ViewClient

if TYPE_CHECKING:
    from holdfast.web.server import WebContext


MOST_REMEMBERED = 2_000


class SessionAgents:
    """Which agent a session belongs to, for requests that name none: the seed's scripts name it at the start only."""

    def __init__(self, client: ViewClient) -> None:
        self._client = client
        self._named: dict[str, str] = {}

    async def fill_in(self, told: dict[str, Any]) -> None:
        session = told.get("session_id")
        if told.get("agent") is None and isinstance(session, str) and session:
            told["agent"] = self._named.get(session) or await self._client.run(lambda: self._look_up(session))

    def remember(self, told: Mapping[str, Any]) -> None:
        """Of a request that was taken: its event may not be in the store yet when the next one comes."""
        session, agent = told.get("session_id"), told.get("agent")
        if isinstance(session, str) and isinstance(agent, str):
            self._named.setdefault(session, agent)
            while len(self._named) > MOST_REMEMBERED:
                del self._named[next(iter(self._named))]

    def _look_up(self, session: str) -> str | None:
        try:
            first = self._client.reader().events(EventQuery(session=session, limit=1))
        except HoldfastError:  # No store yet, or one that cannot be read: nobody is known.
            return None
        return first[0].agent or None if first else None


def register(routes: Routes, web_context: "WebContext", agents: Mapping[str, Agent]) -> None:
    session_agents = SessionAgents(web_context.client)

    async def lifecycle(endpoint: str, request: Request) -> JSONResponse:
        told = as_object(await request.body())
        if endpoint not in oak.ENDPOINTS or told is None:
            status, problem = (404, "no such endpoint") if endpoint not in oak.ENDPOINTS else (422, "not a JSON object")
            return JSONResponse({"status": "error", "error": problem}, status)
        await session_agents.fill_in(told)
        once = request.headers.get("idempotency-key", "")
        done = await run_in_threadpool(_taken, web_context.paths, endpoint, told, once, agents)
        if done.status_code == 200:
            session_agents.remember(told)
        return done

    routes.add("POST", oak.PREFIX + "/{endpoint}", Permission.HOOK, lifecycle, include_in_schema=False)


def _taken(paths: Paths, endpoint: str, told: dict[str, Any], once: str, agents: Mapping[str, Agent]) -> JSONResponse:
    given = told.get("session_id")
    session = given if isinstance(given, str) and given else str(uuid.uuid4())
    try:
        call = oak.as_hook(endpoint, told, session, agents)
        reply = forward.hook(paths, *call, once=f"{endpoint} {session} {once}" if once else "")
    except oak.UnknownAgent as error:
        return JSONResponse({"status": "error", "error": str(error)}, 422)
    except HoldfastError as error:
        return JSONResponse({"status": "error", "error": error.message}, 503, {"retry-after": "1"})
    answer = as_object(reply) or {}
    shown = {"status": "ok", "session_id": session, "context": oak.context_in(answer), "reply": answer}
    return JSONResponse(shown)


def as_object(body: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
