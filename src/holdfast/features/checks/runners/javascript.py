"""Reads the summaries of the test runners of JavaScript and TypeScript."""

import re

from holdfast.features.checks.runners.spec import Report, group_number, sum_counts

# `Tests:       1 failed, 2 passed, 3 total`.
_JEST = re.compile(r"^Tests: +((?:\d+ \w+, )*\d+ total)\s*$", re.MULTILINE)
_JEST_SUITES = re.compile(r"^Test Suites: +(\d+) failed", re.MULTILINE)
_JEST_FAILURE = re.compile(r"^FAIL \S+|^\s+● .* › |^\s+✕ ", re.MULTILINE)
_JEST_EMPTY = re.compile(r"^No tests found\b|^No tests found, exiting", re.MULTILINE)
# ` Tests  1 failed | 2 passed (3)`.
_VITEST = re.compile(r"^\s*Tests +((?:\d+ \w+(?: \| )?)+) \(\d+\)\s*$|^\s*Tests +(no tests)\s*$", re.MULTILINE)
_VITEST_FILES = re.compile(r"^\s*Test Files +(\d+) failed", re.MULTILINE)
_VITEST_EMPTY = re.compile(r"^\s*No test files found", re.MULTILINE)
_MOCHA = re.compile(r"^ *(\d+) passing \([^)\n]+\)\s*$", re.MULTILINE)
_MOCHA_FAILED = re.compile(r"^ *(\d+) failing\s*$", re.MULTILINE)
_MOCHA_PENDING = re.compile(r"^ *(\d+) pending\s*$", re.MULTILINE)
# `#` in TAP, `ℹ` in the reporter for terminals.
_NODE = re.compile(r"^(?:#|ℹ) tests (\d+)\s*$", re.MULTILINE)
_NODE_PART = {
    name: re.compile(rf"^(?:#|ℹ) {name} (\d+)\s*$", re.MULTILINE)
    for name in ("pass", "fail", "cancelled", "skipped", "todo")
}
# The two counts alone, as `grep` leaves them.
_NODE_COUNTS = re.compile(r"^(?:#|ℹ) pass (\d+)\s*\n(?:#|ℹ) fail (\d+)\s*$", re.MULTILINE)
# A file that ended with an error of its own is reported like a failed test.
_NODE_BROKEN_FILE = re.compile(
    r"^not ok \d+ - \S+\.[cm]?[jt]sx?\n(?:[ \t]+.*\n)*?\s+exitCode: \d+|^✖ \S+\.[cm]?[jt]sx? \([\d.]+ms\)\n\s+'test failed'",
    re.MULTILINE,
)
_NODE_FAILURE = re.compile(r"^not ok \d+ - |^\s*✖ .* \([\d.]+ms\)$", re.MULTILINE)
_BUN = re.compile(r"^ *(\d+) pass\s*$", re.MULTILINE)
_BUN_FAILED = re.compile(r"^ *(\d+) fail\s*$", re.MULTILINE)
_BUN_FAILURE = re.compile(r"^\(fail\) |^Bailed out after \d+ failure", re.MULTILINE)
_BUN_RAN = re.compile(r"^Ran (\d+) tests? across \d+ files?", re.MULTILINE)
_DENO = re.compile(r"^(ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed", re.MULTILINE)
_PLAYWRIGHT = re.compile(r"^ {2}(\d+) passed \([\d.]+(?:ms|s|m|h)\)\s*$", re.MULTILINE)
_PLAYWRIGHT_FAILED = re.compile(r"^ {2}(\d+) (?:failed|timed out|interrupted)\s*$", re.MULTILINE)
_PLAYWRIGHT_SKIPPED = re.compile(r"^ {2}(\d+) (?:skipped|did not run)\s*$", re.MULTILINE)
# The last row of the table: specs, time, tests, passing, failing.
_CYPRESS = re.compile(
    r"^\s*[✔✖]\s+(?:All specs passed!|(\d+) of \d+ failed \(\d+%\))\s+\S+\s+(\d+)\s+(\d+|-)\s+(\d+|-)", re.MULTILINE
)
_AVA = re.compile(r"^ {2}(\d+) tests? passed\s*$|^ {2}(\d+) tests? failed\s*$", re.MULTILINE)


_TAPE = re.compile(r"^# tests +(\d+)\s*\n# pass +(\d+)\s*$(?:\n# fail +(\d+)\s*$)?", re.MULTILINE)


def read_tape(text: str) -> list[Report]:
    """TAP with counts at its end; what failed stands there only where something did."""
    return [Report(passed=int(m[2]), failed=group_number(m, 3), position=m.start()) for m in _TAPE.finditer(text)]


def read_jest(text: str) -> list[Report]:
    reports = [_jest_report(match, text) for match in _JEST.finditer(text)]
    if reports:
        return reports
    if match := _JEST_EMPTY.search(text):
        return [Report(nothing="no tests found", position=match.start())]
    match = _JEST_FAILURE.search(text)
    return [Report(failed=1, position=match.start(), partial=True)] if match else []


