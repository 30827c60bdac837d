"""`holdfast serve`: the guard, the routes behind it, and a server that listens on loopback only."""

import secrets
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from holdfast.app import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.errors import HoldfastError
from holdfast.paths import Paths, write_atomically
from holdfast.web import forward, oak
from holdfast.web.guard import App, Guard

HOST = "127.0.0.1"


def build(paths: Paths, port: int, agents: Mapping[str, Agent] = AGENTS) -> App:
    web = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @web.post(oak.PREFIX + "/{endpoint}")
    async def lifecycle(endpoint: str, request: Request) -> JSONResponse:
        told = _object(await request.body())
        if endpoint not in oak.ENDPOINTS or told is None:
            status, problem = (404, "no such endpoint") if endpoint not in oak.ENDPOINTS else (422, "not a JSON object")
            return JSONResponse({"status": "error", "error": problem}, status)
        once = request.headers.get("idempotency-key", "")
        return await run_in_threadpool(_taken, paths, endpoint, told, once, agents)

    return Guard(web, port=port, token=_token(paths))


def _taken(paths: Paths, endpoint: str, told: dict[str, Any], once: str, agents: Mapping[str, Agent]) -> JSONResponse:
    given = told.get("session_id")
    session = given if isinstance(given, str) and given else str(uuid.uuid4())
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    call = oak.as_hook(endpoint, told, session, agents, now)
    try:
        reply = forward.hook(paths, *call, once=f"{endpoint} {session} {once}" if once else "")
    except HoldfastError as error:
        return JSONResponse({"status": "error", "error": error.message}, 503, {"retry-after": "1"})
    answer = _object(reply) or {}
    context = (answer.get("hookSpecificOutput") or {}).get("additionalContext", "")
    return JSONResponse({"status": "ok", "session_id": session, "context": context, "reply": answer})


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _token(paths: Paths) -> str:
    """For machines whose kernel does not say who connects. Only the owner can read it."""
    place = paths.run / "http.token"
    if not place.exists():
        write_atomically(place, secrets.token_urlsafe(32).encode(), 0o600)
    return place.read_text().strip()


def serve(paths: Paths, port: int) -> None:
    config = uvicorn.Config(
        build(paths, port), host=HOST, port=port, log_level="warning", access_log=False, server_header=False,
        limit_concurrency=100, timeout_keep_alive=5, ws="none",
    )  # fmt: skip
    uvicorn.Server(config).run()
