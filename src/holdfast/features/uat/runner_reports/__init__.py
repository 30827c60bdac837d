"""Results of test runners as runs: Playwright's and Cypress's JSON, and JUnit XML as pytest and others write it."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import CommandRefused
from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.features.uat.settings import FAILED, INTERRUPTED, LONGEST_NAME, MOST_STEPS, PASSED, SKIPPED, clean_line

LARGEST_REPORT = 64 << 20
MOST_TESTS = 5_000
_EXPECTED = re.compile(
    r"^\s*(?:Expected(?: \w+){0,3}|expected):\s*(?P<value>.{1,300})$|\bexpected (?P<words>(?:not )?to .{1,300})$",
    re.MULTILINE,
)
"""As Jest and Playwright for JavaScript say it, and as Playwright for Python does."""
_RECEIVED = re.compile(
    r"^\s*(?:Received(?: \w+){0,3}|received|Actual(?: \w+){0,2}|actual):\s*(.{1,300})$", re.MULTILINE
)
_IN_A_SENTENCE = re.compile(
    r"\bexpected:? (?P<wanted>.{1,300}?) but was:? (?P<was>.{1,300})$|"
    r"\bexpected (?P<given>.{1,300}?) (?P<to>(?:not )?to .{1,300})$",
    re.MULTILINE,
)
"""As JUnit says it, and as Chai does for Cypress and Mocha: there the received value comes first."""
# Colours of a terminal.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_WORDS = {
    "expected": PASSED,
    "passed": PASSED,
    "pass": PASSED,
    "failed": FAILED,
    "fail": FAILED,
    "timedOut": FAILED,
    "skipped": SKIPPED,
    "pending": SKIPPED,
    "interrupted": INTERRUPTED,
    "unexpected": FAILED,
}


class TestAttempt(msgspec.Struct, frozen=True):
    status: str
    ms: int = 0
    error: str = ""
    expected: str = ""
    received: str = ""
    pictures: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """(console or network, its message)."""
    address: str = ""
    """Of the page."""


class TestCase(msgspec.Struct, frozen=True):
    title: str
    file: str
    attempts: tuple[TestAttempt, ...]


class TestReport(msgspec.Struct, frozen=True):
    runner: str
    name: str
    cases: tuple[TestCase, ...]


def parse_report(content: bytes, name: str) -> list[TestReport]:
    """One report, or one for each file of tests where they are more than a run can have steps."""
    if len(content) > LARGEST_REPORT:
        raise CommandRefused(f"{name} is larger than {LARGEST_REPORT >> 20} MB")
    # JUnit is XML, all others are JSON.
    start = content.lstrip()[:1]
    runner, cases = _parse_xml(content, name) if start == b"<" else _parse_json(content, name)
    all_cases = tuple(cases)[:MOST_TESTS]
    if not all_cases:
        raise CommandRefused(f"there are no tests in {name}", fix="Give a JSON or JUnit report of a test runner.")
    if len(all_cases) <= MOST_STEPS:
        return [TestReport(runner, clean_line(name, LONGEST_NAME), all_cases)]
    files = dict.fromkeys(case.file for case in all_cases)
    return [_of_file(runner, file or name, all_cases, file) for file in files]


def _of_file(runner: str, name: str, cases: tuple[TestCase, ...], file: str) -> TestReport:
    mine = tuple(case for case in cases if case.file == file)
    if len(mine) > MOST_STEPS:
        raise CommandRefused(f"{name} has {len(mine)} tests; a run has at most {MOST_STEPS} steps")
    return TestReport(runner, clean_line(name, LONGEST_NAME), mine)


def failed_attempt(
    status: str, ms: Any, message: Any, pictures: tuple[str, ...] = (), traces: tuple[str, ...] = ()
) -> TestAttempt:
    """Finds expected and received values in the message."""
    text = _COLOURS.sub("", str(message or ""))[:20_000] if status in (FAILED, INTERRUPTED) else ""
    expected, received = _expected_and_received(text)
    return TestAttempt(
        status=status,
        ms=max(0, int(ms)) if isinstance(ms, int | float) else 0,
        error=clean_line(text.strip().partition("\n")[0], 300),
        expected=clean_line(expected, 200),
        received=clean_line(received, 200),
        pictures=pictures,
        traces=traces,
    )


def _expected_and_received(text: str) -> tuple[str, str]:
    sentence, wanted, seen = _IN_A_SENTENCE.search(text), _EXPECTED.search(text), _RECEIVED.search(text)
    if sentence is not None and (sentence["wanted"] or (wanted is None and seen is None)):
        return sentence["wanted"] or sentence["to"], sentence["was"] or sentence["given"]
    return (wanted["value"] or wanted["words"]) if wanted else "", seen[1] if seen else ""


# ── pictures and traces next to a report that does not name them ─────────────────────────────────────────────────────

MOST_ARTIFACTS = 5_000
# The name of the test, then ` (failed)` and ` (attempt 2)` where they apply.
_CYPRESS_PICTURE = re.compile(r"(.*?)(?: \(failed\))?(?: \(attempt (\d{1,3})\))?", re.DOTALL)
Artifacts = dict[tuple[str, int], list[Path]]
"""By the letters of the test's title and the number of the attempt; 0 where that is not known."""


