"""History search as a person asks it: snippets, one hit for a call, filters, what is said when nothing has all words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.history import LONGEST_WORD, next_page, split_words
from holdfast.core.ports import Store
from holdfast.features.log import FEATURE
from holdfast.stores.sqlite import SqliteStore
from tests.factories import NOON, a_row, an_engine, an_event


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = SqliteStore(tmp_path / "holdfast.db")
    yield store
    store.close()


def record(store: Store, *events: Event) -> None:
    an_engine(store, FEATURE).handle(list(events))
    reader = store.reader()
    while page := next_page(reader, 100):
        with store.transaction():
            store.index_history(page.entries, str(page.before), str(page.after))
    reader.close()


def ask(store: Store, query: str, **args: Any) -> dict[str, Any]:
    reader = store.reader()
    try:
        found: dict[str, Any] = FEATURE.views["history"](Call({"query": query, **args}, reader, None, NOON))
        return found
    finally:
        reader.close()


def seqs(told: dict[str, Any]) -> list[int]:
    return [hit["seq"] for hit in told["hits"]]


def test_a_hit_says_where_when_what_and_quotes_it(store: Store):
    long = "word " * 200 + "then the needle was found " + "word " * 200
    record(store, an_event(kind="turn.ended", tool="", at=NOON, data={"message": long}))
    (hit,) = ask(store, "needle")["hits"]
    assert (hit["seq"], hit["at"], hit["kind"], hit["session"]) == (1, NOON, "turn.ended", "s-1")
    assert (hit["field"], hit["agent"], hit["failed"]) == ("message", "claude-code", False)
    assert (
        hit["snippet"].startswith("…") and "then the needle was found" in hit["snippet"] and len(hit["snippet"]) < 260
    )


def test_the_start_and_the_end_of_a_call_are_one_hit(store: Store):
    started = an_event(kind="tool.started", data={"call": "c1", "command": "npm run build"})
    ended = an_event(
        kind="tool.finished", data={"call": "c1", "command": "npm run build", "output": "done", "ok": True}
    )
    denied = an_event(kind="tool.started", data={"call": "c2", "command": "npm publish"})
    record(store, started, ended, denied)
    assert seqs(ask(store, "npm")) == [3, 2]


def test_the_snippet_is_from_the_text_that_matches(store: Store):
    data = {"command": "pytest -q", "output": "E   KeyError: 'colour'", "paths": ["/p/src/paint.py"], "ok": False}
    record(store, an_event(kind="tool.failed", data=data))
    assert ask(store, "KeyError colour")["hits"][0]["field"] == "output"
    assert ask(store, "pytest")["hits"][0]["field"] == "command"
    assert ask(store, "paint.py")["hits"][0]["field"] == "path"
    assert ask(store, "pytest")["hits"][0]["failed"] is True


def test_where_nothing_has_all_words_those_with_the_most_come_first(store: Store):
    record(
        store,
        an_event(kind="prompt.submitted", data={"prompt": "alpha beta"}),
        an_event(kind="prompt.submitted", data={"prompt": "beta"}),
    )
    told = ask(store, "alpha beta gamma")
    assert (seqs(told), told["partly"]) == ([1, 2], True)
    assert ask(store, "alpha beta")["partly"] is False


def test_the_beginning_of_a_word_is_enough_from_three_letters_on(store: Store):
    record(store, an_event(kind="prompt.submitted", data={"prompt": "authentication"}))
    assert seqs(ask(store, "authen")) == [1]
    assert seqs(ask(store, "au")) == []


def test_pages(store: Store):
    record(store, *(an_event(kind="prompt.submitted", data={"prompt": f"same {n}"}) for n in range(7)))
    first = ask(store, "same", limit=2)
    assert (seqs(first), first["next"]) == ([7, 6], 4)
    with pytest.raises(CommandRefused, match="at most"):
        ask(store, "same", limit=1000)


def test_filters_alone_are_a_question_and_nothing_is_not(store: Store):
    record(
        store, an_event(kind="tool.failed", data={"command": "false"}), an_event(data={"command": "true", "ok": True})
    )
    assert seqs(ask(store, "", failed=True)) == [1]
    assert seqs(ask(store, "", kinds=["tool.failed"])) == [1]
    with pytest.raises(CommandRefused, match="no word"):
        ask(store, " *** ")


def test_a_session_is_named_by_how_it_begins(store: Store):
    record(
        store, an_event(session="abcdef-1", data={"command": "ls"}), an_event(session="xyz-9", data={"command": "ls"})
    )
    with store.transaction():
        store.save([a_row(key="abcdef-1"), a_row(key="xyz-9"), a_row(key="xyz-8")])
    assert seqs(ask(store, "ls", session="abc")) == [1]
    with pytest.raises(CommandRefused, match="more than one"):
        ask(store, "ls", session="xyz")
    with pytest.raises(CommandRefused, match="no session"):
        ask(store, "ls", session="nobody")


def test_what_is_not_indexed_yet_is_told(store: Store):
    record(store, an_event(kind="prompt.submitted", data={"prompt": "one"}))
    an_engine(store, FEATURE).handle([an_event(kind="prompt.submitted", data={"prompt": "two"})])
    told = ask(store, "two")
    assert (told["hits"], told["indexed"], told["head"]) == ([], 1, 2)


def test_control_characters_do_not_reach_a_terminal(store: Store):
    record(store, an_event(kind="prompt.submitted", data={"prompt": "red \x1b[31malarm\x1b[0m\x07 bell"}))
    assert ask(store, "alarm")["hits"][0]["snippet"] == "red alarm bell"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Parse_URL(2)\x00x", ["parse", "url", "2", "x"]),
        ("naïve Café … ﬁn", ["naive", "cafe", "fin"]),
        ("e\u0301te\u0301", ["ete"]),
        ("ℋ and ℻", ["h", "and", "fax"]),
        ("Straße 한글 日本", ["strasse", "한", "글", "日", "本"]),
        ("a" * (LONGEST_WORD + 5), ["a" * LONGEST_WORD]),
        ("", []),
    ],
)
def test_words_are_small_letters_without_accents(text: str, words: list[str]):
    assert split_words(text) == words
