"""One POST to an API in OpenAI's manner. `http.client`, not the `openai` package: that one repeats calls by itself, follows
redirects, and takes its address, key and proxy from the environment; here one call is one call, to the address in the settings."""

import contextlib
import http.client
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.features.memory.llm.request import ModelFailed, Question, Reply
from holdfast.features.memory.llm.settings import ModelSettings
from holdfast.features.memory.model import line, mapping

LARGEST = 4 << 20
LONGEST_WAIT_S = 3600.0
CHECK_EVERY_S = 0.25


def ask(question: Question, settings: ModelSettings, cancelled: Callable[[], bool]) -> Reply:
    address = urlsplit(settings.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions")
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=settings.patience_seconds)
    sent = False
    try:
        connection.connect()
        with _ended_in_time(connection.sock, settings.patience_seconds, cancelled):
            target = address.path + (f"?{address.query}" if address.query else "")
            sent = True
            connection.request("POST", target, _body(question, settings), _headers(settings))
            answer = connection.getresponse()
            said = answer.read(LARGEST + 1)
    except (OSError, http.client.HTTPException, ssl.SSLError, ValueError) as error:
        raise ModelFailed(f"{type(error).__name__}: {error}", spent=sent) from None
    finally:
        connection.close()
    return _understood(answer, said)


def _body(question: Question, settings: ModelSettings) -> bytes:
    messages = [{"role": "system", "content": question.system}, {"role": "user", "content": question.user}]
    return msgspec.json.encode(
        {"model": settings.name, "messages": messages, settings.output_name: settings.output_tokens, "stream": False}
    )


def _headers(settings: ModelSettings) -> dict[str, str]:
    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    return headers | ({"Authorization": f"Bearer {key}"} if key else {})


@contextlib.contextmanager
def _ended_in_time(sock: Any, patience_s: float, cancelled: Callable[[], bool]) -> Iterator[None]:
    """A socket's own timeout begins anew with every byte; this one does not."""
    over = threading.Event()
    deadline = time.monotonic() + patience_s

    def watch() -> None:
        while not over.wait(CHECK_EVERY_S):
            if time.monotonic() > deadline or cancelled():
                with contextlib.suppress(OSError):
                    sock.shutdown(2)
                return

    threading.Thread(target=watch, name="patience", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _understood(answer: http.client.HTTPResponse, said: bytes) -> Reply:
    if answer.status != 200:
        wait = _seconds(answer.headers.get("Retry-After"))
        raise ModelFailed(
            f"HTTP {answer.status}: {line(said[:300].decode('utf-8', 'replace'), 200)}", spent=False, wait_s=wait
        )
    if len(said) > LARGEST:
        raise ModelFailed("its answer is too long", spent=True)
    try:
        told = msgspec.json.decode(said)
        text = told["choices"][0]["message"]["content"]
    except (msgspec.DecodeError, RecursionError, KeyError, IndexError, TypeError):
        raise ModelFailed("its answer is not of that API", spent=True) from None
    if not isinstance(text, str):
        raise ModelFailed("its answer has no text", spent=True)
    return Reply(text, _tokens(mapping(told.get("usage"))))


def _tokens(usage: Any) -> int:
    numbers = [usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    first, second, total = (n if isinstance(n, int) and 0 <= n < 1 << 40 else 0 for n in numbers)
    return max(total, first + second)


def _seconds(value: str | None) -> float:
    try:
        return min(max(0.0, float(value or 0)), LONGEST_WAIT_S)
    except ValueError:
        return 0.0
