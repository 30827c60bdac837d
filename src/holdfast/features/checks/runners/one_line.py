"""Readers made of patterns, for tools that tell how it ended in one line."""

import re

from holdfast.core.lazy import lazy_pattern
from holdfast.features.checks.runners.spec import Reader, Report

_COUNTS = ("total", "passed", "failed", "errors", "skipped")
NEVER = r"(?!)"


def line_reader(good: str, bad: str) -> Reader:
    """For tools that end with one line of praise or blame."""
    clean, dirty = lazy_pattern(good or NEVER, re.MULTILINE), lazy_pattern(bad or NEVER, re.MULTILINE)

    def read(text: str) -> list[Report]:
        # Blame goes first: a tool that checks several things may praise one of them.
        if match := dirty.search(text):
            return [Report(failed=1, position=match.start())]
        praise = clean.search(text)
        return [Report(passed=1, position=praise.start())] if praise else []

    return read


def counts_reader(pattern: str, empty: str = "") -> Reader:
    """For a line with counts: its groups are named `total`, `passed`, `failed`, `errors`, `skipped`, as far as it has them.

    `empty` is a line that says that there was no test."""
    compiled, no_test = lazy_pattern(pattern, re.MULTILINE), lazy_pattern(empty or NEVER, re.MULTILINE)

    def read(text: str) -> list[Report]:
        if no_test.search(text):
            return [Report(nothing="no test was found")]
        return [_read_counts(match) for match in compiled.finditer(text)]

    return read


def _read_counts(match: re.Match[str]) -> Report:
    found = {name: int(value) for name, value in match.groupdict().items() if name in _COUNTS and value}
    failed, skipped = found.get("failed", 0) + found.get("errors", 0), found.get("skipped", 0)
    passed = found.get("passed", max(0, found.get("total", 0) - failed - skipped))
    nothing = "" if passed or failed else "no test was run"
    return Report(passed=passed, failed=failed, skipped=skipped, nothing=nothing, position=match.start())
