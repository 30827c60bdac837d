"""The five HTTP endpoints of seed 004 (S4-2)."""

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
from holdfast.doors.web.oak_payloads import ENDPOINTS, PREFIX, UnknownAgent, as_hook, context_in, forward_hook
from holdfast.doors.web.permissions import Permission, Routes
from holdfast.doors.web.view_client import ViewClient
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.doors.web.server import WebContext

# Sessions whose agent is cached; others are looked up in the log.
MOST_REMEMBERED = 2_000


class SessionAgents:
    """The agent of a session, for requests that name none: the seed's scripts name it only at the start."""

    def __init__(self, client: ViewClient) -> None:
        self._client = client
        self._named: dict[str, str] = {}

    async def fill_in(self, request_data: dict[str, Any]) -> None:
        session = request_data.get("session_id")
        if request_data.get("agent") is None and isinstance(session, str) and session:
            request_data["agent"] = self._named.get(session) or await self._client.run(lambda: self._look_up(session))

    def remember(self, request_data: Mapping[str, Any]) -> None:
        """Of an accepted request: its event may not be in the store when the next one comes."""
        session, agent = request_data.get("session_id"), request_data.get("agent")
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
        request_data = as_object(await request.body())
        if endpoint not in ENDPOINTS or request_data is None:
            status, problem = (404, "no such endpoint") if endpoint not in ENDPOINTS else (422, "not a JSON object")
            return JSONResponse({"status": "error", "error": problem}, status)
        await session_agents.fill_in(request_data)
        # The seed's scripts may repeat a request after a timeout.
        once = request.headers.get("idempotency-key", "")
        done = await run_in_threadpool(_forward_call, web_context.paths, endpoint, request_data, once, agents)
        if done.status_code == 200:
            session_agents.remember(request_data)
        return done

    routes.add("POST", PREFIX + "/{endpoint}", Permission.HOOK, lifecycle)


def _forward_call(
    paths: Paths, endpoint: str, request_data: dict[str, Any], once: str, agents: Mapping[str, Agent]
) -> JSONResponse:
    session_id = request_data.get("session_id")
    session = session_id if isinstance(session_id, str) and session_id else str(uuid.uuid4())
    try:
        call = as_hook(endpoint, request_data, session, agents)
        reply = forward_hook(paths, *call, once=f"{endpoint} {session} {once}" if once else "")
    except UnknownAgent as error:
        return JSONResponse({"status": "error", "error": str(error)}, 422)
    except HoldfastError as error:
        return JSONResponse({"status": "error", "error": error.message}, 503, {"retry-after": "1"})
    answer = as_object(reply) or {}
    shown = {"status": "ok", "session_id": session, "context": context_in(answer), "reply": answer}
    return JSONResponse(shown)


def as_object(body: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
