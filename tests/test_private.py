"""`<private>…</private>` in a prompt is not stored; what a tool is given stays whole."""

import json

import pytest

from holdfast.core.text import PrivateWords, without_private


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
    answer = words.clean(b'{"last_assistant_message": "done with plum \\"cake\\" 7", "tool_input": "plum \\"cake\\" 7"}')
    assert json.loads(answer) == {"last_assistant_message": "done with [private]", "tool_input": 'plum "cake" 7'}
    assert words.clean_own(b'{"text": "plum \\"cake\\" 7"}') == b'{"text": "[private]"}'


def test_short_private_words_and_other_bodies_are_left_alone() -> None:
    words = PrivateWords()
    words.clean(b'{"prompt": "<private>no</private>"}')
    body = b'{"last_assistant_message": "no, not now"}'
    assert words.clean(body) is body
    assert words.clean(b"not json private") == b"not json private"