def add_artifacts(report: TestReport, folder: Path) -> TestReport:
    """pytest-playwright and Cypress leave pictures in folders of their own, named for the test."""
    if report.runner == "playwright":
        return report
    artifacts = _pytest_artifacts(folder) if report.runner == "pytest" else _cypress_artifacts(folder)
    return replace(report, cases=tuple(_with_files(case, artifacts) for case in report.cases)) if artifacts else report


def _with_files(case: TestCase, artifacts: Artifacts) -> TestCase:
    """The files of an attempt at that attempt; where only the test is known, at the last one."""
    name, made = _letters(case.title), []
    for number, attempt in enumerate(case.attempts, 1):
        whole = artifacts.get((name, 0), []) if number == len(case.attempts) else []
        files = artifacts.get((name, number)) or whole
        if not (attempt.pictures or attempt.traces):  # else the report named them itself
            pictures = tuple(str(file) for file in files if file.suffix in (".png", ".jpg", ".jpeg"))
            traces = tuple(str(file) for file in files if file.suffix == ".zip")
            attempt = replace(attempt, pictures=pictures, traces=traces)
        made.append(attempt)
    return replace(case, attempts=tuple(made))


def _pytest_artifacts(folder: Path) -> Artifacts:
    """`test-results/<slug of the node id>/test-failed-1.png`; a report names the module without its ending."""
    # The report has `test_login`, the folder `test-login-py-…`.
    return _by_test(folder / "test-results", lambda file: (file.parent.name.replace("-py-", "-", 1), 0))


def _cypress_artifacts(folder: Path) -> Artifacts:
    """`cypress/screenshots/<spec>/<suite> -- <test> (failed) (attempt 2).png`."""

    def test_of(file: Path) -> tuple[str, int]:
        named = _CYPRESS_PICTURE.fullmatch(file.stem)
        return (named[1], int(named[2] or 1)) if named else ("", 0)

    return _by_test(folder / "cypress" / "screenshots", test_of)


def _by_test(folder: Path, test_of: Callable[[Path], tuple[str, int]]) -> Artifacts:
    artifacts: Artifacts = {}
    for file in sorted(islice((file for file in folder.rglob("*") if file.is_file()), MOST_ARTIFACTS)):
        title, attempt = test_of(file)
        artifacts.setdefault((_letters(title), attempt), []).append(file)
    return artifacts


def _letters(title: str) -> str:
    """A title as both its report and its folder have it: they differ in everything but letters and digits."""
    return re.sub(r"[\W_]+", "", title).lower()


# ── a report as a run ────────────────────────────────────────────────────────────────────────────────────────────────


