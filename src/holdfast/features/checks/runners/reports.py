"""Reports that a test run wrote because its command asked for one: JUnit XML, and the JSON of pytest and jest."""

import os
from collections.abc import Iterator
from xml.etree import ElementTree

import msgspec

from holdfast.analysis.shell.analysis import Ran, ShellCommand, analyse_command
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.checks import Check, CheckKind, CommandJudgement, Verdict
from holdfast.paths import open_regular

# In bytes.
MAX_BYTES = 1 << 20
REPORT_FLAGS = (
    "--junitxml", "--junit-xml", "--junitfile", "--log-junit", "--output-junit", "--json-report-file", "--outputFile",
)  # fmt: skip


class ReportCounts(msgspec.Struct, frozen=True):
    path: str
    passed: int
    failed: int
    skipped: int


class _JestReport(msgspec.Struct):
    passed: int = msgspec.field(name="numPassedTests")
    failed: int = msgspec.field(name="numFailedTests")
    skipped: int = msgspec.field(default=0, name="numPendingTests")
    broken: int = msgspec.field(default=0, name="numRuntimeErrorTestSuites")
    interrupted: bool = msgspec.field(default=False, name="wasInterrupted")


class _PytestSummary(msgspec.Struct):
    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    total: int = 0


class _PytestReport(msgspec.Struct):
    summary: _PytestSummary
    exitcode: int


def add_report(judgement: CommandJudgement, command: str, cwd: str, started_ms: int) -> CommandJudgement:
    """The judgement with what the report says. Only where one test run and one report of it are beyond doubt."""
    tests = [check for check in judgement.checks if check.kind is CheckKind.TEST]
    if len(tests) != 1 or not any(flag in command for flag in REPORT_FLAGS):
        return judgement
    named = list(_named_reports(command, cwd))
    # A report that the command itself writes or copies is no proof.
    if len(named) != 1 or _is_written_otherwise(named[0][1], judgement, cwd):
        return judgement
    ran, path = named[0]
    counts = read_report(path, started_ms)
    if counts is None:
        return judgement
    # Any other write of the command may have changed the report.
    test = _with_counts(tests[0], counts, trusted=_is_plain(ran) and not judgement.writes)
    return msgspec.structs.replace(
        judgement,
        checks=[test if check is tests[0] else check for check in judgement.checks],
        proves_tests_pass=test.verdict is Verdict.PASSED,
        why=f"{test.runner}: {test.why}",
    )


def _with_counts(check: Check, counts: ReportCounts, *, trusted: bool) -> Check:
    numbers = {"passed": counts.passed, "failed": counts.failed, "skipped": counts.skipped}
    told = f"{os.path.basename(counts.path)} shows {counts.passed} passed, {counts.failed} failed"
    verdict = Verdict.FAILED if counts.failed else Verdict.PASSED
    # Exit status and report contradict each other, and neither is known to be right.
    if check.verdict is Verdict.PASSED and counts.failed:
        why = f"the exit status says passed, but {told}"
        return msgspec.structs.replace(check, verdict=Verdict.UNKNOWN, why=why)
    # The report decides only what the output left open.
    if check.verdict is Verdict.UNKNOWN and trusted and (counts.failed or counts.passed):
        return msgspec.structs.replace(check, verdict=verdict, why=f"the report {told}", **numbers)
    uncounted = check.passed is None and check.failed is None
    ended = check.verdict in (Verdict.PASSED, Verdict.FAILED)
    return msgspec.structs.replace(check, **numbers) if ended and uncounted else check


def _named_reports(command: str, cwd: str) -> Iterator[tuple[ShellCommand, str]]:
    for ran in analyse_command(command, cwd=cwd).commands:
        words = ran.words
        for at, word in enumerate(words):
            flag, _, value = word.partition("=")
            # `--flag=value` or `--flag value`.
            value = value or (words[at + 1] if flag == word and at + 1 < len(words) else "")
            if flag in REPORT_FLAGS and value and UNKNOWN not in value + ran.invocation.cwd:
                yield ran, os.path.normpath(os.path.join(cwd, ran.invocation.cwd, value))


def _is_written_otherwise(path: str, judgement: CommandJudgement, cwd: str) -> bool:
    return any(os.path.normpath(os.path.join(cwd, written)) == path for written in judgement.writes)


def _is_plain(ran: ShellCommand) -> bool:
    """Nothing about the call makes it doubtful that the well-known program wrote the report, and to its end."""
    called = ran.invocation
    doubtful = called.tampered or called.shadowed or called.background or called.repeated or ran.pending
    return not doubtful and ran.ran is not Ran.NO and "timeout" not in " ".join(called.wrappers)


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_report(path: str, started_ms: int) -> ReportCounts | None:
    """None where there is no such file, it is older than the run, too large, or no report."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            # Of the open file, so that it cannot be exchanged between the look and the reading.
            file_stat = os.fstat(file.fileno())
            if file_stat.st_size > MAX_BYTES:
                return None
            # Left over from an earlier run.
            if file_stat.st_mtime_ns // 1_000_000 < started_ms:
                return None
            text = file.read(MAX_BYTES)
    except (OSError, ValueError):
        return None
    return _read_json(path, text) if text.lstrip()[:1] == b"{" else _read_junit(path, text)


def _read_junit(path: str, text: bytes) -> ReportCounts | None:
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:  # No test runner writes one, and entities can grow without end.
        return None
    try:
        root = ElementTree.fromstring(text)  # noqa: S314
    except (ElementTree.ParseError, ValueError):
        return None
    if root.tag not in ("testsuites", "testsuite"):
        return None
    cases = list(root.iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return ReportCounts(path, len(cases) - failed - skipped, failed, skipped)


def _read_json(path: str, text: bytes) -> ReportCounts | None:
    try:
        jest = msgspec.json.decode(text, type=_JestReport)
        broken = jest.failed or jest.broken
        return None if jest.interrupted else ReportCounts(path, jest.passed, broken, jest.skipped)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        report = msgspec.json.decode(text, type=_PytestReport)
    except (msgspec.DecodeError, RecursionError):
        return None
    summary = report.summary
    # Other codes of pytest mean that it was interrupted or did not start.
    if report.exitcode not in (0, 1):
        return None
    return ReportCounts(path, summary.passed, summary.failed + summary.error, summary.skipped)
