"""An embedding endpoint in OpenAI's manner, on loopback, for as long as a test needs it."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Model:
    """Gives every text a direction of its own; `fault` is how it goes wrong."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[str | None] = []
        self.fault = ""
        self.gate = threading.Event()
        """Closed, texts have to wait; questions do not."""
        self.gate.set()

    def answer(self, request: dict[str, Any]) -> tuple[int, bytes]:
        if len(request["input"]) > 1:
            self.gate.wait(30)
        if self.fault == "error":
            return 500, b"{}"
        if self.fault == "rubbish":
            return 200, b"<html>"
        rows = [{"index": n, "embedding": _direction(t)} for n, t in enumerate(request["input"])]
        return 200, json.dumps({"data": rows[:-1] if self.fault == "short" else rows[::-1]}).encode()


def _direction(text: str) -> list[float]:
    word = "wheel" if "wheel" in text else "engine" if "engine" in text else text
    return [byte - 127.5 for byte in hashlib.sha256(word.encode()).digest()]


@contextlib.contextmanager
def served() -> Iterator[tuple[Model, str]]:
    """(the model, its address)"""
    made = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.asked.append({"path": self.path, **request})
            made.headers.append(self.headers.get("Authorization"))
            code, body = made.answer(request)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        made.gate.set()
        server.shutdown()
        server.server_close()
