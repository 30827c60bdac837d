"""Times and amounts as a report writes them."""

import pytest

from holdfast.features.uat.report.figures import format_clock, format_milliseconds, format_utc_time

AT = 1_760_000_000_000
"""2025-10-09 08:53:20 UTC"""


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "–"), (0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (119_999, "120.0 s"), (120_000, "2 min 0 s"),
        (3_725_000, "62 min 5 s"),
    ],
)  # fmt: skip
def test_how_long_it_took(ms: int | None, text: str) -> None:
    assert format_milliseconds(ms) == text


@pytest.mark.parametrize(("past", "text"), [(0, "08:53:20.000"), (7, "08:53:20.007"), (999, "08:53:20.999")])
def test_a_clock_shows_milliseconds_in_three_digits(past: int, text: str) -> None:
    assert format_clock(AT + past) == text


def test_when_it_was() -> None:
    assert format_clock(None) == "–"
    assert format_utc_time(AT) == "2025-10-09 08:53:20 UTC"
