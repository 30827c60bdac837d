"""Reads the summaries of the test runners of Ruby, PHP, Perl and the shell."""

import re

from holdfast.features.checks.runners.spec import Report, group_number

_RSPEC = re.compile(
    r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?\s*$",
    re.MULTILINE,
)
_PHPUNIT_OK = re.compile(r"^OK \((\d+) tests?, \d+ assertions?\)", re.MULTILINE)
_PHPUNIT = re.compile(r"^Tests: (\d+), Assertions: \d+(.*)$", re.MULTILINE)
_PEST = re.compile(r"^\s*Tests: {4}((?:\d+ \w+(?:, )?)+) \(\d+ assertions?\)", re.MULTILINE)
_PROVE = re.compile(r"^Files=\d+, Tests=(\d+),[^\n]*\nResult: (PASS|FAIL|NOTESTS)", re.MULTILINE)
_BATS = re.compile(r"^(\d+) tests?, (\d+) failures?(?:, (\d+) skipped)?", re.MULTILINE)
# TAP: `1..N` is the plan, then `ok n` or `not ok n`.
_TAP_PLAN = re.compile(r"^1\.\.(\d+)\s*$", re.MULTILINE)
_TAP_OK = re.compile(r"^ok \d+(?! .*# [sS][kK][iI][pP])", re.MULTILINE)
# A failure that is marked as TODO is expected.
_TAP_BAD = re.compile(r"^not ok \d+(?! .*# TODO)", re.MULTILINE)


def read_rspec(text: str) -> list[Report]:
    reports = []
    for match in _RSPEC.finditer(text):
        total, failed, pending, outside = int(match[1]), int(match[2]), group_number(match, 3), group_number(match, 4)
        nothing = "no example was run" if total - pending == 0 and not failed else ""
        reports.append(
            Report(
                passed=total - failed - pending,
                # Without any example, errors outside of them mean that nothing could be loaded.
                failed=failed + (outside if total else 0),
                skipped=pending,
                nothing=nothing,
                position=match.start(),
            )
        )
    return reports


def read_phpunit(text: str) -> list[Report]:
    reports = [Report(passed=int(m[1]), position=m.start()) for m in _PHPUNIT_OK.finditer(text)]
    for match in _PHPUNIT.finditer(text):
        bad = sum(int(n) for n in re.findall(r"(?:Failures|Errors): (\d+)", match[2]))
        skipped = sum(int(n) for n in re.findall(r"(?:Skipped|Incomplete): (\d+)", match[2]))
        reports.append(
            Report(passed=max(0, int(match[1]) - bad - skipped), failed=bad, skipped=skipped, position=match.start())
        )
    for match in _PEST.finditer(text):
        failed, passed = (group_number(re.search(rf"(\d+) {name}", match[1])) for name in ("failed", "passed"))
        reports.append(Report(passed=passed, failed=failed, position=match.start()))
    if not reports and "No tests executed!" in text:
        return [Report(nothing="no tests executed")]
    return reports


def read_prove(text: str) -> list[Report]:
    return [
        Report(passed=int(m[1]) if m[2] == "PASS" else 0, failed=1 if m[2] == "FAIL" else 0, position=m.start())
        for m in _PROVE.finditer(text)
    ]


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
