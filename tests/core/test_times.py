"""Times as people read them."""

import pytest

from holdfast.core.times import HOUR, MINUTE, SECOND, format_duration


@pytest.mark.parametrize(
    ("ms", "text"),
    [(90 * SECOND, "90 s"), (119 * MINUTE, "119 min"), (2 * HOUR, "2 h"), (1422 * MINUTE, "23 h 42 min")],
)
def test_a_duration_is_read_at_a_glance(ms: int, text: str) -> None:
    assert format_duration(ms) == text
