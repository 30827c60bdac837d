"""Denies every request that its route does not allow."""

import hmac
from collections.abc import Callable
from importlib import resources
from urllib.parse import urlsplit

import msgspec

from holdfast.doors.loopback_guard import (
    App,
    AskedHeaders,
    LoopbackGuard,
    Message,
    Receive,
    Refusal,
    Scope,
    Send,
    replay_body,
)
from holdfast.doors.web.keys import Keys, is_same_secret
from holdfast.doors.web.permissions import Permission, Routes

LARGEST_BODY = 10 << 20
JSON = b"application/json"
NOT_FOR_PAGES = (Permission.HOOK, Permission.TOKEN)
CSRF = b"x-holdfast-csrf"
HEADERS = (
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_TEMPLATES = resources.files(__package__).joinpath("templates")
LOST, NOWHERE = (_TEMPLATES.joinpath(name).read_text("utf-8").rstrip() for name in ("keyless.html", "nowhere.html"))


class Guard(LoopbackGuard):
    """An ASGI layer before the dashboard and its API."""

    def __init__(
        self,
        app: App,
        routes: Routes,
        keys: Keys,
        port: int,
        largest_body: int = LARGEST_BODY,
        *,
        address: Callable[[], str] = str,
    ) -> None:
        super().__init__(port, keys.token, largest_body)
        self._app, self._routes, self._keys, self._address = app, routes, keys, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # No websockets here: the connection is closed unanswered.
        request_headers = AskedHeaders(scope)
        refused = self._refusal(scope, request_headers)
        if refused:
            await _send_answer(send, request_headers, *refused)
            return
        if scope["method"] != "GET":
            body = await self.read_body(receive)
            if body is None:
                await _send_answer(send, request_headers, *self.too_large())
                return
            receive = replay_body(body, receive)
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, request_headers: AskedHeaders) -> Refusal | None:
        permission, status = self._routes.of(scope)
        if permission is Permission.ANSWER and self._at_own_address(request_headers):
            return self._refuse_body(request_headers) if scope["method"] != "GET" else None
        # Host and origin first: a page of another site does not even learn which routes exist.
        return (
            self.refuse_place(request_headers, own_pages=permission not in NOT_FOR_PAGES)
            or self._refuse_person(scope, request_headers)
            or (None if permission else (status, "There is nothing here." if status == 404 else "Not that way."))
            or self._refuse_keyless(request_headers, permission)
            or (self._refuse_body(request_headers) if scope["method"] != "GET" else None)
        )

    def _at_own_address(self, request_headers: AskedHeaders) -> bool:
        """Where the user said that links are opened: behind the user's own proxy, so the connection shows nothing."""
        address = urlsplit(self._address())
        origin = request_headers.get(b"origin").decode("latin-1")
        host = request_headers.get(b"host").decode("latin-1").lower()
        return (
            bool(address.netloc)
            and host == address.netloc.lower()
            and origin in ("", f"{address.scheme}://{address.netloc}")
        )

    def _refuse_person(self, scope: Scope, request_headers: AskedHeaders) -> Refusal | None:
        has_key = self.has_token(request_headers) or self._has_cookie(request_headers)
        allowed = self.is_owner(scope, has_key)
        # None: the system does not say whose process it is. /open has a one-time key of its own.
        if allowed is None:
            allowed = has_key or scope["path"] == "/open" or scope["path"].startswith("/a")
        return None if allowed else (401, "Only the user who runs Holdfast may talk to it.")

    def _refuse_keyless(self, request_headers: AskedHeaders, permission: Permission | None) -> Refusal | None:
        if permission in (Permission.HOOK, Permission.LINK, Permission.ANSWER) or self.has_token(request_headers):
            return None
        if permission is Permission.TOKEN or not self._has_cookie(request_headers):
            return 401, "This needs a key. Open the dashboard with: holdfast dashboard"
        # A browser sends the cookie for any page: writing requires a page of ours.
        if permission is Permission.WRITE and not (request_headers.get(b"origin") and self._has_csrf(request_headers)):
            return 403, "This request did not come from a Holdfast page."
        return None

    def _refuse_body(self, request_headers: AskedHeaders) -> Refusal | None:
        # A form of another site cannot send JSON without a preflight request, which is not answered.
        if request_headers.get(b"content-type").split(b";")[0].strip().lower() != JSON:
            return 415, "Only application/json."
        length = request_headers.get(b"content-length", b"0")
        return None if length.isdigit() and int(length) <= self._largest else self.too_large()

    def _has_cookie(self, request_headers: AskedHeaders) -> bool:
        return any(
            is_same_secret(self._keys.cookie, value)
            for name, value in request_headers.cookies()
            if name == self._keys.cookie_name
        )  # fmt: skip

    def _has_csrf(self, request_headers: AskedHeaders) -> bool:
        return hmac.compare_digest(request_headers.get(CSRF), self._keys.csrf.encode())


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sent


async def _send_answer(send: Send, request_headers: AskedHeaders, status: int, text: str) -> None:
    kind, body = JSON, msgspec.json.encode({"status": "error", "error": {"message": text, "status": status}})
    if request_headers.for_people and status in (401, 404, 405):
        kind, body = b"text/html; charset=utf-8", (LOST if status == 401 else NOWHERE).encode()
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
