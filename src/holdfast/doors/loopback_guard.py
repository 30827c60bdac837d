"""Checks of our HTTP servers before any route: host, web pages, the connection's owner, the token, the body.

The dashboard's API and MCP over HTTP listen on loopback, where any program and any web page of this machine can
connect.
"""

import asyncio
import hmac
import os
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = tuple[int, str]

HOSTS = ("127.0.0.1", "localhost")
# A browser's Sec-Fetch-Site for a typed address, and for our own pages.
SAFE_SITES = (b"none", b"same-origin")
# In seconds: a body sent byte by byte must not hold a connection.
BODY_WITHIN_S = 15.0
OWNER_KNOWN_S = 5.0
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# Columns of the tables in /proc/net.
LOCAL, REMOTE, UID = 1, 2, 7


class AskedHeaders:
    """The headers of a request, with lowercase names."""

    def __init__(self, scope: Scope) -> None:
        self.all: list[tuple[bytes, bytes]] = [(name.lower(), value) for name, value in scope["headers"]]
        self._named = dict(self.all)
        self.for_people = scope["method"] == "GET" and b"text/html" in self.get(b"accept")

    def get(self, name: bytes, default: bytes = b"") -> bytes:
        return self._named.get(name, default)

    def values(self, name: bytes) -> list[bytes]:
        return [value for header, value in self.all if header == name]

    def cookies(self) -> list[tuple[str, str]]:
        pairs = self.get(b"cookie").decode("latin-1").split(";")
        return [(name.strip(), value.strip()) for name, _, value in (pair.partition("=") for pair in pairs)]


class LoopbackGuard:
    """Default deny. The kernel tells whose connection it is; where it doesn't, only a key counts."""

    def __init__(self, port: int, token: str, largest_body: int) -> None:
        self._port, self._token, self._largest = port, token.encode(), largest_body
        self._owners: dict[tuple[str, int], tuple[float, bool | None]] = {}
        self._hosts = {f"{host}:{port}".encode() for host in HOSTS}
        self._origins = {f"http://{host}:{port}".encode() for host in HOSTS}

    def refuse_place(self, request_headers: AskedHeaders, *, own_pages: bool) -> Refusal | None:
        """Refuse a name bound to 127.0.0.1 by DNS, or a page in a browser. `own_pages`: pages from this server may
        ask."""
        hosts = [value.lower() for value in request_headers.values(b"host")]
        # DNS rebinding: a page whose name resolves to 127.0.0.1 still sends that name.
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "This is not the host you are looking for."
        # Programs that are no browsers send neither header.
        origins, site = set(request_headers.values(b"origin")), request_headers.get(b"sec-fetch-site", b"none")
        if not own_pages and (origins or site != b"none"):
            return 403, "Web pages may not talk to Holdfast."
        if not origins <= self._origins or site not in SAFE_SITES:
            return 403, "Other web pages may not talk to Holdfast."
        return None

    def is_owner(self, scope: Scope, has_key: bool) -> bool | None:
        """Asking the kernel takes milliseconds on a busy machine: a caller with a key is checked once every few
        seconds."""
        client, now = tuple(scope["client"] or ("", 0)), time.monotonic()
        seen, owned = self._owners.get(client, (0.0, None))
        if not has_key or now - seen > OWNER_KNOWN_S:
            seen, owned = now, is_owner(client, self._port)
            fresh = {c: entry for c, entry in self._owners.items() if now - entry[0] < OWNER_KNOWN_S}
            # Only the owner is cached; refused callers are looked up again.
            self._owners = {**fresh, client: (seen, owned)} if owned else fresh
        return owned

    def has_token(self, request_headers: AskedHeaders) -> bool:
        authorizations = request_headers.values(b"authorization")
        # In constant time, so that the response time reveals nothing about a guess.
        return len(authorizations) == 1 and hmac.compare_digest(authorizations[0], b"Bearer " + self._token)

    def too_large(self) -> Refusal:
        return 413, f"A body has at most {self._largest} bytes, and does not take for ever."

    async def read_body(self, receive: Receive) -> bytes | None:
        """None if it is too long or too slow: a chunked body declares no length."""
        try:
            return await asyncio.wait_for(self._whole_body(receive), BODY_WITHIN_S)
        except TimeoutError:
            return None

    async def _whole_body(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or len(body) > self._largest:
                return None
            if not message.get("more_body"):
                return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """For the wrapped app: the body already read, then whatever else comes (the disconnect)."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


# ── who is at the other end of a loopback connection? The kernel knows (P8) ──────────────────────────────────────────


def is_owner(client: tuple[str, int], server_port: int) -> bool | None:
    """None if the kernel does not say (no /proc): then a token decides."""
    uid = owner_of(client, server_port)
    return None if uid is None else uid == os.geteuid()


def owner_of(client: tuple[str, int], server_port: int) -> int | None:
    """The user who owns this socket, by its address and the port it connects to."""
    fields = connection_fields(client, server_port)
    return int(fields[UID]) if fields else None


def connection_fields(client: tuple[str, int], server_port: int) -> list[str]:
    """The kernel's line about this connection, from the client's side; empty if there is none."""
    client_address = _proc_address(*client)
    for table in TABLES:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            # A mapped IPv4 address in the IPv6 table ends like the plain one.
            if fields[LOCAL].endswith(client_address) and fields[REMOTE].endswith(f":{server_port:04X}"):
                return fields
    return []


def _proc_address(host: str, port: int) -> str:
    """In the format of /proc: an IPv4 address in the machine's byte order (also at the end of a mapped one)."""
    packed = socket.inet_aton(host)
    return f"{int.from_bytes(packed, 'little'):08X}:{port:04X}"
