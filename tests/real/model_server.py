"""A scripted model on loopback: it speaks the providers' APIs and says what the test told it to say."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, Self

from . import dialects
from .turns import Call, Script, Turn, call, calls, error, slow, text
from .wire import Reply, Request, all_strings, as_json

__all__ = ["Call", "ModelServer", "Request", "Script", "Turn", "call", "calls", "error", "slow", "text"]

SIDE = text("ok")


class ModelServer:
    """Start it, give it a script, point an agent at `url`, read `requests` afterwards."""

    # requests: the log; unknown: those no dialect speaks for; escapes: hosts beyond loopback that an agent tried.
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.unknown: list[Request] = []
        self.escapes: list[str] = []
        self.replies: list[tuple[Request, Turn]] = []
        self._script = Script()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.model = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The loopback port the kernel chose."""
        return self._http.server_address[1]

    @property
    def url(self) -> str:
        """The base address to give to an agent."""
        return f"http://127.0.0.1:{self.port}"

    def script(self, turns: Script | Iterable[Turn]) -> None:
        """Replace what the model will say from now on; a plain list is for the main conversation."""
        script = turns if isinstance(turns, Script) else Script(main=turns)
        with self._lock:
            self._script = script

    def turns_left(self) -> int:
        """Turns of the script that no request has consumed."""
        with self._lock:
            return self._script.left()

    def conversation(self, audience: str = "main") -> list[Request]:
        """The logged requests of the main conversation, of sub-agents, or the side requests."""
        return [request for request in list(self.requests) if request.audience == audience]

    def texts_sent(self, audience: str | None = None) -> list[str]:
        """Every distinct string the agent sent to the model, in order of first appearance (tool schemas left out)."""
        chosen = list(self.requests) if audience is None else self.conversation(audience)
        found = (words for request in chosen for words in all_strings(_without_schemas(request.body)))
        return list(dict.fromkeys(found))

    def saw(self, fragment: str, audience: str | None = None) -> bool:
        """Whether a piece of text reached the model."""
        return any(fragment in words for words in self.texts_sent(audience))

    def wait_for(self, test: Callable[[ModelServer], bool], timeout: float = 20.0) -> None:
        """Block until the log satisfies a test, e.g. `lambda m: m.saw("hello")`."""
        limit = time.monotonic() + timeout
        while not test(self):
            if time.monotonic() > limit:
                raise TimeoutError(f"the model got {len(self.requests)} requests, none of which satisfied the test")
            time.sleep(0.02)

    def answer(self, request: Request) -> Reply:
        """Log a request and say the next line of the script."""
        dialect = dialects.for_path(request.path)
        if dialect is None:
            self.unknown.append(request)
            return as_json({"error": {"type": "not_found_error", "message": "not scripted"}}, 404)
        turn = self._next_turn(dialect, request)
        self.replies.append((request, turn))
        if turn.after:
            self._closing.wait(turn.after)
        return dialect.reply(request, turn)

    def _next_turn(self, dialect: ModuleType, request: Request) -> Turn:
        request.dialect = dialect.__name__.rpartition(".")[2]
        request.audience = dialect.audience(request)
        with self._lock:
            self.requests.append(request)
            if request.audience == "side":
                return SIDE
            return self._script.take(request.audience, dialect.task(request))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()


def _without_schemas(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "tools"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    model: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Agents drop connections whenever they like (Esc, kill -9); that is no error of the server's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self) -> None:
        raw = self._body()
        if "://" in self.path:  # a plain-http request to a proxy names the whole address
            return self.do_CONNECT()
        headers = {key.lower(): value for key, value in self.headers.items()}
        path = self.path.partition("?")[0]
        return self._send(self.server.model.answer(Request(self.command, path, headers, _parsed(raw))))

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST  # noqa: N815 - http.server looks them up by these names

    def do_CONNECT(self) -> None:
        """We are also the agents' proxy, so that whatever tries to leave the machine is noted and refused."""
        self.server.model.escapes.append(self.path)
        self.close_connection = True
        self._send(as_json({"error": "offline"}, 403))

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _chunks(self) -> Iterable[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _send(self, reply: Reply) -> None:
        """Head and body leave in one write: two small packets would wait for each other's acknowledgement."""
        head = f"HTTP/1.1 {reply.status} Scripted\r\nContent-Type: {reply.content_type}\r\n"
        head += f"Content-Length: {len(reply.body)}\r\n\r\n"
        body = b"" if self.command == "HEAD" else reply.body
        self.wfile.write(head.encode() + body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the request log is in the ModelServer."""


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw or b"{}")
    except ValueError:
        return {"raw": raw.decode(errors="replace")}
    return value if isinstance(value, dict) else {"items": value}
