"""Reads the summaries of test runners that need more than a pattern."""

import re

from holdfast.features.checks.runners.spec import Report, group_number, sum_counts

# ── pytest and unittest ──────────────────────────────────────────────────────────────────────────────────────────────

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
    matches = [*_PYTEST.finditer(text), *_SUGAR.finditer(text)]
    reports = [_pytest_report(match[1], match.start(), text) for match in matches]
    if any(report.failed for report in reports):
        return reports
    # A summary that passed contradicts the list of failures; both may be of different runs.
    if reports:
        return reports + _failure_sign(_SHORT_SUMMARY, text)
    # A cheap search before the pattern with many alternatives.
    suspicious = any(word in text for word in ("FAILED", "ERROR", "%]"))
    return _failure_sign(_PYTEST_FAILURE, text) if suspicious else []


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


# ── JavaScript ───────────────────────────────────────────────────────────────────────────────────────────────────────

# `Tests:       1 failed, 2 passed, 3 total`.
_JEST = re.compile(r"^Tests: +((?:\d+ \w+, )*\d+ total)\s*$", re.MULTILINE)
_JEST_SUITES = re.compile(r"^Test Suites: +(\d+) failed", re.MULTILINE)
_JEST_FAILURE = re.compile(r"^FAIL \S+|^\s+● .* › |^\s+✕ ", re.MULTILINE)
_JEST_EMPTY = re.compile(r"^No tests found\b", re.MULTILINE)
# ` Tests  1 failed | 2 passed (3)`.
_VITEST = re.compile(r"^\s*Tests +((?:\d+ \w+(?: \| )?)+) \(\d+\)\s*$|^\s*Tests +(no tests)\s*$", re.MULTILINE)
_VITEST_FILES = re.compile(r"^\s*Test Files +(\d+) failed", re.MULTILINE)
_VITEST_EMPTY = re.compile(r"^\s*No test files found", re.MULTILINE)
# `#` in TAP, `ℹ` in the reporter for terminals. Where `pass` or `fail` is missing the summary was cut off.
_NODE = re.compile(
    r"^[#ℹ] pass (\d+)\s*\n[#ℹ] fail (\d+)\s*$(?:\n[#ℹ] cancelled (\d+)\s*$)?(?:\n[#ℹ] skipped (\d+)\s*$)?",
    re.MULTILINE,
)
# A file that ended with an error of its own is reported like a failed test.
_NODE_BROKEN_FILE = re.compile(
    r"^not ok \d+ - \S+\.[cm]?[jt]sx?\n(?:[ \t]+.*\n)*?\s+exitCode: \d+|^✖ \S+\.[cm]?[jt]sx? \([\d.]+ms\)\n\s+'test failed'",
    re.MULTILINE,
)
_NODE_FAILURE = re.compile(r"^not ok \d+ - |^\s*✖ .* \([\d.]+ms\)$", re.MULTILINE)


def read_jest(text: str) -> list[Report]:
    if reports := [_jest_report(match, text) for match in _JEST.finditer(text)]:
        return reports
    if match := _JEST_EMPTY.search(text):
        return [Report(nothing="no tests found", position=match.start())]
    return _failure_sign(_JEST_FAILURE, text)


def _jest_report(match: re.Match[str], text: str) -> Report:
    passed, failed = sum_counts(match[1], ["passed"]), sum_counts(match[1], ["failed"])
    skipped = sum_counts(match[1], ["skipped", "todo"])
    # Suites failed and no test did: files could not be loaded.
    broken = 0 if failed else group_number(_JEST_SUITES.search(text))
    if broken and not passed:
        return Report(nothing="a test file could not be run", broken=True, skipped=skipped, position=match.start())
    return Report(passed=passed, failed=failed or broken, skipped=skipped, position=match.start())


def read_vitest(text: str) -> list[Report]:
    if reports := [_vitest_report(match, text) for match in _VITEST.finditer(text)]:
        return reports
    match = _VITEST_EMPTY.search(text)
    return [Report(nothing="no test files found", position=match.start())] if match else []


def _vitest_report(match: re.Match[str], text: str) -> Report:
    body = match[1] or ""
    passed, failed = sum_counts(body, ["passed"]), sum_counts(body, ["failed"])
    skipped = sum_counts(body, ["skipped", "todo"])
    if not passed and not failed:
        return Report(nothing="no tests were run", skipped=skipped, position=match.start())
    # A file that cannot be loaded counts as a failure next to tests that passed.
    broken = 0 if failed else group_number(_VITEST_FILES.search(text))
    return Report(passed=passed, failed=failed or broken, skipped=skipped, position=match.start())


def read_node(text: str) -> list[Report]:
    reports = [_node_report(match, text) for match in _NODE.finditer(text)]
    return reports or _failure_sign(_NODE_FAILURE, text)


def _node_report(match: re.Match[str], text: str) -> Report:
    passed, failed = group_number(match, 1), group_number(match, 2) + group_number(match, 3)
    # Every failure is a file that did not load, so no test ran.
    if failed and not passed and len(_NODE_BROKEN_FILE.findall(text, 0, match.start())) >= failed:
        return Report(nothing="the test files could not be run", broken=True, position=match.start())
    return Report(passed=passed, failed=failed, skipped=group_number(match, 4), position=match.start())


