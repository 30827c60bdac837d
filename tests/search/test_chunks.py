"""Texts cut along functions, classes and headings."""

import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.search import languages
from holdfast.search.chunks import Chunk, cut, syntax
from holdfast.search.chunks.grammars import GRAMMARS, parser
from holdfast.search.languages import LANGUAGES

SAMPLES = Path(__file__).with_name("samples")
SOURCES = {languages.of(path.name): path.read_text() for path in sorted(SAMPLES.iterdir())}
EXPECTED = {
    "python": {"load", "Engine", "Engine.start", "Engine.stop"},
    "javascript": {"hello", "bye", "Door", "Door.open"},
    "typescript": {"Shape", "Circle", "Circle.area"},
    "go": {"Server.Serve", "Server"},
    "rust": {"grow", "Tree", "Tree.plant"},
    "java": {"Cat", "Cat.meow"},
    "c": {"add", "point"},
    "cpp": {"geo.Point", "geo.Point.x"},
    "c-sharp": {"N.Car", "N.Car.Drive"},
    "ruby": {"Zoo.Lion", "Zoo.Lion.roar"},
    "php": {"Mail", "Mail.send"},
    "bash": {"deploy"},
}


def lines_of(chunk: Chunk, text: str) -> str:
    return "\n".join(text.split("\n")[chunk.start - 1 : chunk.end])


@pytest.mark.parametrize("language", EXPECTED)
def test_definitions_are_found_and_every_line_is_in_a_chunk(language: str) -> None:
    text = SOURCES[language]
    chunks = cut(text, language)
    assert EXPECTED[language] <= {chunk.symbol for chunk in chunks}
    assert all(chunk.text == lines_of(chunk, text) for chunk in chunks)
    covered = {row for chunk in chunks for row in range(chunk.start, chunk.end + 1)}
    missing = [
        line for row, line in enumerate(text.split("\n"), 1) if row not in covered and any(c.isalnum() for c in line)
    ]
    assert missing == []


def test_every_grammar_we_name_is_installed() -> None:
    assert [language for language in GRAMMARS if parser(language) is None] == []


def test_what_belongs_to_a_definition_comes_with_it() -> None:
    by_symbol = {chunk.symbol: chunk for chunk in cut(SOURCES["python"], "python")}
    assert by_symbol["load"].text.startswith("@functools.cache")
    assert by_symbol["Engine.start"].kind == "method"
    assert by_symbol["Engine"].text.rstrip().endswith("speed = 1")
    serve = next(c for c in cut(SOURCES["go"], "go") if c.symbol == "Server.Serve")
    assert serve.text.startswith("// Serve accepts.")
    grow = next(c for c in cut(SOURCES["rust"], "rust") if c.symbol == "grow")
    assert grow.text.startswith("/// Grows.")


def test_headings_name_their_sections() -> None:
    text = "intro\n\n# One\ntext\n\n```\n# not a heading\n```\n\n## Two\nmore\n"
    assert [(c.symbol, c.start) for c in cut(text, "markdown")] == [("", 1), ("One", 3), ("One > Two", 10)]
    text = "Top\n===\n\nwords\n\nBelow\n-----\n\nmore words\n"
    assert [c.symbol for c in cut(text, "rst")] == ["Top", "Top > Below"]


def test_a_language_without_a_grammar_is_cut_by_its_outline() -> None:
    text = "import x\n\n/** greets */\nfun greet(name: String) {\n  println(name)\n}\n\nclass Cat {\n  val n = 1\n}\n"
    assert [(c.symbol, c.kind, c.start) for c in cut(text, "kotlin")] == [
        ("", "module", 1), ("greet", "function", 3), ("Cat", "class", 8),
    ]  # fmt: skip


def test_what_is_long_is_cut_into_windows_that_overlap() -> None:
    text = "def long():\n" + "".join(f"    step_{n}()\n" for n in range(400))
    chunks = cut(text, "python")
    assert len(chunks) > 3
    assert {c.symbol for c in chunks} == {"long"}
    assert all(a.end >= b.start for a, b in itertools.pairwise(chunks))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=600), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_in_any_language_is_cut(text: str, language: str) -> None:
    """Hostile input never raises; line numbers are always inside the text."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for chunk in cut(text, language):
        assert 1 <= chunk.start <= chunk.end <= rows


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.data())
def test_broken_code_is_still_cut(language: str, data: st.DataObject) -> None:
    text = SOURCES[language]
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.sampled_from(["}", "((", "'", '"""', "\0", "{", "class"])) + text[at:]
    covered = {row for chunk in cut(broken, language) for row in range(chunk.start, chunk.end + 1)}
    rows = broken.replace("\r", "\n").split("\n")
    assert [line for row, line in enumerate(rows, 1) if row not in covered and any(c.isalnum() for c in line)] == []


def test_very_deep_nesting_does_not_overflow() -> None:
    assert cut("{" * 20_000 + "x" + "}" * 20_000, "javascript") is not None
    assert cut("(" * 20_000, "python") is not None


@pytest.mark.parametrize(("language", "piece"), [("bash", "<<A\n"), ("cpp", "a<b<\n")])
def test_a_text_that_a_grammar_cannot_get_through_is_cut_by_lines(
    language: str, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of the one takes a grammar half a minute, of the other for ever: no run would come to its end."""
    monkeypatch.setattr(syntax, "PATIENCE_S", 0.2)
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    chunks = cut(text, language)
    assert time.process_time() - began < 10
    assert {chunk.kind for chunk in chunks} == {"lines"}
    assert chunks[-1].end >= text.count("\n")
