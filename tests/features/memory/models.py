"""A model on loopback that speaks OpenAI's chat API: good, slow, failing or lying, as a test tells it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Say = Callable[["Asked"], None]


class Asked:
    """One request: what it said, and the means to answer it in any manner."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.handler, self.body = handler, body
        self.user = body["messages"][-1]["content"]
        self.turns = self.user.count("## turn ")

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def say(self, text: str, tokens: int = 0) -> None:
        usage = {"prompt_tokens": tokens // 2, "completion_tokens": tokens - tokens // 2, "total_tokens": tokens}
        self.reply(200, json.dumps({"choices": [{"message": {"content": text}}], "usage": usage}).encode())

    def observe(self, *observations: dict[str, Any], tokens: int = 500) -> None:
        self.say(json.dumps({"observations": list(observations)}), tokens)


def noting(asked: Asked) -> None:
    """One thing about every turn."""
    texts = [part.partition("user: ")[2].partition("\n")[0] for part in asked.user.split("## turn ")[1:]]
    asked.observe(
        *({"turn": n, "type": "discovery", "text": f"It was about: {t}"} for n, t in enumerate(texts, 1)), tokens=700
    )


class Model:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Say = noting
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = Asked(self, body)
                model.asked.append(asked)
                with suppress(OSError):  # whoever asked has gone
                    model.answer(asked)

            def log_message(self, *_: Any) -> None:
                return None

        return Handler


@contextmanager
def a_model() -> Iterator[Model]:
    model = Model()
    threading.Thread(target=model.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield model
    finally:
        model.server.shutdown()
        model.server.server_close()


def slowly(seconds: float) -> Say:
    def answer(asked: Asked) -> None:
        time.sleep(seconds)
        noting(asked)

    return answer


def drop_by_drop(asked: Asked) -> None:
    """A byte now and then, for ever: no single read ever times out."""
    asked.handler.send_response(200)
    asked.handler.send_header("Content-Length", "1000000")
    asked.handler.end_headers()
    while True:
        asked.handler.wfile.write(b" ")
        asked.handler.wfile.flush()
        time.sleep(0.1)
