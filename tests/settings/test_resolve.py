"""Regular expressions from a repository: only those that are sure to be quick need no trust (P1, P9)."""

import re
import time

import pytest

from holdfast.settings.quick_regex import LONGEST, is_quick

QUICK = [
    r"git\s+(commit|push)", r"\bgh\s+pr\s+create\b", r"git\s+.*--force", r"^\s*git\s+(-C\s+\S+\s+)?commit", r"[ab]*c",
    r"(?i)deploy", r"x{1,50}", r"", r"make (deploy|release)",
]  # fmt: skip
SLOW = [
    r"(a+)+b", r"(a|aa)*b", r"(a?b?)*c", r".*.*x", r"(\w+)\1", r"(x{1,50}){1,50}", r"(?:a|b|ab)*c", r"(.*a){3}",
    "a" * (LONGEST + 1),
]  # fmt: skip
HOSTILE = ["a" * 4000, "a" * 3999 + "!", "ab" * 2000, "git " + "-f " * 1300, "x" * 4000]


@pytest.mark.parametrize("pattern", QUICK)
def test_what_people_write_needs_no_trust_and_is_quick_indeed(pattern: str) -> None:
    assert is_quick(pattern)
    began = time.perf_counter()
    for text in HOSTILE:
        re.search(pattern, text)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("pattern", SLOW)
def test_what_may_be_slow_is_not_sure_to_be_quick(pattern: str) -> None:
    assert not is_quick(pattern)


@pytest.mark.parametrize("value", ["(", "[a", "*", None, 7, ["a"]])
def test_what_is_no_pattern_is_for_the_validation_to_say(value: object) -> None:
    assert is_quick(value)