def run_events(report: TestReport, start: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """(kind, at, data) of a run: a test is a step, a result of it an attempt."""
    at, n = start, 0
    for number, case in enumerate(report.cases, 1):
        for attempt in case.attempts:
            if attempt.status == SKIPPED:
                yield "uat.step", at, {"step": number, "status": SKIPPED}
                continue
            n, began, at = n + 1, at, at + attempt.ms
            yield "uat.call_ended", at, _call_data(report, attempt, number, n, began)


def _call_data(report: TestReport, attempt: TestAttempt, step: int, n: int, began: int) -> dict[str, Any]:
    passed = attempt.status == PASSED
    return {
        "n": n,
        "tool": f"{report.runner} test",
        "step": step,
        "matched": True,
        "ms": attempt.ms,
        "began": began,
        "ok": passed,
        "interrupted": attempt.status == INTERRUPTED,
        "error": "" if passed else attempt.error or "failed",
        "expected": attempt.expected,
        "received": attempt.received,
        "parameters": {},
        "result": {},
        "shots": list(attempt.pictures),
        "traces": list(attempt.traces),
        "problems": [{"type": kind, "level": "error", "message": text} for kind, text in attempt.problems],
        "url": attempt.address,
    }


def plan_of_report(report: TestReport) -> Plan:
    steps = [PlannedStep(action="test", description=clean_line(case.title, 500)) for case in report.cases]
    return Plan(name=report.name, description=f"Imported from {report.runner}", steps=steps)


# ── JSON ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _parse_json(content: bytes, name: str) -> tuple[str, Iterator[TestCase]]:
    try:
        tree = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandRefused(f"{name} cannot be read: {clean_line(error, 200)}") from None
    for key, (runner, read) in _JSON_REPORTS.items():
        if isinstance(tree, Mapping) and isinstance(tree.get(key), list):
            return runner, read(tree[key])
    raise CommandRefused(f"{name} is not a known report", fix="Known: Playwright, Cypress, mochawesome, JUnit.")


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _status(word: Any) -> str:
    return _WORDS.get(str(word), FAILED)


def _playwright_cases(suites: Any, titles: tuple[str, ...] = ()) -> Iterator[TestCase]:
    for suite in _mappings(suites):
        title = str(suite.get("title") or "")
        # The outermost suite is the file itself: its name is not repeated in every title.
        here = titles if title == suite.get("file") else (*titles, title)
        for spec in _mappings(suite.get("specs")):
            name = " › ".join(filter(None, (*here, str(spec.get("title") or ""))))
            for test in _mappings(spec.get("tests")):
                label = f"[{test['projectName']}] " if test.get("projectName") else ""
                yield TestCase(label + name, str(spec.get("file") or ""), _playwright_attempts(test))
        yield from _playwright_cases(suite.get("suites"), here)


def _playwright_attempts(test: Mapping[str, Any]) -> tuple[TestAttempt, ...]:
    if test.get("status") == "skipped" or not test.get("results"):
        return (TestAttempt(SKIPPED),)
    # `expectedStatus` is `failed` for tests marked with test.fail().
    meant = test.get("expectedStatus", "passed")
    return tuple(_playwright_attempt(result, meant) for result in _mappings(test.get("results")))


def _playwright_attempt(result: Mapping[str, Any], meant: Any) -> TestAttempt:
    """A test that is meant to fail and does has passed."""
    status = _status(result.get("status"))
    if status != SKIPPED and result.get("status") == meant:
        status = PASSED
    elif status == PASSED:
        status = FAILED
    messages = [str(one.get("message")) for one in _mappings(result.get("errors"))]
    message = "\n".join(messages) or str(_mapping(result.get("error")).get("message") or "failed")
    return failed_attempt(status, result.get("duration"), message, *_attached_files(result))


def _attached_files(result: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(pictures, traces)"""
    files = [one for one in _mappings(result.get("attachments")) if isinstance(one.get("path"), str)]
    pictures = tuple(one["path"] for one in files if str(one.get("contentType")).startswith("image/"))
    return pictures, tuple(one["path"] for one in files if one.get("name") == "trace")


def _cypress_cases(runs: Any) -> Iterator[TestCase]:
    for run in _mappings(runs):
        for test in _mappings(run.get("tests")):
            title = test.get("title")
            name = " › ".join(map(str, title)) if isinstance(title, list) else str(title)
            attempts = (_cypress_attempt(one, test) for one in _mappings(test.get("attempts")) or [test])
            yield TestCase(name, str(_mapping(run.get("spec")).get("relative", "")), tuple(attempts))


def _cypress_attempt(attempt: Mapping[str, Any], test: Mapping[str, Any]) -> TestAttempt:
    ms = attempt.get("wallClockDuration") or attempt.get("duration") or test.get("duration") or 0
    # Before Cypress 13 each attempt has an error of its own, an object.
    error = attempt.get("error")
    if isinstance(error, Mapping):
        error = ": ".join(str(error[name]) for name in ("name", "message") if error.get(name))
    return failed_attempt(_status(attempt.get("state")), ms, error or test.get("displayError"))


def _mocha_cases(suites: Any, file: str = "") -> Iterator[TestCase]:
    for suite in _mappings(suites):
        here = file or str(suite.get("file"))
        for test in _mappings(suite.get("tests")):
            status = _status(test.get("state") or ("pending" if test.get("pending") else "failed"))
            attempt = failed_attempt(status, test.get("duration"), _mapping(test.get("err")).get("message"))
            yield TestCase(str(test.get("fullTitle") or test.get("title")), here, (attempt,))
        yield from _mocha_cases(suite.get("suites"), here)


_JSON_REPORTS: dict[str, tuple[str, Callable[[Any], Iterator[TestCase]]]] = {
    "suites": ("playwright", _playwright_cases),
    "runs": ("cypress", _cypress_cases),
    "results": ("mochawesome", _mocha_cases),
}
"""By the field of the report that has its tests."""


# ── JUnit ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _parse_xml(content: bytes, name: str) -> tuple[str, Iterator[TestCase]]:
    # Entities of an XML document can grow without limit, or read files.
    if b"<!DOCTYPE" in content[:4_000] or b"<!ENTITY" in content:
        raise CommandRefused(f"{name} has a document type, therefore it is not read")
    try:
        root = Xml.fromstring(content)  # noqa: S314 - document types and entities are refused above
    except Xml.ParseError as error:
        raise CommandRefused(f"{name} cannot be read: {error}") from None
    suite = root.find("testsuite") if root.tag == "testsuites" else root
    runner = "pytest" if suite is not None and suite.get("name") == "pytest" else "junit"
    return runner, (_junit_case(case) for case in root.iter("testcase"))


def _junit_case(case: Xml.Element) -> TestCase:
    title = " › ".join(filter(None, (case.get("classname"), case.get("name"))))
    last = _last_junit_attempt(case)
    earlier = [failed_attempt(FAILED, 0, _failure_message(one)) for one in _elements(case, *_EARLIER)]
    # Surefire's rerunFailure reports later attempts of a failed test,
    # flakyFailure earlier ones of a passed test.
    is_rerun = last.status == FAILED and _elements(case, "rerunFailure", "rerunError")
    attempts = (last, *earlier) if is_rerun else (*earlier, last)
    return TestCase(title, case.get("file") or case.get("classname") or "", attempts)


_EARLIER = ("flakyFailure", "flakyError", "rerunFailure", "rerunError")


def _last_junit_attempt(case: Xml.Element) -> TestAttempt:
    failures = _elements(case, "failure", "error")
    status = FAILED if failures else SKIPPED if case.find("skipped") is not None else PASSED
    # A thousands separator or a unit would not be part of a number.
    seconds = re.sub(r"[^0-9.]", "", case.get("time") or "") or "0"
    # Where pytest-playwright says which files it left.
    properties = {one.get("name"): str(one.get("value")) for one in case.iter("property") if one.get("value")}
    pictures, traces = (
        (properties[name],) if name in properties else () for name in ("playwright_screenshot", "playwright_trace")
    )
    message = _failure_message(failures[0]) if failures else ""
    return failed_attempt(status, float(seconds) * 1000, message, pictures, traces)


def _elements(case: Xml.Element, *tags: str) -> list[Xml.Element]:
    return [element for tag in tags for element in case.findall(tag)]


def _failure_message(element: Xml.Element) -> str:
    return f"{element.get('message') or ''}\n{element.text or ''}"
