"""Cursors: what we gave out is read back, anything else is refused."""

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.doors.web.api_answers import decode_cursor, encode_cursor
from holdfast.doors.web.requests import parse_number_cursor, parse_page_cursor, parse_pair_cursor


@pytest.mark.parametrize("value", [[1_763_000_000_000, "s-1"], [0, ""], {"before": 7}, 12, "a"])
def test_a_cursor_is_read_back_whatever_its_length(value: object) -> None:
    word = encode_cursor(value)
    assert "=" not in word and decode_cursor(word) == value


def test_a_pair_is_milliseconds_and_a_key() -> None:
    assert parse_pair_cursor("") is None
    assert parse_pair_cursor(encode_cursor([5, "s-1"])) == [5, "s-1"]
    for other in ([5], [5, "a", "b"], ["a", "b"], [5, 6], 5, {"before": 1}):
        with pytest.raises(CommandRefused):
            parse_pair_cursor(encode_cursor(other))


def test_a_number_is_of_the_log() -> None:
    assert parse_number_cursor("") == 0
    assert parse_number_cursor(encode_cursor(9)) == 9
    for other in (-1, 1 << 70, "9", [9]):
        with pytest.raises(CommandRefused):
            parse_number_cursor(encode_cursor(other))


def test_a_page_of_the_log_is_before_or_after_an_event() -> None:
    for position in ({"before": 3}, {"after": 3}):
        assert parse_page_cursor(encode_cursor(position)) == position
    for other in ({"beside": 3}, {"before": "3"}, [3]):
        with pytest.raises(CommandRefused):
            parse_page_cursor(encode_cursor(other))


@pytest.mark.parametrize("word", ["%%%", "AAAA", "!", "é"])
def test_what_is_no_cursor_is_refused(word: str) -> None:
    with pytest.raises(CommandRefused, match="this cursor is not valid"):
        decode_cursor(word)
