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
from holdfast.paths import Paths
from holdfast.web import forward, oak
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext


def register(routes: Routes, web_context: "WebContext", agents: Mapping[str, Agent]) -> None:
    async def lifecycle(endpoint: str, request: Request) -> JSONResponse:
        told = as_object(await request.body())
        if endpoint not in oak.ENDPOINTS or told is None:
            status, problem = (404, "no such endpoint") if endpoint not in oak.ENDPOINTS else (422, "not a JSON object")
            return JSONResponse({"status": "error", "error": problem}, status)
        once = request.headers.get("idempotency-key", "")
        return await run_in_threadpool(_taken, web_context.paths, endpoint, told, once, agents)

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
