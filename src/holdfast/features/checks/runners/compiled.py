"""Reads the summaries of the test runners of Go, Rust, the JVM, .NET and C++."""

import re

from holdfast.features.checks.runners.spec import Report, group_number

# `ok  pkg  0.3s` or `(cached)`, with a remark behind it such as `[no tests to run]`.
_GO_OK = re.compile(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(.*)$", re.MULTILINE)
_GO_PASS = re.compile(r"^\s*--- PASS: ", re.MULTILINE)
_GO_FAIL = re.compile(r"^(?:FAIL(?:\t\S+.*)?|--- FAIL: .*)[ \t]*$", re.MULTILINE)
_GO_FAILED_TEST = re.compile(r"^\s*--- FAIL: ", re.MULTILINE)
_GO_BROKEN = re.compile(r"^FAIL\s+\S+ \[(?:build|setup) failed\]", re.MULTILINE)
# `go test -json`: events of single tests, not of packages.
_GO_JSON = re.compile(r'"Action":"(pass|fail)","Package":"[^"]*","Test":')
_CARGO = re.compile(r"^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)
_CARGO_ERROR = re.compile(r"^error: (?:test failed, to rerun|\d+ targets? failed)", re.MULTILINE)
_NEXTEST = re.compile(r"^\s*Summary \[ *[\d.]+s\] +(\d+)(?:/\d+)? tests? run: (\d+) passed([^\n]*)$", re.MULTILINE)
_GRADLE_COUNT = re.compile(r"^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?", re.MULTILINE)
_GRADLE_TASK = re.compile(
    r"^> Task :\S*[tT]est(?P<state> (?:UP-TO-DATE|NO-SOURCE|FROM-CACHE|SKIPPED|FAILED))?\s*$", re.MULTILINE
)
_GRADLE_OK = re.compile(r"^BUILD SUCCESSFUL in ", re.MULTILINE)
_MESON = re.compile(r"^(Ok|Fail|Timeout|Skipped|Unexpected Pass):[ \t]+(\d+)[ \t]*$", re.MULTILINE)


def read_go(text: str) -> list[Report]:
    ok = [match for match in _GO_OK.finditer(text) if "no tests to run" not in match[1]]
    failure = _GO_FAIL.search(text)
    # Here the plain lines stand inside of JSON, so only the events count.
    if '"Action":' in text and (actions := _GO_JSON.findall(text)):
        return [Report(passed=actions.count("pass"), failed=actions.count("fail"))]
    if failure:
        failed = len(_GO_FAILED_TEST.findall(text))
        broken = len(_GO_BROKEN.findall(text))
        # No test ran in any package.
        if broken and not failed and not ok:
            return [Report(nothing="the packages do not build", broken=True, position=failure.start())]
        # Without `-v` single tests are not listed; then packages are counted.
        return [Report(passed=len(_GO_PASS.findall(text)) or len(ok), failed=max(1, failed), position=failure.start())]
    # One for each package, so that several runs can be told apart; those of one run are summed up.
    if ok:
        begins = [0, *(match.end() for match in ok[:-1])]
        return [
            Report(passed=len(_GO_PASS.findall(text, begin, match.end())) or 1, position=match.start())
            for begin, match in zip(begins, ok, strict=True)
        ]
    if _GO_OK.search(text) or "[no test files]" in text:
        return [Report(nothing="no tests to run")]
    return []


def read_cargo(text: str) -> list[Report]:
    reports = [
        Report(
            passed=int(m[2]),
            # `FAILED` counts as one failure even where the number says 0.
            failed=max(int(m[3]), m[1] == "FAILED"),
            skipped=int(m[4]),
            nothing="0 passed" if m[1] == "ok" and m[2] == "0" else "",
            position=m.start(),
        )
        for m in _CARGO.finditer(text)
    ]
    # One of several binaries failed, and its own summary was cut off.
    if (error := _CARGO_ERROR.search(text)) and not any(report.failed for report in reports):
        reports.append(Report(failed=1, position=error.start(), partial=True))
    return reports


def read_nextest(text: str) -> list[Report]:
    reports = []
    for match in _NEXTEST.finditer(text):
        bad = sum(int(n) for n in re.findall(r"(\d+) (?:failed|timed out|exec failed)", match[3]))
        reports.append(
            Report(
                passed=int(match[2]),
                failed=bad,
                skipped=group_number(re.search(r"(\d+) skipped", match[3])),
                position=match.start(),
            )
        )
    return reports


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


def read_meson(text: str) -> list[Report]:
    """`Ok: 2`, `Fail: 0`, … one to a line; the counts of zero may be left out."""
    found = {name: int(number) for name, number in _MESON.findall(text)}
    # Every summary of meson has this line.
    if "Ok" not in found:
        return []
    bad = sum(found.get(name, 0) for name in ("Fail", "Timeout", "Unexpected Pass"))
    position = max(match.start() for match in _MESON.finditer(text))
    return [Report(passed=found["Ok"], failed=bad, skipped=found.get("Skipped", 0), position=position)]