def _jest_report(match: re.Match[str], text: str) -> Report:
    failed = sum_counts(match[1], ["failed"])
    broken = group_number(_JEST_SUITES.search(text))
    passed = sum_counts(match[1], ["passed"])
    skipped = sum_counts(match[1], ["skipped", "todo"])
    # Suites failed and no test did: files could not be loaded.
    if broken and not failed:
        if not passed:
            return Report(nothing="a test file could not be run", broken=True, skipped=skipped, position=match.start())
        failed = broken
    return Report(passed=passed, failed=failed, skipped=skipped, position=match.start())


def read_vitest(text: str) -> list[Report]:
    reports: list[Report] = []
    for match in _VITEST.finditer(text):
        body = match[1] or ""
        failed, passed = sum_counts(body, ["failed"]), sum_counts(body, ["passed"])
        broken = group_number(_VITEST_FILES.search(text))
        nothing = "no tests were run" if not passed and not failed else ""
        # Likewise: a file that cannot be loaded counts as a failure beside tests that passed.
        failed = broken if broken and not failed and passed else failed
        reports.append(
            Report(
                passed=passed,
                failed=failed,
                skipped=sum_counts(body, ["skipped", "todo"]),
                nothing=nothing,
                position=match.start(),
            )
        )
    if not reports and (match := _VITEST_EMPTY.search(text)):  # type: ignore[assignment]
        return [Report(nothing="no test files found", position=match.start())]
    return reports


def read_mocha(text: str) -> list[Report]:
    matches = list(_MOCHA.finditer(text))
    # Each summary reaches to the next one, so that counts of several runs are not mixed.
    ends = [match.start() for match in matches[1:]] + [len(text)]
    return [
        Report(
            passed=int(match[1]),
            failed=group_number(_MOCHA_FAILED.search(text, match.end(), end)),
            skipped=group_number(_MOCHA_PENDING.search(text, match.end(), end)),
            nothing="" if int(match[1]) or _MOCHA_FAILED.search(text, match.end(), end) else "no test was run",
            position=match.start(),
        )
        for match, end in zip(matches, ends, strict=False)
    ]


def read_node(text: str) -> list[Report]:
    matches = list(_NODE.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    reports = []
    for match, end in zip(matches, ends, strict=False):
        parts = {name: pattern.search(text, match.end(), end) for name, pattern in _NODE_PART.items()}
        # Both counts are always printed; without them the summary was cut off.
        if parts["pass"] is None or parts["fail"] is None:
            continue
        failed = group_number(parts["fail"]) + group_number(parts["cancelled"])
        broken = (
            len(_NODE_BROKEN_FILE.findall(text, 0, match.start())) if failed and not group_number(parts["pass"]) else 0
        )
        # Every failure is a file that did not load, so no test ran.
        if broken and broken >= failed:
            reports.append(Report(nothing="the test files could not be run", broken=True, position=match.start()))
            continue
        reports.append(
            Report(
                passed=group_number(parts["pass"]),
                failed=failed,
                skipped=group_number(parts["skipped"]),
                position=match.start(),
            )
        )
    if not matches:
        reports = [Report(passed=int(m[1]), failed=int(m[2]), position=m.start()) for m in _NODE_COUNTS.finditer(text)]
    if not reports and (sign := _NODE_FAILURE.search(text)):
        return [Report(failed=1, position=sign.start(), partial=True)]
    return reports


def read_bun(text: str) -> list[Report]:
    ran, passed = _BUN_RAN.search(text), _BUN.search(text)
    if ran is None or passed is None:
        sign = _BUN_FAILURE.search(text)  # With `--bail` it ends without its counts.
        return [Report(failed=1, position=sign.start(), partial=True)] if sign else []
    return [Report(passed=group_number(passed), failed=group_number(_BUN_FAILED.search(text)), position=ran.start())]


def read_deno(text: str) -> list[Report]:
    return [Report(passed=int(m[2]), failed=int(m[3]), position=m.start()) for m in _DENO.finditer(text)]


def read_playwright(text: str) -> list[Report]:
    passed, failed = _PLAYWRIGHT.search(text), _PLAYWRIGHT_FAILED.search(text)
    if passed is None and failed is None:
        return []
    at = (passed or failed).start()  # type: ignore[union-attr]
    return [
        Report(
            passed=group_number(passed),
            failed=group_number(failed),
            skipped=group_number(_PLAYWRIGHT_SKIPPED.search(text)),
            position=at,
        )
    ]


def read_cypress(text: str) -> list[Report]:
    return [
        Report(passed=0 if m[3] == "-" else int(m[3]), failed=0 if m[4] == "-" else int(m[4]), position=m.start())
        for m in _CYPRESS.finditer(text)
    ]


def read_ava(text: str) -> list[Report]:
    matches = list(_AVA.finditer(text))
    if not matches:
        return read_tape(text)
    return [
        Report(
            passed=sum(group_number(m, 1) for m in matches),
            failed=sum(group_number(m, 2) for m in matches),
            position=matches[0].start(),
        )
    ]
