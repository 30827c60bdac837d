"""`<private>…</private>` in a prompt is not stored; what a tool is given stays whole."""

import json
import random

import pytest

from holdfast.analysis.redact.native_library import word_search
from holdfast.core.text import PrivateWords, _mentions_private, telling_words, without_private


@pytest.mark.parametrize(
    "prompt",
    [
        "before <private>swordfish</private> after",
        "before <PRIVATE>\nswordfish\n</Private> after",
        "before <private>swordfish and no end",
        "before < private >swordfish< / private > after",
        "<private>a</private> x <private>swordfish</private>",
    ],
)
def test_private_words_are_gone(prompt: str) -> None:
    for ascii_only in (True, False):
        body = json.dumps({"prompt": prompt, "cwd": "/x"}, ensure_ascii=ascii_only).encode()
        kept = without_private(body)
        assert b"swordfish" not in kept
        assert json.loads(kept)["cwd"] == "/x"


def test_escaped_brackets_hide_nothing() -> None:
    body = b'{"prompt": "\\u003cprivate\\u003eswordfish\\u003c/private\\u003e done"}'
    assert json.loads(without_private(body)) == {"prompt": "[private] done"}


def test_a_command_stays_whole_for_the_gates() -> None:
    body = b'{"tool_input": {"command": "echo <private>; git push; </private>"}}'
    assert without_private(body) is body


@pytest.mark.parametrize("body", [b"", b"private", b"[1]", b'{"prompt": 3, "x": "private"}', b"\xff private"])
def test_odd_bodies_stay_as_they_are(body: bytes) -> None:
    assert without_private(body) == body


def test_a_body_nobody_can_read_loses_the_words_too() -> None:
    assert b"swordfish" not in without_private(b'{"prompt": "<private>swordfish</private> cut of')


def test_an_answer_that_repeats_what_was_private_is_cleaned_too() -> None:
    words = PrivateWords()
    words.clean(b'{"prompt": "the code is <private>plum \\"cake\\" 7</private>, open it"}')
    answer = words.clean(
        b'{"last_assistant_message": "done with plum \\"cake\\" 7", "tool_input": "plum \\"cake\\" 7"}'
    )
    assert json.loads(answer) == {"last_assistant_message": "done with [private]", "tool_input": 'plum "cake" 7'}
    assert words.clean_own(b'{"text": "plum \\"cake\\" 7"}') == b'{"text": "[private]"}'


def test_fields_that_an_import_tells_lose_what_was_marked_in_them() -> None:
    words = PrivateWords()
    assert words.clean_own(b'{"prompt": "go <private>plum cake 7</private>"}') == b'{"prompt":"go [private]"}'
    assert words.clean_own(b'{"message": "plum cake 7 it is"}') == b'{"message": "[private] it is"}'


def test_short_private_words_and_other_bodies_are_left_alone() -> None:
    words = PrivateWords()
    words.clean(b'{"prompt": "<private>no</private>"}')
    body = b'{"last_assistant_message": "no, not now"}'
    assert words.clean(body) is body
    assert words.clean(b"not json private") == b"not json private"


def answer_in(session: str, words: str) -> bytes:
    return json.dumps({"session_id": session, "last_assistant_message": words}).encode()


def test_a_name_out_of_it_is_taken_out_of_that_sessions_answers() -> None:
    """An agent seldom repeats the whole stretch; elsewhere the word may be said for other reasons."""
    words = PrivateWords()
    words.clean(
        b'{"session_id": "s1", "prompt": "<private>the customer is Kowalski-Brandt, contract KB4417x</private> go on"}'
    )
    answer = words.clean(
        answer_in("s1", "I wrote to Kowalski-Brandt (KB4417x), the customer; not to Kowalski-Brandts.")
    )
    assert (
        json.loads(answer)["last_assistant_message"]
        == "I wrote to [private] ([private]), the customer; not to Kowalski-Brandts."
    )
    assert words.clean_answer("s1", "Kowalski-Brandt called") == "[private] called"
    other = answer_in("s2", "Kowalski-Brandt is a street here")
    assert words.clean(other) is other
    prompt = b'{"session_id": "s1", "prompt": "ask Kowalski-Brandt"}'
    assert words.clean(prompt) is prompt


@pytest.mark.parametrize(
    ("stretch", "telling"),
    [
        ("the customer is Kowalski from room 4417", ["Kowalski"]),
        ("Please call anna@firm.example today", ["anna@firm.example"]),
        ("the build is slow and nobody cares", []),
        ("der Kunde ist nicht mit der Rechnung zufrieden", []),
        ("Vertrag X7-99a und die Firma ACME", ["X7-99a", "ACME"]),
    ],
)
def test_common_words_give_nothing_away(stretch: str, telling: list[str]) -> None:
    assert list(telling_words(stretch)) == telling


@pytest.mark.parametrize("seed", range(20))
def test_the_native_search_for_the_word_finds_what_the_pattern_does(seed):
    search, chance = word_search(b"private"), random.Random(seed)
    if search is None:
        pytest.skip("the library was not built")
    found = 0
    for _ in range(500):
        text = "".join(chance.choices("pPrRiIvVaAtTeE \0", k=chance.randrange(60)))
        at, word = chance.randrange(len(text) + 1), "".join(chance.choice((c, c.upper())) for c in "private")
        text = text[:at] + word[: chance.choice((6, 7))] + text[at:]
        mentioned = search(text.encode(), 0) < len(text)
        assert mentioned == _mentions_private(text.encode()), text
        assert search(text.encode(), 0) == (text.lower().find("private") if mentioned else len(text))
        found += mentioned
    assert 0 < found < 500
