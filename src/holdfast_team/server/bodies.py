"""Reads bounded request bodies and builds answers and refusals."""

import zlib
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast_team.protocol import OLDEST_VERSION, VERSION, VERSION_HEADER, Problem
from holdfast_team.server import pages
from holdfast_team.server.tenancy import Refused

# In bytes; only batches may be larger.
SMALL_BODY = 256 << 10
T = TypeVar("T")


def need_version(request: Request, enrolling: int = VERSION) -> None:
    """A machine that joined long ago may be too old for this server; its events stay in its log."""
    said = request.headers.get(VERSION_HEADER, "1")
    if min(int(said) if said.isdecimal() and len(said) < 9 else 0, enrolling) < OLDEST_VERSION:
        raise Refused(426, f"this server speaks version {OLDEST_VERSION} or newer", "Update Holdfast on this machine.")


async def read_body(request: Request, most: int = SMALL_BODY) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        # Counted as it arrives: content-length may be missing or wrong.
        body += piece
        if len(body) > most:
            raise Refused(413, f"a request has at most {most} bytes")
    return bytes(body)


async def read_message(request: Request, type_: type[T]) -> T:
    return msgspec.json.decode(await read_body(request), type=type_)


def inflate_body(body: bytes, most: int) -> bytes:
    """Never more than `most`, however small it was compressed."""
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(body, most)
    except zlib.error as error:
        raise Refused(400, f"the batch is not compressed with zlib: {error}") from error
    if reader.unconsumed_tail or not reader.eof:
        raise Refused(413, f"a batch has at most {most} bytes, and ends")
    return plain


def as_response(value: Any) -> Response:
    if isinstance(value, Response):
        return value
    return Response(msgspec.json.encode(value), media_type="application/json")


def problem_response(request: Request, status: int, error: str, fix: str = "") -> Response:
    """A page for a browser, else a `Problem`."""
    if "text/html" in request.headers.get("accept", ""):
        return Response(pages.draw_problem(error, fix), status, pages.HEADERS, "text/html")
    return Response(msgspec.json.encode(Problem(error=error, fix=fix)), status, media_type="application/json")
