"""`holdfast mcp --http`: the same tools over streamable HTTP, on loopback, for whoever shows the token.

The SDK checks Host and Origin too; ours comes first and knows the token and whose connection it is.
"""

import hmac
import socket
from collections.abc import Callable
from typing import Any

from holdfast import peers
from holdfast.core.errors import CommandRefused

HOST, PATH = "127.0.0.1", "/mcp"
NAMES = (HOST, "localhost")
LARGEST_BODY = 1 << 20
MOST_SESSIONS = 100
Asgi = Callable[[Any, Any, Any], Any]


def listening(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except OSError as error:
        sock.close()
        raise CommandRefused(f"port {port} is taken ({error.strerror})", fix="Name another with --port.") from None
    sock.listen(128)
    return sock


def serve(server: Any, sock: socket.socket, token: str) -> None:
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    port = sock.getsockname()[1]
    hosts = [f"{name}:{port}" for name in NAMES]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=LARGEST_BODY,
        max_sessions=MOST_SESSIONS,
    )  # fmt: skip
    config = uvicorn.Config(
        Guard(app, token, port), log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[sock])


class Guard:
    """Default deny, before the SDK sees anything: wrong host, any web page, another user, no token."""

    def __init__(self, app: Asgi, token: str, port: int) -> None:
        self._app, self._token, self._port = app, token.encode(), port
        self._hosts = {f"{name}:{port}".encode() for name in NAMES}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refusal(scope)
            await (_answer(send, *refused) if refused else self._app(scope, receive, send))

    def _refusal(self, scope: Any) -> tuple[int, str] | None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = [value.lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "This is not the host you are looking for."
        if any(name in (b"origin", b"sec-fetch-site") for name, _ in headers):
            return 403, "Web pages may not talk to Holdfast."
        if peers.is_owner(tuple(scope["client"] or ("", 0)), self._port) is False or not self._has_token(headers):
            return 401, "This needs the token that `holdfast mcp --http` names."
        return None if scope["path"] == PATH else (404, f"There is only {PATH} here.")

    def _has_token(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], b"Bearer " + self._token)


async def _answer(send: Any, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
