"""Results of test runners as runs: Playwright's and Cypress's JSON, and JUnit XML as pytest and others write it."""

import re
from collections.abc import Iterator, Mapping
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
    """With what was expected and received, where the message says so in the usual words."""
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


# ── pictures and traces beside a report that does not name them ────────────────────────────────────────────────────

MOST_ARTIFACTS = 5_000
# The name of the test, then ` (failed)` and ` (attempt 2)` where they apply.
_CYPRESS_PICTURE = re.compile(r"(.*?)(?: \(failed\))?(?: \(attempt (\d{1,3})\))?", re.DOTALL)


def add_artifacts(report: TestReport, folder: Path) -> TestReport:
    """pytest-playwright and Cypress leave pictures in folders of their own; their names say of which test."""
    find = _pytest_artifacts if report.runner == "pytest" else _cypress_artifacts
    artifacts = find(folder) if report.runner != "playwright" else {}
    if not artifacts:
        return report
    return replace(report, cases=tuple(_with_files(case, artifacts) for case in report.cases))


def _with_files(case: TestCase, artifacts: Mapping[tuple[str, int], list[Path]]) -> TestCase:
    """The files of an attempt at that attempt; where only the test is known, at the last one."""
    last = len(case.attempts)
    made = [
        _attempt_with_files(attempt, _files_of(case, number, artifacts, is_last=number == last))
        for number, attempt in enumerate(case.attempts, 1)
    ]
    return replace(case, attempts=tuple(made))


def _files_of(
    case: TestCase, number: int, artifacts: Mapping[tuple[str, int], list[Path]], *, is_last: bool
) -> list[Path]:
    name = _letters(case.title)
    return artifacts.get((name, number)) or (artifacts.get((name, 0), []) if is_last else [])


def _attempt_with_files(attempt: TestAttempt, files: list[Path]) -> TestAttempt:
    if attempt.pictures or attempt.traces:  # the report named them itself
        return attempt
    pictures = tuple(str(file) for file in files if file.suffix in (".png", ".jpg", ".jpeg"))
    traces = tuple(str(file) for file in files if file.suffix == ".zip")
    return replace(attempt, pictures=attempt.pictures + pictures, traces=attempt.traces + traces)


def _pytest_artifacts(folder: Path) -> dict[tuple[str, int], list[Path]]:
    """`test-results/<slug of the node id>/test-failed-1.png`; a report names the module without its ending."""
    artifacts: dict[tuple[str, int], list[Path]] = {}
    for file in _listed_files(folder / "test-results"):
        # The report has `test_login`, the folder `test-login-py-…`.
        artifacts.setdefault((_letters(re.sub(r"-py-", "-", file.parent.name, count=1)), 0), []).append(file)
    return artifacts


def _cypress_artifacts(folder: Path) -> dict[tuple[str, int], list[Path]]:
    """`cypress/screenshots/<spec>/<suite> -- <test> (failed) (attempt 2).png`."""
    artifacts: dict[tuple[str, int], list[Path]] = {}
    for file in _listed_files(folder / "cypress" / "screenshots"):
        named = _CYPRESS_PICTURE.fullmatch(file.stem)
        if named:
            artifacts.setdefault((_letters(named[1]), int(named[2] or 1)), []).append(file)
    return artifacts


def _listed_files(folder: Path) -> list[Path]:
    return sorted(islice((file for file in folder.rglob("*") if file.is_file()), MOST_ARTIFACTS))


