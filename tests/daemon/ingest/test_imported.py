"""Ids of imported sessions stay what they are; secrets in their place do not come in."""

import random
import string

import msgspec
import pytest

from holdfast.analysis.redact import redact
from holdfast.core.ids import LONGEST_NAME
from holdfast.daemon.ingest.imported import accept_imported_events, clean_identifier, clean_text
from holdfast.features import FEATURES
from tests.analysis.redact.examples import make_example


def scrub(fields: bytes) -> bytes:
    return redact(fields)[0]


def clean(text: str) -> str:
    return clean_identifier(text, scrub)


def random_ids(beginning: str, length: int) -> list[str]:
    chance = random.Random(7)
    return [beginning + "".join(chance.choices(string.ascii_letters + string.digits, k=length)) for _ in range(200)]


@pytest.mark.parametrize(("beginning", "length"), [("ses_", 26), ("session_", 26), ("msg_", 26), ("toolu_01", 22)])
def test_an_id_of_an_agent_stays_though_it_looks_like_a_token(beginning: str, length: int) -> None:
    ids = random_ids(beginning, length)
    assert [clean(one) for one in ids] == ids


def test_as_text_some_of_them_would_be_taken_for_tokens() -> None:
    assert any(clean_text(one, scrub) != one for one in random_ids("ses_", 26))


def test_a_known_key_in_the_place_of_an_id_is_taken_out_and_two_of_them_stay_two() -> None:
    keys = [make_example("ghp_<w36>", of) for of in ("one", "two")]
    cleaned = [clean(key) for key in keys]
    assert len(set(cleaned)) == 2
    assert not any(key in one for key in keys for one in cleaned)


def test_what_is_no_id_is_redacted_as_text_and_stays_apart() -> None:
    token = make_example("ghp_<w36>", "text")
    cleaned = [clean(f"run {n} with password={token}/x") for n in (1, 2)]
    assert len(set(cleaned)) == 2 and not any(token in one for one in cleaned)


def test_a_hostile_id_is_bounded_and_printable() -> None:
    for text in ("x" * 10_000, "a\0b", "line\nbreak\x1b[2J"):
        assert len(clean(text)) <= LONGEST_NAME and clean(text).isprintable()
    assert clean("x" * 10_000) != clean("x" * 9_999)
    assert clean("") == ""


def test_free_text_of_an_imported_event_is_redacted() -> None:
    token = make_example("ghp_<w36>", "prompt")
    sent = {"key": "k1", "kind": "prompt.submitted", "at": 1, "session": "ses_1", "data": {"prompt": f"use {token}"}}
    (arrival,) = accept_imported_events(msgspec.json.encode([sent]), FEATURES, scrub)
    assert arrival.event.session == "ses_1" and token not in arrival.event.data.prompt


def test_ids_in_the_data_stay_and_text_that_looks_like_them_does_not() -> None:
    ids = random_ids("ses_", 26)
    sent = [
        {
            "key": f"k{n}",
            "kind": "tool.started",
            "at": 1,
            "session": "s",
            "data": {"lane": one, "turn": one, "call": one},
        }
        for n, one in enumerate(ids)
    ]
    arrivals = accept_imported_events(msgspec.json.encode(sent), FEATURES, scrub)
    read = [(one.event.data.lane, one.event.data.turn, one.event.data.call) for one in arrivals]
    assert read == [(one, one, one) for one in ids]
    token = make_example("ghp_<w36>", "lane")
    sent = [{"key": "k", "kind": "tool.started", "at": 1, "session": "s", "data": {"lane": token, "call": 7}}]
    (arrival,) = accept_imported_events(msgspec.json.encode(sent), FEATURES, scrub)
    assert token not in arrival.event.data.lane
