"""Serves MCP over streamable HTTP on loopback, for all projects of the owner of the token."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import parse_qs

import msgspec

from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.ids import delivery_key
from holdfast.doors.loopback_guard import AskedHeaders, LoopbackGuard, Receive, Refusal, Scope, Send
from holdfast.doors.mcp import revision
from holdfast.doors.mcp.connection import (
    INVALID_REQUEST,
    NO_ANSWER,
    VERSIONS,
    Connection,
    Message,
    RpcError,
    error_reply,
    parse_message,
)
from holdfast.doors.mcp.context import Caller, Context, resolve_project

HOST, PATH = "127.0.0.1", "/mcp"
# In bytes.
LARGEST_BODY = 1 << 20
MOST_SESSIONS = 100
SESSION_HEADER = b"mcp-session-id"
JSON, EVENTS = b"application/json", b"text/event-stream"
Headers = list[tuple[bytes, bytes]]
SendAnswer = Callable[[bytes, Send, Iterable[tuple[bytes, bytes]]], Awaitable[None]]


def listen_on_port(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except OSError as error:
        sock.close()
        raise CommandRefused(f"port {port} is taken ({error.strerror})", fix="Name another with --port.") from None
    sock.listen(128)
    return sock


def serve_http(sock: socket.socket, token: str, project: str) -> None:
    import uvicorn

    app = Guard(Endpoint(project), token, sock.getsockname()[1])
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=2, lifespan="off"
    )
    uvicorn.Server(config).run(sockets=[sock])


class Guard(LoopbackGuard):
    """Refuses wrong hosts, web pages, other users and missing tokens before anything is read."""

    def __init__(self, endpoint: "Endpoint", token: str, port: int) -> None:
        super().__init__(port, token, LARGEST_BODY)
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope, AskedHeaders(scope))
        body = b"" if refused or scope["method"] != "POST" else await self.read_body(receive)
        if refused or body is None:
            status, why = refused or self.too_large()
            await _send_reply(send, status, why.encode())
        else:
            await self._endpoint(scope, body, receive, send)

    def _refusal(self, scope: Scope, request_headers: AskedHeaders) -> Refusal | None:
        if refused := self.refuse_place(request_headers, own_pages=True):
            return refused
        has_token = self.has_token(request_headers)
        # Both are required: another user of the machine may have obtained the token.
        if self.is_owner(scope, has_token) is False or not has_token:
            return 401, "This needs the token that `holdfast mcp --http` names."
        return None if scope["path"] == PATH else (404, f"There is only {PATH} here.")


class Endpoint:
    """Up to 2025-11-25 a session lasts from `initialize` to DELETE, or until it is the oldest of too many. Later
    revisions have no sessions."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._sessions: dict[bytes, Connection] = {}

    async def __call__(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        headers = _collect_headers(scope)
        versions = headers.get(revision.VERSION_HEADER, [])
        if versions and versions[0].decode("latin-1") not in VERSIONS:
            await self._answer_stateless(scope, headers, body, receive, send)
            return
        named = next((value for name, value in scope["headers"] if name.lower() == SESSION_HEADER), b"")
        if scope["method"] == "POST":
            await self._post(scope, named, body, send)
        elif scope["method"] == "DELETE" and (ended := self._sessions.pop(named, None)):
            await asyncio.to_thread(ended.close)
            await _send_reply(send, 204, b"")
        else:
            await _send_reply(send, 405, b"Send messages with POST.", ((b"allow", b"POST, DELETE"),))

    async def _post(self, scope: Scope, named: bytes, body: bytes, send: Send) -> None:
        connection = self._sessions.get(named)
        if body.lstrip().startswith(b"["):
            await _send_refusal(send, 400, "send one message at a time")
        elif connection is None and named:
            await _send_refusal(send, 404, "this session has ended; initialize again")
        elif connection is None and not _is_initialize(body):
            await _send_refusal(send, 400, "a session begins with initialize")
        else:
            await self._converse(connection, named, scope, body, send)

    async def _converse(self, existing: Connection | None, named: bytes, scope: Scope, body: bytes, send: Send) -> None:
        try:
            connection = existing or Connection(Caller(await self._project_of(scope)), frozenset())
        except HoldfastError as error:
            await _send_refusal(send, 400, error.message)
            return
        if existing is None:
            named = delivery_key().encode()
            await self._keep_session(named, connection)
        await _exchange_message(connection, body, send, ((SESSION_HEADER, named),))

    async def _answer_stateless(
        self, scope: Scope, headers: dict[bytes, list[bytes]], body: bytes, receive: Receive, send: Send
    ) -> None:
        if scope["method"] != "POST":
            await _send_reply(send, 405, b"Send messages with POST.", ((b"allow", b"POST"),))
            return
        if rejected := _reject_stateless(headers, body):
            await _send_stateless(rejected, send)
            return
        try:
            connection = Connection(Caller(await self._project_of(scope)), frozenset())
        except HoldfastError as error:
            await _send_stateless(error_reply(None, INVALID_REQUEST, error.message), send)
            return
        exchange = asyncio.ensure_future(_exchange_message(connection, body, send, (), _send_stateless))
        closed = asyncio.ensure_future(_wait_for_disconnect(receive))
        await asyncio.wait((exchange, closed), return_when=asyncio.FIRST_COMPLETED)
        closed.cancel()
        # A closed stream is how a client cancels a call.
        await asyncio.to_thread(connection.close)
        await exchange

    async def _project_of(self, scope: Scope) -> str:
        """`/mcp?project=…` is for that project; else the one where the server was started."""
        named = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("project", [""])[0]
        if not named:
            return self._project
        return await asyncio.to_thread(resolve_project, named, Context(Caller(self._project), lambda *_: None))

    async def _keep_session(self, named: bytes, connection: Connection) -> None:
        self._sessions[named] = connection
        # The oldest are closed: agents may leave without DELETE.
        for oldest in list(self._sessions)[:-MOST_SESSIONS]:
            await asyncio.to_thread(self._sessions.pop(oldest).close)


async def _send_refusal(send: Send, status: int, problem: str) -> None:
    await _send_reply(send, status, error_reply(None, INVALID_REQUEST, problem), type_=JSON)


async def _send_with_200(message: bytes, send: Send, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    await _send_reply(send, 200, message, headers, JSON)


async def _send_stateless(message: bytes, send: Send, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """The status follows from the error's code."""
    code = msgspec.json.decode(message, type=_Reply).error.code
    await _send_reply(send, revision.HTTP_STATUS.get(code, 200), message, headers, JSON)


async def _exchange_message(
    connection: Connection,
    body: bytes,
    send: Send,
    headers: Iterable[tuple[bytes, bytes]],
    send_answer: SendAnswer = _send_with_200,
) -> None:
    """Sends one answer as JSON, or a stream of events where progress comes before it."""
    messages: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(message: bytes) -> None:
        # Answers come from threads; the queue belongs to the event loop.
        loop.call_soon_threadsafe(messages.put_nowait, message)

    follows = await asyncio.to_thread(connection.receive, body, put)
    if not follows:
        await _send_reply(send, 202, b"", headers)
        return
    message = await messages.get()
    if message == NO_ANSWER:
        await _send_reply(send, 202, b"", headers)
        return
    if _is_answer(message):
        await send_answer(message, send, headers)
        return
    await send({"type": "http.response.start", "status": 200, "headers": _response_headers(EVENTS, headers)})
    while True:
        last = message == NO_ANSWER or _is_answer(message)
        event = b"event: message\ndata: " + message + b"\n\n" if message else b""
        await send({"type": "http.response.body", "body": event, "more_body": not last})
        if last:
            return
        message = await messages.get()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _collect_headers(scope: Scope) -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def _reject_stateless(headers: dict[bytes, list[bytes]], body: bytes) -> bytes | None:
    """The error for a request whose headers and body differ, or that is no single request."""
    try:
        message = parse_message(body, Message)
    except RpcError as error:
        return error_reply(None, error.code, error.message)
    if message.id is None:
        return None
    # Missing fields are reported before headers that cannot match them.
    rejection = revision.check_request(message.params)
    if rejection is None or rejection.code != revision.INVALID_PARAMS:
        rejection = revision.check_headers(headers, message.method, message.params) or rejection
    return error_reply(message.id, *rejection) if rejection else None


class _Error(msgspec.Struct):
    code: int = 0


class _Reply(msgspec.Struct):
    error: _Error = msgspec.field(default_factory=_Error)


class _Kind(msgspec.Struct):
    method: str = ""


# Only an answer has no method; progress is a notification.
def _is_answer(message: bytes) -> bool:
    return not msgspec.json.decode(message, type=_Kind).method


def _is_initialize(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Kind).method == "initialize"
    except msgspec.DecodeError:
        return False


def _response_headers(type_: bytes, more: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(b"content-type", type_), (b"cache-control", b"no-store"), *more]


async def _send_reply(
    send: Send,
    status: int,
    body: bytes,
    headers: Iterable[tuple[bytes, bytes]] = (),
    type_: bytes = b"text/plain; charset=utf-8",
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": _response_headers(type_, headers)})
    await send({"type": "http.response.body", "body": body})
