"""Test runners of JavaScript and TypeScript."""

import re

from holdfast.core.checks import Verdict
from holdfast.features.checks.runners.spec import Report, Runner, flag_set, group_number, sum_counts

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


JEST = Runner(
    name="jest",
    programs=("jest", "react-scripts test"),
    runs_nothing=flag_set("--version -v --help -h --showConfig --listTests --init --clearCache"),
    takes_value=flag_set("-c --config -t --testNamePattern --maxWorkers -w --reporters --coverageDirectory --rootDir --selectProjects --shard --testTimeout --env --roots"),
    selects=flag_set("-t --testNamePattern -o --onlyChanged --changedSince --lastCommit -f --onlyFailures --testPathPattern --testPathPatterns --findRelatedTests --selectProjects --shard --testPathIgnorePatterns"),
    whole_operands=re.compile(r"^\.?/?$"),
    lenient=flag_set("--passWithNoTests -o --onlyChanged --changedSince --lastCommit --findRelatedTests -f --onlyFailures"),
    read=read_jest,
    stream="stderr",
    watches=flag_set("--watch --watchAll"),
)  # fmt: skip
VITEST = Runner(
    name="vitest",
    programs=("vitest",),
    runs_nothing=flag_set("--version -v --help -h --mergeReports"),
    nothing_operands=flag_set("list init"),
    takes_value=flag_set("-c --config -t --testNamePattern --reporter --outputFile -r --root --dir --pool --shard --project --environment --bail"),
    selects=flag_set("-t --testNamePattern --changed --shard --project --exclude"),
    whole_operands=re.compile(r"^(?:run|watch|dev|\.)$"),
    lenient=flag_set("--passWithNoTests --changed --dangerouslyIgnoreUnhandledErrors"),
    read=read_vitest,
    watches=flag_set("--watch -w"),
)  # fmt: skip
MOCHA = Runner(
    name="mocha",
    programs=("mocha", "_mocha"),
    runs_nothing=flag_set(
        "--version -V --help -h --dry-run --list-files --list-reporters --list-interfaces --list-uis"
    ),
    takes_value=flag_set(
        "-r --require -g --grep -f --fgrep -R --reporter -t --timeout -u --ui --config --spec --ignore -n"
    ),
    selects=flag_set("-g --grep -f --fgrep"),
    # Its exit status is the number of failures.
    codes={0: Verdict.PASSED, **dict.fromkeys(range(1, 100), Verdict.FAILED)},
    empty_succeeds=True,
    read=read_mocha,
)
NODE = Runner(
    name="node",
    programs=("node --test",),
    runs_nothing=flag_set("--version -v --help -h --check -c"),
    takes_value=flag_set(
        "--import --require -r --test-name-pattern --test-reporter --test-reporter-destination --loader"
    ),
    selects=flag_set("--test-name-pattern --test-only --test-skip-pattern --test-shard"),
    empty_succeeds=True,
    read=read_node,
    watches=flag_set("--watch"),
)
BUN = Runner(
    name="bun",
    programs=("bun test",),
    runs_nothing=flag_set("--help -h --version"),
    takes_value=flag_set("-t --test-name-pattern --timeout --preload --bail"),
    selects=flag_set("-t --test-name-pattern --only"),
    read=read_bun,
    stream="stderr",
    watches=flag_set("--watch"),
)
DENO = Runner(
    name="deno",
    programs=("deno test",),
    runs_nothing=flag_set("--help -h --no-run"),
    selects=flag_set("--filter"),
    takes_value=flag_set("--filter --config -c --coverage"),
    read=read_deno,
    watches=flag_set("--watch"),
)
PLAYWRIGHT = Runner(
    name="playwright",
    programs=("playwright test",),
    runs_nothing=flag_set("--help -h --list --version --ui"),
    takes_value=flag_set("-g --grep --project -c --config --reporter -j --workers --retries --shard"),
    selects=flag_set("-g --grep --project --shard --last-failed --only-changed --grep-invert"),
    lenient=flag_set("--pass-with-no-tests --last-failed --only-changed"),
    read=read_playwright,
)
CYPRESS = Runner(
    name="cypress",
    programs=("cypress run",),
    runs_nothing=flag_set("--help -h --version"),
    takes_value=flag_set("-s --spec -b --browser -c --config -e --env"),
    selects=flag_set("-s --spec"),
    # Its exit status is the number of failures.
    codes={0: Verdict.PASSED, **dict.fromkeys(range(1, 100), Verdict.FAILED)},
    read=read_cypress,
)
AVA = Runner(
    name="ava",
    programs=("ava",),
    runs_nothing=flag_set("--help --version"),
    selects=flag_set("-m --match"),
    read=read_ava,
)
TAPE = Runner(
    name="tape",
    programs=("tape",),
    runs_nothing=flag_set("--help --version"),
    takes_value=flag_set("-r --require -i --ignore"),
    selects=flag_set("--only"),
    empty_succeeds=True,
    read=read_tape,
)
TESTS = (JEST, VITEST, MOCHA, NODE, BUN, DENO, PLAYWRIGHT, CYPRESS, TAPE, AVA)
