"""An embedding endpoint in OpenAI's manner, on loopback: what it is asked, what becomes of its answers and its faults."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.search import embedder as embedders
from holdfast.analysis.search.embedding_port import NoEmbedder
from holdfast.analysis.search.settings import IndexSettings
from tests.analysis.search.serving import Model, served
from tests.analysis.search.tree import Tree
from tests.kit import wait_until

FILES = {
    "a.py": "def alpha():\n    return 'engine'\n",
    "b.py": "def beta():\n    return 'wheel'\n",
}


@pytest.fixture
def model() -> Iterator[tuple[Model, str]]:
    with served() as made:
        yield made


def asked(tree: Tree, text: str, settings: IndexSettings) -> Any:
    from holdfast.analysis.search.answer import Question
    from holdfast.analysis.search.searcher import Searcher

    return Searcher(tree.place).answer(Question(text=text), settings)


def test_it_embeds_and_answers(model: tuple[Model, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint, url = model
    monkeypatch.setenv("MY_KEY", "abc")
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    settings = IndexSettings(embedder=url, model="nomic", key_variable="MY_KEY")
    assert tree.index(settings=settings).counts.embedded == 2
    assert endpoint.asked[0]["path"] == "/v1/embeddings"
    assert endpoint.asked[0]["model"] == "nomic"
    assert endpoint.headers == ["Bearer abc"]
    answer = asked(tree, "the wheel", settings)
    assert answer.note == ""
    assert answer.hits[0].path == "b.py"
    assert any(why.startswith("meaning 1.0") for why in answer.hits[0].why)


@pytest.mark.parametrize("fault", ["error", "rubbish", "short"])
def test_its_faults_leave_full_text(model: tuple[Model, str], tmp_path: Path, fault: str) -> None:
    endpoint, url = model
    endpoint.fault = fault
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    settings = IndexSettings(embedder=url, model="nomic")
    told = tree.index(settings=settings)
    assert told.status == "completed"
    assert url in told.note
    assert asked(tree, "beta", settings).hits[0].path == "b.py"
    endpoint.fault = ""
    assert tree.index(settings=settings).counts.embedded == 2, "tried again with the next run"


def test_it_goes_while_it_was_in_use(model: tuple[Model, str], tmp_path: Path) -> None:
    endpoint, url = model
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    settings = IndexSettings(embedder=url, model="nomic")
    tree.index(settings=settings)
    endpoint.fault = "error"
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
        embedders.choose_embedder(IndexSettings(embedder=url))


def test_while_another_model_takes_over_the_old_one_answers(model: tuple[Model, str], tmp_path: Path) -> None:
    """Point 7, with a run that is at it: from ours to an endpoint, then to another model of that endpoint."""
    endpoint, url = model
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    first = IndexSettings(embedder=url, model="one")
    tree.index()
    for settings, before in ((first, "holdfast-code-"), (IndexSettings(embedder=url, model="two"), "#one")):
        endpoint.gate.clear()
        count = len(endpoint.asked)
        run = threading.Thread(target=tree.index, kwargs={"settings": settings})
        run.start()
        wait_until(lambda c=count: len(endpoint.asked) > c, "the new model is asked for vectors")  # type: ignore[misc]
        answer = asked(tree, "the wheel", settings)
        assert "are not there yet, those of" in answer.note
        assert before in answer.note
        assert any(why.startswith("meaning") for why in answer.hits[0].why)
        assert answer.hits[0].path == "b.py"
        endpoint.gate.set()
        run.join()
        assert asked(tree, "the wheel", settings).note == ""


def test_an_address_that_was_taken_out_of_the_settings_is_asked_nothing_more(
    model: tuple[Model, str], tmp_path: Path
) -> None:
    endpoint, url = model
    tree = Tree(tmp_path / "p", tmp_path / "s").write(FILES)
    tree.index(settings=IndexSettings(embedder=url, model="one"))
    count = len(endpoint.asked)
    for settings in (IndexSettings(), IndexSettings(embedder="http://127.0.0.1:9/v1", model="one")):
        assert asked(tree, "the wheel", settings).note.startswith("full text only: vectors of")
    assert len(endpoint.asked) == count