def _letters(title: str) -> str:
    """A title as both its report and its folder have it: they differ in everything but letters and digits."""
    return re.sub(r"[\W_]+", "", title).lower()


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
    failure = {"error": attempt.error or "failed"} if attempt.status != PASSED else {"error": ""}
    failure |= {"expected": attempt.expected, "received": attempt.received}
    return {
        "n": n,
        "tool": f"{report.runner} test",
        "step": step,
        "matched": True,
        "ms": attempt.ms,
        "began": began,
        "ok": attempt.status == PASSED,
        "interrupted": attempt.status == INTERRUPTED,
        "parameters": {},
        "result": {},
        "shots": list(attempt.pictures),
        "traces": list(attempt.traces),
        "problems": [{"type": kind, "level": "error", "message": text} for kind, text in attempt.problems],
        "url": attempt.address,
        **failure,
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
    if isinstance(tree, Mapping) and isinstance(tree.get("suites"), list):
        return "playwright", _playwright_cases(tree["suites"], ())
    if isinstance(tree, Mapping) and isinstance(tree.get("runs"), list):
        return "cypress", (case for run in tree["runs"] for case in _cypress_cases(run))
    if isinstance(tree, Mapping) and isinstance(tree.get("results"), list):
        return "mochawesome", (
            case for result in tree["results"] for case in _mocha_cases(result, str(result.get("file")))
        )
    raise CommandRefused(f"{name} is no report that is known", fix="Known: Playwright, Cypress, mochawesome, JUnit.")


def _only_mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _playwright_cases(suites: Any, titles: tuple[str, ...]) -> Iterator[TestCase]:
    for suite in _only_mappings(suites):
        title = str(suite.get("title") or "")
        # The outermost suite is the file itself: its name is not repeated in every title.
        here = titles if title == suite.get("file") else (*titles, title)
        for spec in _only_mappings(suite.get("specs")):
            for test in _only_mappings(spec.get("tests")):
                names = [*here, str(spec.get("title") or "")]
                project = str(test.get("projectName") or "")
                label = f"[{project}] " if project else ""
                yield TestCase(
                    label + " › ".join(filter(None, names)), str(spec.get("file") or ""), _playwright_attempts(test)
                )
        yield from _playwright_cases(suite.get("suites"), here)


def _playwright_attempts(test: Mapping[str, Any]) -> tuple[TestAttempt, ...]:
    """A test that is meant to fail and does has passed: the runner's own word goes before that of each result."""
    if test.get("status") == "skipped" or not test.get("results"):
        return (TestAttempt(SKIPPED),)
    attempts = []
    for result in _only_mappings(test.get("results")):
        status = _WORDS.get(str(result.get("status")), FAILED)
        # `expectedStatus` is `failed` for tests marked with test.fail().
        meant = result.get("status") == test.get("expectedStatus", "passed")
        status = PASSED if meant and status != SKIPPED else FAILED if status == PASSED else status
        messages = [str(e.get("message")) for e in _only_mappings(result.get("errors"))]
        message = "\n".join(messages) or str((result.get("error") or {}).get("message") or "failed")
        attachments = [a for a in _only_mappings(result.get("attachments")) if isinstance(a.get("path"), str)]
        paths = tuple(str(a["path"]) for a in attachments if str(a.get("contentType")).startswith("image/"))
        traces = tuple(str(a["path"]) for a in attachments if a.get("name") == "trace")
        attempts.append(failed_attempt(status, result.get("duration"), message, paths, traces))
    return tuple(attempts)


def _cypress_cases(run: Any) -> Iterator[TestCase]:
    for test in _only_mappings(run.get("tests") if isinstance(run, Mapping) else None):
        title = test.get("title")
        name = " › ".join(map(str, title)) if isinstance(title, list) else str(title)
        test_error = test.get("displayError")
        tries = _only_mappings(test.get("attempts")) or [test]
        attempts = [
            failed_attempt(
                _WORDS.get(str(t.get("state")), FAILED), _cypress_ms(t, test), _cypress_error(t) or test_error
            )
            for t in tries
        ]
        spec = run.get("spec")
        yield TestCase(name, str(spec.get("relative", "")) if isinstance(spec, Mapping) else "", tuple(attempts))


def _cypress_error(attempt: Mapping[str, Any]) -> str:
    """Before Cypress 13 each attempt has an error of its own, an object."""
    error = attempt.get("error")
    if not isinstance(error, Mapping):
        return str(error or "")
    return ": ".join(str(error[name]) for name in ("name", "message") if error.get(name))


def _cypress_ms(attempt: Mapping[str, Any], test: Mapping[str, Any]) -> Any:
    return attempt.get("wallClockDuration") or attempt.get("duration") or test.get("duration") or 0


def _mocha_cases(suite: Mapping[str, Any], file: str) -> Iterator[TestCase]:
    for test in _only_mappings(suite.get("tests")):
        status = _WORDS.get(str(test.get("state") or ("pending" if test.get("pending") else "failed")), FAILED)
        err = test.get("err") if isinstance(test.get("err"), Mapping) else {}
        attempt = failed_attempt(status, test.get("duration"), (err or {}).get("message"))
        yield TestCase(str(test.get("fullTitle") or test.get("title")), file, (attempt,))
    for inner in _only_mappings(suite.get("suites")):
        yield from _mocha_cases(inner, file)


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


_PLAYWRIGHT_PROPERTIES = ("playwright_screenshot", "playwright_trace")
"""Where pytest-playwright says which files it left."""


def _junit_case(case: Xml.Element) -> TestCase:
    title = " › ".join(filter(None, (case.get("classname"), case.get("name"))))
    earlier = [e for tag in ("flakyFailure", "flakyError", "rerunFailure", "rerunError") for e in case.findall(tag)]
    attempts = [failed_attempt(FAILED, 0, _failure_message(element)) for element in earlier]
    bad = next((e for tag in ("failure", "error") if (e := case.find(tag)) is not None), None)
    status = FAILED if bad is not None else SKIPPED if case.find("skipped") is not None else PASSED
    # A thousands separator or a unit would not be part of a number.
    seconds = re.sub(r"[^0-9.]", "", case.get("time") or "") or "0"
    properties = {one.get("name"): str(one.get("value")) for one in case.iter("property") if one.get("value")}
    files = [
        tuple(properties[name] for name in (property_name,) if name in properties)
        for property_name in _PLAYWRIGHT_PROPERTIES
    ]
    last = failed_attempt(status, float(seconds) * 1000, _failure_message(bad) if bad is not None else "", *files)
    rerun = bool(case.findall("rerunFailure") or case.findall("rerunError"))
    # Surefire's rerunFailure tells of later attempts of a failed test,
    # flakyFailure of earlier ones of a passed test.
    order = [last, *attempts] if rerun and status == FAILED else [*attempts, last]
    return TestCase(title, case.get("file") or case.get("classname") or "", tuple(order))


def _failure_message(element: Xml.Element) -> str:
    return f"{element.get('message') or ''}\n{element.text or ''}"
