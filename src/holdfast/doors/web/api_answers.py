"""The shape of every API answer and error."""

import base64
import binascii
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from holdfast.core.errors import CommandRefused, DaemonUnreachable, HoldfastError, StoreDamaged, StoreUnavailable
from holdfast.core.text import escape_invisible
from holdfast.daemon.ingest.log import Log
from holdfast.doors.web.view_client import TooSlow

SCHEMA = 1
"""Raised with the command line's when the JSON changes in a way that breaks scripts."""
UNAVAILABLE = (DaemonUnreachable, StoreUnavailable, StoreDamaged, TooSlow)
encode = msgspec.json.Encoder(enc_hook=str).encode


class Answer(BaseModel):
    """The same as --json on the command line; `next` is the cursor of the following page."""

    schema_: int = Field(SCHEMA, alias="schema")
    data: Any
    next: str | None = None


class Problem(BaseModel):
    type: str
    message: str
    fix: str = ""


class Error(BaseModel):
    error: Problem


ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"description": "No key, or the wrong one."},
    403: {"description": "Asked from another web page."},
    404: {"model": Error, "description": "There is no such thing."},
    409: {"model": Error, "description": "Refused; the message says why."},
    413: {"description": "Too long."},
    415: {"description": "Not application/json."},
    421: {"description": "Another host."},
    422: {"model": Error, "description": "The question cannot be read."},
    503: {"model": Error, "description": "The daemon or the store does not answer."},
}


def json_answer(data: Any, following: Any = None) -> Response:
    """`following` is the view's cursor in any form; clients get one opaque word."""
    body = {"schema": SCHEMA, "data": data, "next": None if following is None else encode_cursor(following)}
    return Response(
        escape_invisible(encode(body).decode()), media_type="application/json", headers={"cache-control": "no-store"}
    )


def encode_cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(encode(value)).decode().rstrip("=")


def decode_cursor(word: str) -> Any:
    try:
        # Padding was removed, because a cursor is part of a URL.
        return msgspec.json.decode(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        raise CommandRefused("this cursor is not valid", fix="Use `next` of the page before.") from None


def register_error_handlers(web: FastAPI, log: Log) -> None:
    """Every error of every route in one form; never a traceback."""

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HoldfastError)
        # A missing thing is a 404; a refused act is a conflict.
        status = 503 if isinstance(error, UNAVAILABLE) else 404 if request.method == "GET" else 409
        return _error_response(status, type(error).__name__, error.message, error.fix)

    async def unreadable(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _error_response(422, "Unreadable", f"{where}: {first['msg']}")

    async def not_there(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        status = 422 if error.status_code == 400 else error.status_code
        return _error_response(status, "Unreadable" if status == 422 else "Http", str(error.detail))

    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("api.failed", error, path=request.url.path)
        return _error_response(500, "Unexpected", type(error).__name__, "See logs/web.log.")

    web.add_exception_handler(Exception, unexpected)
    web.add_exception_handler(HoldfastError, refused)
    web.add_exception_handler(RequestValidationError, unreadable)
    web.add_exception_handler(HTTPException, not_there)


def _error_response(status: int, kind: str, message: str, fix: str = "") -> JSONResponse:
    body = {"error": {"type": kind, "message": message, "fix": fix}}
    return JSONResponse(body, status, {"cache-control": "no-store"})
