"""Default deny, before any route: web pages, other users and other hosts never get as far as our code."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from holdfast.web import peers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 10 << 20
JSON = b"application/json"
HOSTS = ("127.0.0.1", "localhost")


class Guard:
    """An ASGI layer. `token` is asked for only where the kernel does not say whose connection it is."""

    def __init__(self, app: App, *, port: int, token: str, largest_body: int = LARGEST_BODY) -> None:
        self._app, self._port, self._token, self._largest = app, port, token, largest_body
        self._hosts = {f"{host}:{port}".encode() for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # No websockets here: the connection is closed unanswered.
        refused = self._refusal(scope)
        if refused:
            await _answer(send, *refused)
            return
        body = await self._body(receive)
        if body is None:
            await _answer(send, *self._too_large())
            return
        await self._app(scope, _replayed(body, receive), send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        named = dict(headers)
        hosts = [value.lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "This is not the host you are looking for."
        if b"origin" in named or named.get(b"sec-fetch-site", b"none") != b"none":
            return 403, "Web pages may not talk to Holdfast."
        if not self._is_owner(scope, named):
            return 401, "Only the user who runs Holdfast may talk to it."
        if scope["method"] != "POST":
            return 405, "Only POST."
        if named.get(b"content-type", b"").split(b";")[0].strip().lower() != JSON:
            return 415, "Only application/json."
        length = named.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._largest:
            return self._too_large()
        return None

    def _too_large(self) -> tuple[int, str]:
        return 413, f"A body has at most {self._largest} bytes."

    def _is_owner(self, scope: Scope, named: dict[bytes, bytes]) -> bool:
        known = peers.is_owner(tuple(scope["client"] or ("", 0)), self._port)
        if known is not None:
            return known
        given = named.get(b"authorization", b"").removeprefix(b"Bearer ")
        return hmac.compare_digest(given, self._token.encode())

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole of it, or None when it is too long: a chunked body names no length beforehand."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or len(body) > self._largest:
                return None
            if not message.get("more_body"):
                return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """For the app behind: the body that was read already, then whatever else comes (the end of the connection)."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


async def _answer(send: Send, status: int, text: str) -> None:
    body = msgspec.json.encode({"status": "error", "error": text})
    headers = [(b"content-type", JSON), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
