"""Patterns that are compiled when they are first used behave as if they had been compiled before."""

import re

from holdfast.core.lazy import lazy_pattern


def test_a_lazy_pattern_is_compiled_once_it_is_used() -> None:
    pattern = lazy_pattern(r"(?P<word>[a-z]+)(", re.IGNORECASE)  # not valid: nobody has noticed yet
    assert pattern.pattern.startswith("(?P<word>")
    pattern = lazy_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    match = pattern.search("12 Ab")
    assert match and match["word"] == "Ab"
    assert pattern.groupindex == {"word": 1} and pattern.flags & re.IGNORECASE
    assert pattern.sub("-", "a1b") == "-1-"


def test_bytes_too() -> None:
    assert lazy_pattern(rb"\d+").findall(b"1 22") == [b"1", b"22"]
