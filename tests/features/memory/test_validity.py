"""Which statements still hold."""

from datetime import date

import pytest

from holdfast.features.memory.validity import Statement, end_of, replaces, valid_statements

SAID_ON = date(2026, 3, 4)  # A Wednesday.


@pytest.mark.parametrize(
    ("newer", "older", "replaced"),
    [
        ("the upstream timeout is 60 seconds", "the upstream timeout is 30 seconds", True),
        ("Never squash commits before merging.", "Always squash commits before merging.", True),
        ("use SQLite instead of PostgreSQL for the event store", "use PostgreSQL for the event store", True),
        ("use Redis as a cache of pages", "use PostgreSQL for the event store", False),
        ("sessions end after 12 hours", "the upstream timeout is 30 seconds", False),
        ("use tabs", "use tabs", False),
    ],
)
def test_a_newer_statement_on_the_same_subject_replaces_the_older(newer: str, older: str, replaced: bool) -> None:
    assert replaces(newer, older) is replaced


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("no deploys until 2026-03-20", date(2026, 3, 20)),
        ("no deploys until march 20", date(2026, 3, 20)),
        ("no deploys until April", date(2026, 3, 31)),
        ("no deploys until friday", date(2026, 3, 6)),
        ("for today ask Tom first", date(2026, 3, 4)),
        ("no merges this week", date(2026, 3, 8)),
        ("for the next two weeks ask Tom first", date(2026, 3, 18)),
        ("no deploys until february 30", None),
        ("deploys happen on fridays", None),
    ],
)
def test_some_statements_name_their_end(text: str, ends: date | None) -> None:
    assert end_of(text, SAID_ON) == ends


def test_the_words_of_an_agent_never_hold() -> None:
    said = [Statement("2026-03-01", by, text) for by, text in (("user", "use tabs here"), ("agent", "use spaces"))]
    assert valid_statements(said, "2026-03-09") == [0]
    assert valid_statements([Statement("2026-03-01", "user", "for today use tabs")], "2026-03-09") == []
