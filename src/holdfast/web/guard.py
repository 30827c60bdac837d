"""Default deny, before any route: web pages, other users and other hosts never get as far as our code."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from holdfast import peers
from holdfast.web.keys import Keys, same
from holdfast.web.routes import Permission, Routes

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = tuple[int, str]

LARGEST_BODY = 10 << 20
BODY_WITHIN_S = 15.0
OWNER_KNOWN_S = 5.0
JSON = b"application/json"
HOSTS = ("127.0.0.1", "localhost")
NOT_FOR_PAGES = (Permission.HOOK, Permission.TOKEN)
CSRF = b"x-holdfast-csrf"
SAFE = (b"none", b"same-origin")
HEADERS = (
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
LOST = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<h1>This page needs a key</h1><p>Open it with this command, in a terminal:</p><pre>holdfast dashboard</pre></html>"""

NOWHERE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not found · Holdfast</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/static/0/tokens.css"><link rel="stylesheet" href="/static/0/layout.css">
<link rel="stylesheet" href="/static/0/parts.css"></head><body><nav class="side" aria-label="Screens">
<a class="brand" href="/"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M4 2v12M12 2v12M4 8h8"/></svg>Holdfast</a></nav>
<div class="frame"><main><section class="empty">
<h1>There is no such page</h1><p>The address may be mistyped, or what it showed was erased.</p>
<p><a href="/">Now</a> · <a href="/sessions">Sessions</a> · <a href="/search">Search</a> · <a href="/health">Health</a></p>
</section></main></div></body></html>"""


class Guard:
    """An ASGI layer. The kernel says whose connection it is; where it does not, only the token counts."""

    def __init__(self, app: App, routes: Routes, keys: Keys, port: int, largest_body: int = LARGEST_BODY) -> None:
        self._app, self._routes, self._keys, self._port = app, routes, keys, port
        self._largest = largest_body
        self._owners: dict[tuple[str, int], tuple[float, bool | None]] = {}
        self._hosts = {f"{host}:{port}".encode() for host in HOSTS}
        self._origins = {f"http://{host}:{port}".encode() for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # No websockets here: the connection is closed unanswered.
        asked = _Asked(scope)
        refused = self._refusal(scope, asked)
        if refused:
            await _answer(send, asked, *refused)
            return
        if scope["method"] != "GET":
            body = await self._body(receive)
            if body is None:
                await _answer(send, asked, *self._too_large())
                return
            receive = _replayed(body, receive)
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, asked: "_Asked") -> Refusal | None:
        permission, status = self._routes.of(scope)
        return (
            self._wrong_place(asked, permission)
            or self._wrong_person(scope, asked)
            or (None if permission else (status, "There is nothing here." if status == 404 else "Not that way."))
            or self._no_key(asked, permission)
            or (self._wrong_body(asked) if scope["method"] != "GET" else None)
        )

    def _wrong_place(self, asked: "_Asked", permission: Permission | None) -> Refusal | None:
        hosts = [value.lower() for name, value in asked.headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "This is not the host you are looking for."
        origins = {value for name, value in asked.headers if name == b"origin"}
        from_page = bool(origins) or asked.get(b"sec-fetch-site", b"none") != b"none"
        if from_page and permission in NOT_FOR_PAGES:
            return 403, "Web pages may not talk to Holdfast."
        if not origins <= self._origins or asked.get(b"sec-fetch-site", b"none") not in SAFE:
            return 403, "Other web pages may not talk to Holdfast."
        return None

    def _wrong_person(self, scope: Scope, asked: "_Asked") -> Refusal | None:
        has_key = self._has_token(asked) or self._has_cookie(asked)
        known = self._owner(tuple(scope["client"] or ("", 0)), has_key)
        if known is None:
            known = has_key or scope["path"] == "/open"
        return None if known else (401, "Only the user who runs Holdfast may talk to it.")

    def _owner(self, client: tuple[str, int], has_key: bool) -> bool | None:
        """ViewClient the kernel takes milliseconds on a busy machine: who has a key is asked once every few seconds."""
        now = time.monotonic()
        seen, known = self._owners.get(client, (0.0, None))
        if not has_key or now - seen > OWNER_KNOWN_S:
            seen, known = now, peers.is_owner(client, self._port)
            fresh = {c: found for c, found in self._owners.items() if now - found[0] < OWNER_KNOWN_S}
            self._owners = {**fresh, client: (seen, known)} if known else fresh
        return known

    def _no_key(self, asked: "_Asked", permission: Permission | None) -> Refusal | None:
        if permission in (Permission.HOOK, Permission.LINK) or self._has_token(asked):
            return None
        if permission is Permission.TOKEN or not self._has_cookie(asked):
            return 401, "This needs a key. Open the dashboard with: holdfast dashboard"
        if permission is Permission.WRITE and not (asked.get(b"origin") and self._has_csrf(asked)):
            return 403, "This was not asked from a page of ours."
        return None

    def _wrong_body(self, asked: "_Asked") -> Refusal | None:
        if asked.get(b"content-type").split(b";")[0].strip().lower() != JSON:
            return 415, "Only application/json."
        length = asked.get(b"content-length", b"0")
        return None if length.isdigit() and int(length) <= self._largest else self._too_large()

    def _too_large(self) -> Refusal:
        return 413, f"A body has at most {self._largest} bytes, and does not take for ever."

    def _has_token(self, asked: "_Asked") -> bool:
        given = asked.get(b"authorization")
        return given.startswith(b"Bearer ") and hmac.compare_digest(given[7:], self._keys.token.encode())

    def _has_cookie(self, asked: "_Asked") -> bool:
        return any(
            same(self._keys.cookie, value)
            for name, value in asked.cookies()
            if name == self._keys.cookie_name
        )  # fmt: skip

    def _has_csrf(self, asked: "_Asked") -> bool:
        return hmac.compare_digest(asked.get(CSRF), self._keys.csrf.encode())

    async def _body(self, receive: Receive) -> bytes | None:
        try:
            return await asyncio.wait_for(self._whole_body(receive), BODY_WITHIN_S)
        except TimeoutError:
            return None

    async def _whole_body(self, receive: Receive) -> bytes | None:
        """None when it is too long: a chunked body names no length beforehand."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or len(body) > self._largest:
                return None
            if not message.get("more_body"):
                return bytes(body)


class _Asked:
    """The headers of a request, names in small letters."""

    def __init__(self, scope: Scope) -> None:
        self.headers: list[tuple[bytes, bytes]] = [(name.lower(), value) for name, value in scope["headers"]]
        self._named = dict(self.headers)
        accepts = self.get(b"accept")
        self.for_people = scope["method"] == "GET" and b"text/html" in accepts

    def get(self, name: bytes, default: bytes = b"") -> bytes:
        return self._named.get(name, default)

    def cookies(self) -> list[tuple[str, str]]:
        pairs = self.get(b"cookie").decode("latin-1").split(";")
        return [(name.strip(), value.strip()) for name, _, value in (pair.partition("=") for pair in pairs)]


def _replayed(body: bytes, receive: Receive) -> Receive:
    """For the app behind: the body that was read already, then whatever else comes (the end of the connection)."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sent


async def _answer(send: Send, asked: _Asked, status: int, text: str) -> None:
    kind, body = JSON, msgspec.json.encode({"status": "error", "error": {"message": text, "status": status}})
    if asked.for_people and status in (401, 404, 405):
        kind, body = b"text/html; charset=utf-8", (LOST if status == 401 else NOWHERE).encode()
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
