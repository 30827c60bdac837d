"""Identifiers cut at camelCase, snake_case and digits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.analysis.search import tokens


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("parseHTTPHeader2", ("parse", "http", "header", "2")),
        ("snake_case_name", ("snake", "case", "name")),
        ("__init__", ("init",)),
        ("XMLHttpRequest", ("xml", "http", "request")),
        ("HTML", ("html",)),
        ("größe_ändern2", ("größe", "ändern", "2")),
        ("x" * 41, ()),
        ("_", ()),
    ],
)
def test_parts(identifier: str, parts: tuple[str, ...]) -> None:
    assert tokens.identifier_parts(identifier) == parts


@given(st.text(max_size=400))
def test_any_text_gives_plain_words_and_the_count_agrees_with_the_order(text: str) -> None:
    assert sum(tokens.count_words(text).values()) == len(tokens.in_order(text))
    assert all(word == word.lower() and " " not in word and '"' not in word for word in tokens.in_order(text))
