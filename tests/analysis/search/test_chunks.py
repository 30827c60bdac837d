"""Texts cut along functions, classes and headings."""

import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.search import languages
from holdfast.analysis.search.chunks import Chunk, Definition, cut_chunks, syntax
from holdfast.analysis.search.chunks.grammars import GRAMMARS, load_parser
from holdfast.analysis.search.languages import LANGUAGES

SAMPLES = Path(__file__).with_name("samples")
SOURCES = {languages.language_of_path(path.name): path.read_text() for path in sorted(SAMPLES.iterdir())}
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
    chunks = cut_chunks(text, language)
    assert EXPECTED[language] <= {one.symbol for chunk in chunks for one in chunk.definitions}
    assert all(chunk.text == lines_of(chunk, text) for chunk in chunks)
    covered = {row for chunk in chunks for row in range(chunk.start, chunk.end + 1)}
    missing = [
        line for row, line in enumerate(text.split("\n"), 1) if row not in covered and any(c.isalnum() for c in line)
    ]
    assert missing == []


def test_every_grammar_we_name_is_installed() -> None:
    assert [language for language in GRAMMARS if load_parser(language) is None] == []


def test_what_belongs_to_a_definition_comes_with_it() -> None:
    by_symbol = definitions_of("python")
    assert first_line("python", by_symbol["load"]) == "@functools.cache"
    assert by_symbol["Engine.start"].kind == "method"
    assert first_line("go", definitions_of("go")["Server.Serve"]) == "// Serve accepts."
    assert first_line("rust", definitions_of("rust")["grow"]).strip() == "/// Grows."


def definitions_of(language: str) -> dict[str, Definition]:
    return {one.symbol: one for chunk in cut_chunks(SOURCES[language], language) for one in chunk.definitions}


def first_line(language: str, one: Definition) -> str:
    return SOURCES[language].split("\n")[one.start - 1]


def test_what_is_too_small_alone_is_joined_with_its_neighbours() -> None:
    accessors = "".join(f"    def get_{n}(self):\n        return self.{n}\n\n" for n in "abcdef")
    long = "    def work(self):\n" + "".join(f"        step_{n}()\n" for n in range(20))
    chunks = cut_chunks(f"class Thing:\n{accessors}{long}", "python")
    assert [(c.symbol, c.start, c.end) for c in chunks] == [("Thing", 1, 18), ("Thing.work", 20, 40)]
    assert [one.name for one in chunks[0].definitions] == ["Thing", *(f"get_{n}" for n in "abcdef")]
    assert all(chunk.text == lines_of(chunk, f"class Thing:\n{accessors}{long}") for chunk in chunks)


def test_headings_name_their_sections() -> None:
    text = "intro\n\n# One\ntext\n\n```\n# not a heading\n```\n\n## Two\nmore\n"
    assert [(c.symbol, c.start) for c in cut_chunks(text, "markdown")] == [("", 1), ("One", 3), ("One > Two", 10)]
    text = "Top\n===\n\nwords\n\nBelow\n-----\n\nmore words\n"
    assert [c.symbol for c in cut_chunks(text, "rst")] == ["Top", "Top > Below"]


def test_a_language_without_a_grammar_is_cut_by_its_outline() -> None:
    text = "import x\n\n/** greets */\nfun greet(name: String) {\n  println(name)\n}\n\nclass Cat {\n  val n = 1\n}\n"
    found = [one for chunk in cut_chunks(text, "kotlin") for one in chunk.definitions]
    assert [(one.symbol, one.kind, one.start) for one in found] == [("greet", "function", 3), ("Cat", "class", 8)]


def test_what_is_long_is_cut_into_windows_that_overlap() -> None:
    text = "def long():\n" + "".join(f"    step_{n}()\n" for n in range(400))
    chunks = cut_chunks(text, "python")
    assert len(chunks) > 3
    assert {c.symbol for c in chunks} == {"long"}
    assert all(a.end >= b.start for a, b in itertools.pairwise(chunks))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=600), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_in_any_language_is_cut(text: str, language: str) -> None:
    """Hostile input never raises; line numbers are always inside the text."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for chunk in cut_chunks(text, language):
        assert 1 <= chunk.start <= chunk.end <= rows


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.data())
def test_broken_code_is_still_cut(language: str, data: st.DataObject) -> None:
    text = SOURCES[language]
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.sampled_from(["}", "((", "'", '"""', "\0", "{", "class"])) + text[at:]
    covered = {row for chunk in cut_chunks(broken, language) for row in range(chunk.start, chunk.end + 1)}
    rows = broken.replace("\r", "\n").split("\n")
    assert [line for row, line in enumerate(rows, 1) if row not in covered and any(c.isalnum() for c in line)] == []


def test_very_deep_nesting_does_not_overflow() -> None:
    assert cut_chunks("{" * 20_000 + "x" + "}" * 20_000, "javascript") is not None
    assert cut_chunks("(" * 20_000, "python") is not None


@pytest.mark.parametrize(("language", "piece"), [("bash", "<<A\n"), ("cpp", "a<b<\n")])
def test_a_text_that_a_grammar_cannot_get_through_is_cut_by_lines(
    language: str, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of the one takes a grammar half a minute, of the other for ever: no run would come to its end."""
    monkeypatch.setattr(syntax, "PATIENCE_S", 0.2)
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    chunks = cut_chunks(text, language)
    assert time.process_time() - began < 10
    assert {chunk.kind for chunk in chunks} == {"lines"}
    assert chunks[-1].end >= text.count("\n")
