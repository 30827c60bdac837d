"""Readers made of patterns, for tools whose summary a pattern describes."""

import re
from collections.abc import Mapping, Sequence

from holdfast.core.lazy import lazy_pattern
from holdfast.features.checks.runners.spec import Reader, Report

NEVER = r"(?!)"
Patterns = Mapping[str, re.Pattern[str]]


def line_reader(good: str, bad: str) -> Reader:
    """For tools that end with one line on success or failure."""
    clean, dirty = lazy_pattern(good or NEVER, re.MULTILINE), lazy_pattern(bad or NEVER, re.MULTILINE)

    def read(text: str) -> list[Report]:
        # Failure goes first: a tool that checks several things may report success for one of them.
        if match := dirty.search(text):
            return [Report(failed=1, position=match.start())]
        praise = clean.search(text)
        return [Report(passed=1, position=praise.start())] if praise else []

    return read


def counts_reader(
    summary: str | Sequence[str] = (),
    parts: Mapping[str, str] | None = None,
    *,
    empty: str = NEVER,
    sign: str = NEVER,
    contradicts: str = NEVER,
) -> Reader:
    """For summaries with counts. The fields are those of `runners.toml`."""
    summaries = [summary] if isinstance(summary, str) else summary
    patterns = tuple(lazy_pattern(one, re.MULTILINE) for one in summaries)
    part_patterns = {name: lazy_pattern(part, re.MULTILINE) for name, part in (parts or {}).items()}
    no_test, signs, contradiction = (lazy_pattern(one, re.MULTILINE) for one in (empty, sign, contradicts))

    def read(text: str) -> list[Report]:
        reports = [_read_summary(match, part_patterns) for one in patterns for match in one.finditer(text)]
        if not patterns:
            reports = _read_parts(text, part_patterns)
        if not reports and (match := no_test.search(text)):
            return [Report(nothing="no test was found", position=match.start())]
        failing = any(report.failed for report in reports)
        shown = None if failing else contradiction.search(text) if reports else signs.search(text)
        return [*reports, Report(failed=1, position=shown.start(), partial=True)] if shown else reports

    return read


def _read_summary(match: re.Match[str], parts: Patterns) -> Report:
    found = match.groupdict()
    rest = found.pop("rest", "")
    counts = {name: int(value) for name, value in found.items() if value and value.isdigit()}
    for name, part in parts.items():
        if numbers := part.findall(rest or ""):
            counts[name] = sum(map(int, numbers))
    among = counts.get("failed", 0) + counts.get("errors", 0)
    # `failing` is a word for at least one failure; what failed `outside` is no test of the total.
    failed = max(among + counts.get("outside", 0), int(bool(found.get("failing"))))
    skipped = counts.get("skipped", 0)
    passed = counts.get("passed", max(0, counts.get("total", 0) - among - skipped))
    return _counted(passed, failed, skipped, match.start())


def _read_parts(text: str, parts: Patterns) -> list[Report]:
    """The first line of each count; the summary begins with the first of them that counts passes or failures."""
    found = {name: match for name, part in parts.items() if (match := part.search(text))}
    position = min((found[name].start() for name in ("passed", "failed") if name in found), default=None)
    if position is None:
        return []
    passed, failed, skipped = (int(found[name][1]) if name in found else 0 for name in ("passed", "failed", "skipped"))
    return [_counted(passed, failed, skipped, position)]


def _counted(passed: int, failed: int, skipped: int, position: int) -> Report:
    nothing = "" if passed or failed else "no test was run"
    return Report(passed=passed, failed=failed, skipped=skipped, nothing=nothing, position=position)
