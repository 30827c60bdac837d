"""Receivers on loopback: HTTP (webhook, ntfy, chat) and SMTP, which keep what they got."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Got:
    """What arrived, with the time; `status` is what is answered, for a path or for all."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.status: dict[str, int] = {}
        self.location = ""
        self.port = 0
        self.hangs = threading.Event()
        self.hangs.set()

    def address(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def http_receiver() -> Iterator[Got]:
    got = Got()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.requests.append((self.path, dict(self.headers.items()), body))
            got.hangs.wait(30)
            self.send_response(got.status.get(self.path, 200))
            if got.status.get(self.path) == 302:
                self.send_header("location", got.location or got.address("/inside"))
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - the name that the library calls

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        got.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield got
        got.hangs.set()
        server.shutdown()


@contextmanager
def smtp_receiver() -> Iterator[Got]:
    got = Got()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 loopback")
            for line in self.rfile:
                word = line[:4].upper()
                if word == b"DATA":
                    self.say("354 go on")
                    body = b"".join(iter(self.rfile.readline, b".\r\n"))
                    got.requests.append(("mail", {}, body))
                self.say("221 bye" if word == b"QUIT" else "250 ok")
                if word == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        got.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield got
        server.shutdown()