def _failure_sign(pattern: re.Pattern[str], text: str) -> list[Report]:
    match = pattern.search(text)
    return [Report(failed=1, position=match.start(), partial=True)] if match else []


# ── Go and Gradle ────────────────────────────────────────────────────────────────────────────────────────────────────

# `ok  pkg  0.3s` or `(cached)`, with a remark behind it such as `[no tests to run]`.
_GO_OK = re.compile(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(.*)$", re.MULTILINE)
_GO_PASS = re.compile(r"^\s*--- PASS: ", re.MULTILINE)
_GO_FAIL = re.compile(r"^(?:FAIL(?:\t\S+.*)?|--- FAIL: .*)[ \t]*$", re.MULTILINE)
_GO_FAILED_TEST = re.compile(r"^\s*--- FAIL: ", re.MULTILINE)
_GO_BROKEN = re.compile(r"^FAIL\s+\S+ \[(?:build|setup) failed\]", re.MULTILINE)
# `go test -json`: events of single tests, not of packages.
_GO_JSON = re.compile(r'"Action":"(pass|fail)","Package":"[^"]*","Test":')
_GRADLE_COUNT = re.compile(r"^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?", re.MULTILINE)
_GRADLE_TASK = re.compile(
    r"^> Task :\S*[tT]est(?P<state> (?:UP-TO-DATE|NO-SOURCE|FROM-CACHE|SKIPPED|FAILED))?\s*$", re.MULTILINE
)
_GRADLE_OK = re.compile(r"^BUILD SUCCESSFUL in ", re.MULTILINE)


def read_go(text: str) -> list[Report]:
    # With `-json` the plain lines are inside of JSON, so only the events count.
    if '"Action":' in text and (actions := _GO_JSON.findall(text)):
        return [Report(passed=actions.count("pass"), failed=actions.count("fail"))]
    packages = [match for match in _GO_OK.finditer(text) if "no tests to run" not in match[1]]
    if failure := _GO_FAIL.search(text):
        return [_go_failure(text, failure.start(), len(packages))]
    if not packages:
        ended = _GO_OK.search(text) or "[no test files]" in text
        return [Report(nothing="no tests to run")] if ended else []
    # One for each package, so that several runs can be distinguished; those of one run are summed up.
    begins = [0, *(match.end() for match in packages[:-1])]
    return [
        Report(passed=len(_GO_PASS.findall(text, begin, match.end())) or 1, position=match.start())
        for begin, match in zip(begins, packages, strict=True)
    ]


def _go_failure(text: str, position: int, packages: int) -> Report:
    failed = len(_GO_FAILED_TEST.findall(text))
    # No test ran in any package.
    if _GO_BROKEN.search(text) and not failed and not packages:
        return Report(nothing="the packages do not build", broken=True, position=position)
    # Without `-v` single tests are not listed; then packages are counted.
    return Report(passed=len(_GO_PASS.findall(text)) or packages, failed=max(1, failed), position=position)


def read_gradle(text: str) -> list[Report]:
    if match := _GRADLE_COUNT.search(text):
        total, failed, skipped = int(match[1]), group_number(match, 2), group_number(match, 3)
        return [Report(passed=total - failed - skipped, failed=failed, skipped=skipped, position=match.start())]
    tasks = list(_GRADLE_TASK.finditer(text))
    if not tasks:
        return []
    if any(task["state"] == " FAILED" for task in tasks):
        return [Report(failed=1, position=tasks[0].start())]
    # A task without a state was run; the others were taken from an earlier build.
    ran = [task for task in tasks if not task["state"]]
    if ran and _GRADLE_OK.search(text):
        return [Report(passed=len(ran), position=ran[-1].start())]
    return [Report(nothing="the tests were up to date or skipped", position=tasks[0].start())]


# ── bats ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_BATS = re.compile(r"^(\d+) tests?, (\d+) failures?(?:, (\d+) skipped)?", re.MULTILINE)
# TAP: `1..N` is the plan, then `ok n` or `not ok n`.
_TAP_PLAN = re.compile(r"^1\.\.(\d+)\s*$", re.MULTILINE)
_TAP_OK = re.compile(r"^ok \d+(?! .*# [sS][kK][iI][pP])", re.MULTILINE)
# A failure that is marked as TODO is expected.
_TAP_BAD = re.compile(r"^not ok \d+(?! .*# TODO)", re.MULTILINE)


def read_bats(text: str) -> list[Report]:
    if match := _BATS.search(text):
        total, failed, skipped = int(match[1]), int(match[2]), group_number(match, 3)
        return [Report(passed=total - failed - skipped, failed=failed, skipped=skipped, position=match.start())]
    plan = _TAP_PLAN.search(text)
    bad, good = len(_TAP_BAD.findall(text)), len(_TAP_OK.findall(text))
    if plan and int(plan[1]) == 0:
        return [Report(nothing="no test was run", position=plan.start())]
    if bad:
        # Without a plan it is not known whether the output is whole.
        return [Report(passed=good, failed=bad, position=plan.start() if plan else 0, partial=plan is None)]
    skipped = int(plan[1]) - good if plan else 0
    # A summary counts only where all tests of the plan are listed.
    listed = len(re.findall(r"^ok \d+", text, re.MULTILINE))
    return [Report(passed=good, skipped=skipped, position=plan.start())] if plan and listed == int(plan[1]) else []
