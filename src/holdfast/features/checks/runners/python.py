"""Reads the summaries of Python's test runners."""

import re

from holdfast.features.checks.runners.spec import Report, group_number, sum_counts

_PYTEST_WORDS = (
    r"(?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests? (?:passed|failed))"
)
# `== 1 failed, 2 passed in 0.12s ==`, or the same without the signs with `-q`.
_PYTEST = re.compile(
    rf"^=*[ ]?((?:\d+ {_PYTEST_WORDS}(?:, )?)+|no tests ran|no tests collected[^\n]*?) in [\d.:]+ ?s[^\n]*$",
    re.MULTILINE,
)
# The summary of the plugin pytest-sugar.
_SUGAR = re.compile(r"^Results \([\d.:]+s[^\n]*\):\n((?:\s+(?:- .*|\d+ \w+)\n?)+)", re.MULTILINE)
# `FAILED path.py::name`, verbose lines, and rows of dots with an F or E and a percentage.
_PYTEST_FAILURE = re.compile(
    r"^(?:FAILED|ERROR) \S+\.py(?:::| - |$)|^[^\s:]+\.py::\S+ (?:FAILED|ERROR)\b|^[^\s:]+\.py [.sxX]*[FE][.sxXFE]*\s+\[ *\d+%\]$"
    r"|^[.sxX]*[FE][.sxXFE]*\s+\[ *\d+%\]$",
    re.MULTILINE,
)
_SHORT_SUMMARY = re.compile(r"^FAILED [^\s:]+\.py::", re.MULTILINE)
# Signs that the error came while tests were collected, before any of them ran.
_COLLECTION = re.compile(
    r"^!+ Interrupted: \d+ errors? during collection !+$|^ERROR collecting |^no tests collected", re.MULTILINE
)
# The result may be followed by counts in brackets: `FAILED (failures=1)`.
_UNITTEST = re.compile(
    r"^Ran (\d+) tests? in [\d.]+s\s*$\s+^(OK|FAILED|NO TESTS RAN)\b(?: \(([^)\n]*)\))?", re.MULTILINE
)


def read_pytest(text: str) -> list[Report]:
    reports = [_pytest_report(match[1], match.start(), text) for match in _PYTEST.finditer(text)]
    reports += [_pytest_report(match[1], match.start(), text) for match in _SUGAR.finditer(text)]
    failing = any(report.failed for report in reports)
    # A summary that passed contradicts the list of failures; both may be of different runs.
    if reports and not failing and (match := _SHORT_SUMMARY.search(text)):
        reports.append(Report(failed=1, position=match.start(), partial=True))
    if (
        not reports
        # A cheap search before the pattern with many alternatives.
        and ("FAILED" in text or "ERROR" in text or "%]" in text)
        and (match := _PYTEST_FAILURE.search(text))
    ):
        return [Report(failed=1, position=match.start(), partial=True)]
    return reports


def _pytest_report(summary: str, position: int, text: str) -> Report:
    passed = sum_counts(summary, ["passed", "xpassed"])
    failed, errors = sum_counts(summary, ["failed", "subtests? failed"]), sum_counts(summary, ["errors?"])
    skipped = sum_counts(summary, ["skipped", "xfailed"])
    if not passed and not failed:
        # Errors without a collection error come from fixtures: those tests ran.
        if errors and not _COLLECTION.search(text):
            return Report(failed=errors, skipped=skipped, position=position)
        why = "an error while collecting the tests" if errors else "no test was run"
        return Report(nothing=f"{why}: {summary.strip()}", skipped=skipped, broken=bool(errors), position=position)
    return Report(passed=passed, failed=failed + errors, skipped=skipped, position=position)


_LOAD_FAILURE = re.compile(
    r"unittest\.loader\._FailedTest|nose2\.loader\.LoadTestsFailure|^ImportError: Failed to import", re.M
)


def read_unittest(text: str) -> list[Report]:
    reports = [_unittest_report(match) for match in _UNITTEST.finditer(text)]
    # A module that cannot be imported is reported as one failed test.
    only_broken = len(reports) == 1 and not reports[0].passed and reports[0].failed
    if only_broken and len(_LOAD_FAILURE.findall(text)) >= reports[0].failed:
        return [Report(nothing="a test module could not be imported", broken=True, position=reports[0].position)]
    return reports


def _unittest_report(match: re.Match[str]) -> Report:
    detail = match[3] or ""
    bad = sum(int(n) for n in re.findall(r"(?:failures|errors|unexpected successes)=(\d+)", detail))
    skipped = group_number(re.search(r"skipped=(\d+)", detail))
    ran = int(match[1])
    if match[2] == "FAILED":
        return Report(passed=max(0, ran - bad - skipped), failed=max(1, bad), skipped=skipped, position=match.start())
    nothing = "no test was run" if ran - skipped <= 0 else ""
    return Report(passed=max(0, ran - skipped), skipped=skipped, nothing=nothing, position=match.start())
