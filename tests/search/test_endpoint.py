"""An embedding endpoint in OpenAI's manner, on loopback: what it is asked, what becomes of its answers and its faults."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.search import choose
from holdfast.search.embedder import NoEmbedder
from holdfast.search.settings import IndexSettings
from tests.search.tree import Tree

FILES = {
    "a.py": "def alpha():\n    return 'engine'\n",
    "b.py": "def beta():\n    return 'wheel'\n",
}


class Model:
    """Gives every text a direction of its own; `fault` is how it goes wrong."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[str | None] = []
        self.fault = ""

    def answer(self, request: dict[str, Any]) -> tuple[int, bytes]:
        if self.fault == "error":
            return 500, b"{}"
        if self.fault == "rubbish":
            return 200, b"<html>"
        rows = [{"index": n, "embedding": _direction(t)} for n, t in enumerate(request["input"])]
        return 200, json.dumps({"data": rows[:-1] if self.fault == "short" else rows[::-1]}).encode()


def _direction(text: str) -> list[float]:
    word = "wheel" if "wheel" in text else "engine" if "engine" in text else text
    return [byte - 127.5 for byte in hashlib.sha256(word.encode()).digest()]


@pytest.fixture
def model() -> Iterator[tuple[Model, str]]:
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
    yield made, f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def asked(tree: Tree, text: str, settings: IndexSettings) -> Any:
    from holdfast.search.answer import Question
    from holdfast.search.searcher import Searcher

    return Searcher(tree.place).ask(Question(text=text), settings)


def test_it_embeds_and_answers(model: tuple[Model, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, url = model
    monkeypatch.setenv("MY_KEY", "abc")
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    settings = IndexSettings(embedder=url, model="nomic", key_variable="MY_KEY")
    assert tree.index(settings=settings).counts.embedded == 2
    assert served.asked[0]["path"] == "/v1/embeddings"
    assert served.asked[0]["model"] == "nomic"
    assert served.headers == ["Bearer abc"]
    answer = asked(tree, "the wheel", settings)
    assert answer.note == ""
    assert answer.hits[0].path == "b.py"
    assert any(why.startswith("meaning 1.0") for why in answer.hits[0].why)


@pytest.mark.parametrize("fault", ["error", "rubbish", "short"])
def test_its_faults_leave_full_text(model: tuple[Model, str], tmp_path: Path, fault: str) -> None:
    served, url = model
    served.fault = fault
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    settings = IndexSettings(embedder=url, model="nomic")
    told = tree.index(settings=settings)
    assert told.status == "completed"
    assert url in told.note
    assert asked(tree, "beta", settings).hits[0].path == "b.py"
    served.fault = ""
    assert tree.index(settings=settings).counts.embedded == 2, "tried again with the next run"


def test_it_goes_while_it_was_in_use(model: tuple[Model, str], tmp_path: Path) -> None:
    served, url = model
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    settings = IndexSettings(embedder=url, model="nomic")
    tree.index(settings=settings)
    served.fault = "error"
    answer = asked(tree, "wheel", settings)
    assert answer.note.startswith("full text only")
    assert answer.hits[0].path == "b.py"


def test_from_our_model_to_an_endpoint_and_back(model: tuple[Model, str], tmp_path: Path) -> None:
    _, url = model
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    ours, theirs = IndexSettings(), IndexSettings(embedder=url, model="nomic")
    for settings in (ours, theirs, ours):
        assert tree.index(settings=settings).counts.embedded == 2
        assert asked(tree, "wheel", settings).note == ""


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "nonsense"])
def test_only_http_addresses(url: str) -> None:
    with pytest.raises(NoEmbedder):
        choose.embedder(IndexSettings(embedder=url))
