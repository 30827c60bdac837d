"""The verdict on one check: by its exit status where that shows, by its own summary where it can be trusted."""

from holdfast.analysis.shell.analysis import Ran
from holdfast.analysis.shell.flow import FAILED
from holdfast.core.checks import Check, CheckKind, Selection, Verdict
from holdfast.features.checks.runners.attribution import Candidate
from holdfast.features.checks.runners.spec import Report, Runner

# 124 comes from `timeout`; the others are 128 and the number of the signal that ended the program.
_KILLED = frozenset((124, 130, 134, 137, 139, 141, 143))
# The shell's own: the file cannot be executed, or the command was not found.
_NOT_STARTED = frozenset((126, 127))
# `_build_check` recognises by this beginning that a program could not be started.
_EXIT = "exit status "


def judge_runner(candidate: Candidate) -> list[Check]:
    match = candidate.match
    assert match is not None
    # A loop: each summary that shows belongs to a run of its own.
    if len(candidate.reports) > 1 and candidate.trusted and candidate.command.invocation.repeated:
        return [
            _build_check(
                candidate,
                match.runner.kind,
                match.runner.name,
                report.verdict,
                "the summary of each run is shown",
                report,
            )
            for report in candidate.reports
        ]
    verdict, why = _runner_verdict(candidate, match.runner)
    report = candidate.reports[0] if candidate.reports else None
    if verdict is Verdict.FAILED and report is None and candidate.signs:
        report = candidate.signs[0]
    return [_build_check(candidate, match.runner.kind, match.runner.name, verdict, why, report)]


def _build_check(
    candidate: Candidate, kind: CheckKind, runner: str, verdict: Verdict, why: str, report: Report | None
) -> Check:
    counted = (
        report is not None
        and not report.partial
        and kind is CheckKind.TEST
        and verdict in (Verdict.PASSED, Verdict.FAILED)
    )
    match = candidate.match
    return Check(
        kind=kind,
        runner=runner,
        dir=".",
        selection=match.selection if match else Selection.ALL,
        verdict=verdict,
        passed=report.passed if counted and report else None,
        failed=report.failed if counted and report else None,
        skipped=report.skipped if counted and report else None,
        why=why,
        operands=match.operands if match else candidate.entry.operands if candidate.entry else [],
        could_not_start=verdict is Verdict.DID_NOT_RUN and (why.startswith(_EXIT) or bool(report and report.broken)),
        presumed=bool(candidate.entry and candidate.entry.script and not candidate.entry.runner and report is None),
    )


def _runner_verdict(candidate: Candidate, runner: Runner) -> tuple[Verdict, str]:
    command, match = candidate.command, candidate.match
    assert match is not None
    # What rules a verdict out comes first; a summary is read only where nothing does.
    if command.ran is Ran.NO:
        return Verdict.DID_NOT_RUN, "it was not reached"
    if command.invocation.shadowed:
        return Verdict.DID_NOT_RUN, "a function or alias of that name was run instead"
    if command.invocation.tampered:
        return Verdict.UNKNOWN, command.invocation.tampered
    if match.foreign:
        return Verdict.UNKNOWN, match.foreign
    if match.nothing:
        return Verdict.DID_NOT_RUN, match.nothing
    # The exit status of the line is not that of a program in the background.
    if command.pending:
        return _pending_verdict(candidate)
    if command.exit_code is not None and command.ran is Ran.YES:
        return _by_exit(candidate, runner, command.exit_code)
    return _by_output(candidate, runner)


def _pending_verdict(candidate: Candidate) -> tuple[Verdict, str]:
    why = "it was started in the background and the command did not wait for it"
    if candidate.trusted:
        return candidate.reports[0].verdict, "the summary is shown"
    return Verdict.UNKNOWN, why


# ── the exit status shows ────────────────────────────────────────────────────────────────────────────────────────────


def _by_exit(candidate: Candidate, runner: Runner, code: int) -> tuple[Verdict, str]:
    if code == 0:
        return _success_verdict(candidate, runner)
    if code in _NOT_STARTED:
        return Verdict.DID_NOT_RUN, f"exit status {code}: the program could not be started"
    report = candidate.reports[0] if candidate.reports else None
    # Failures that were counted before the end are real; tests that passed so far prove nothing.
    if code in _KILLED:
        if report is not None and report.failed and candidate.trusted:
            return Verdict.FAILED, "the summary shows failures"
        return Verdict.UNKNOWN, f"exit status {code}: it was ended before it was done"
    # Without trust only a failure counts: a false pass is worse than a false failure.
    if report is not None and (candidate.trusted or report.failed):
        return _failure_with_report(report, code, runner)
    if candidate.signs:
        return Verdict.FAILED, "failures are shown"
    return _failure_without_report(candidate, runner, code)


def _success_verdict(candidate: Candidate, runner: Runner) -> tuple[Verdict, str]:
    report = candidate.reports[0] if candidate.reports else None
    lenient = candidate.match.lenient if candidate.match else ""
    if runner.kind is not CheckKind.TEST:
        if lenient:
            return (report.verdict if report else Verdict.UNKNOWN), f"exit status 0 tells nothing with {lenient}"
        return Verdict.PASSED, "exit status 0"
    # Where other programs print as well, the summary may be theirs.
    if report is not None and (candidate.trusted or not _is_crowded(candidate)):
        if report.failed:
            return Verdict.FAILED, "exit status 0, but the summary shows failures"
        if report.verdict is Verdict.DID_NOT_RUN:
            return Verdict.DID_NOT_RUN, report.nothing or "no test passed"
        return Verdict.PASSED, "exit status 0 and the summary"
    if candidate.signs and candidate.signs[0].partial and candidate.trusted:
        return Verdict.UNKNOWN, "exit status 0, but failures are shown"
    if lenient:
        return Verdict.UNKNOWN, f"exit status 0 tells nothing by itself here ({lenient}), and no summary is shown"
    if runner.empty_succeeds:
        return Verdict.UNKNOWN, f"exit status 0, but {runner.name} ends so without any test too, and no count is shown"
    # All of the output shows, and a runner that ran tests would have printed its summary.
    if candidate.shown == "whole" and not (candidate.match and candidate.match.quiet) and not _is_crowded(candidate):
        return Verdict.UNKNOWN, "exit status 0, but its output shows no summary"
    return Verdict.PASSED, "exit status 0"


def _is_crowded(candidate: Candidate) -> bool:
    return candidate.crowded


def _failure_with_report(report: Report, code: int, runner: Runner) -> tuple[Verdict, str]:
    if report.failed:
        return Verdict.FAILED, f"exit status {_exit_code_text(code)} and failures in the summary"
    if report.verdict is Verdict.DID_NOT_RUN:
        return Verdict.DID_NOT_RUN, report.nothing or "no test passed"
    if runner.kind is not CheckKind.TEST:
        return Verdict.FAILED, f"exit status {_exit_code_text(code)}"
    return Verdict.UNKNOWN, f"exit status {_exit_code_text(code)}, but the summary shows no failure"


def _exit_code_text(code: int) -> str:
    return "not 0" if code == FAILED else str(code)


def _failure_without_report(candidate: Candidate, runner: Runner, code: int) -> tuple[Verdict, str]:
    # A run that failed a test prints a summary; with all output shown and none in it, nothing ran.
    if runner.kind is CheckKind.TEST and candidate.shown == "whole" and not _is_crowded(candidate):
        verdict = runner.codes.get(code, Verdict.DID_NOT_RUN)
        if verdict is Verdict.FAILED:
            return (
                Verdict.DID_NOT_RUN,
                f"exit status {_exit_code_text(code)} without a summary: the tests could not be started",
            )
        return verdict, f"exit status {_exit_code_text(code)}"
    # FAILED stands for an exit status that is only known not to be 0.
    if code == FAILED:
        return Verdict.FAILED, "the exit status was not 0"
    verdict = runner.codes.get(code, Verdict.UNKNOWN)
    return verdict, f"exit status {code}"


# ── only the output shows ────────────────────────────────────────────────────────────────────────────────────────────


def _by_output(candidate: Candidate, runner: Runner) -> tuple[Verdict, str]:
    report = candidate.reports[0] if candidate.reports else None
    if report is not None and candidate.trusted:
        why = (
            report.nothing
            or f"the exit status does not show, the summary does: {report.passed} passed, {report.failed} failed"
        )
        return report.verdict, why
    if candidate.signs:
        return Verdict.FAILED, "the exit status does not show, but failures do"
    if candidate.command.interrupted:
        return Verdict.UNKNOWN, "the command was ended before it was done"
    if (
        # Nothing hides the output, so a runner that may or may not have been reached was not.
        candidate.command.ran is Ran.MAYBE
        and candidate.shown == "whole"
        and not candidate.distrust
        and runner.kind is CheckKind.TEST
    ):
        return Verdict.DID_NOT_RUN, "nothing in the output comes from it"
    return Verdict.UNKNOWN, _why_unknown(candidate)


def _why_unknown(candidate: Candidate) -> str:
    hidden = {
        "hidden": "its output is not shown",
        "rewritten": "the output was rewritten before it was shown",
        "tail": "the summary was cut off",
        "lines": "the summary was filtered out",
        "whole": "no summary is shown",
    }[candidate.shown]
    if not candidate.status_told:
        return f"its exit status was not told, and {candidate.distrust or hidden}"
    return f"the exit status is not that of the run, and {candidate.distrust or hidden}; run it without the pipe, or with `set -o pipefail`"


# ── entry points ─────────────────────────────────────────────────────────────────────────────────────────────────────


def judge_entry(candidate: Candidate) -> list[Check]:
    """One check for each summary that is shown; without one, what the name says and no verdict."""
    entry, command = candidate.entry, candidate.command
    assert entry is not None
    blocked = _entry_blocked(candidate)
    if blocked is not None:
        kind = entry.kind
        return [_build_check(candidate, kind, entry.runner or entry.name, *blocked, None)] if kind else []
    if candidate.reports and entry.kind in (CheckKind.TEST, None):
        return [_entry_check(candidate, report) for report in candidate.reports]
    if entry.kind is None:
        return []
    code = command.exit_code
    if entry.kind is not CheckKind.TEST:
        return [_build_check(candidate, entry.kind, entry.runner or entry.name, *_plain_verdict(code), None)]
    # A silent entry point (`make -s test > log`) may well have run its tests.
    said_nothing = candidate.shown == "hidden" or candidate.silent
    if code in _NOT_STARTED or (code not in (None, 0) and command.ran is Ran.YES and not said_nothing):
        return [
            _build_check(
                candidate,
                entry.kind,
                entry.runner or entry.name,
                Verdict.DID_NOT_RUN,
                f"exit status {_exit_code_text(code or 0)} and no summary of a run",
                None,
            )
        ]
    why = f"{entry.name} {entry.target}".strip() + " shows no summary of a test run"
    return [_build_check(candidate, entry.kind, entry.runner or entry.name, Verdict.UNKNOWN, why, None)]


def _entry_blocked(candidate: Candidate) -> tuple[Verdict, str] | None:
    entry, command = candidate.entry, candidate.command
    assert entry is not None
    if command.ran is Ran.NO:
        return Verdict.DID_NOT_RUN, "it was not reached"
    if command.invocation.shadowed:
        return Verdict.DID_NOT_RUN, "a function or alias of that name was run instead"
    if entry.nothing:
        return Verdict.DID_NOT_RUN, entry.nothing
    if command.invocation.tampered:
        return Verdict.UNKNOWN, command.invocation.tampered
    return None


def _entry_check(candidate: Candidate, report: Report) -> Check:
    verdict, why = report.verdict, report.nothing or "the summary of the run is shown"
    if not candidate.trusted:
        failed = report.failed and candidate.signs
        verdict, why = (Verdict.FAILED, "failures are shown") if failed else (Verdict.UNKNOWN, candidate.distrust)
    elif report.partial:
        why = "failures are shown"
    # The summaries so far passed, but the run was cut short.
    elif verdict is Verdict.PASSED and candidate.command.exit_code in _KILLED:
        verdict, why = Verdict.UNKNOWN, "it was ended before it was done"
    return _build_check(candidate, CheckKind.TEST, report.runner, verdict, why, report)


def _plain_verdict(code: int | None) -> tuple[Verdict, str]:
    if code is None:
        return Verdict.UNKNOWN, "the exit status does not show"
    if code in _NOT_STARTED:
        return Verdict.DID_NOT_RUN, f"exit status {code}"
    return (Verdict.PASSED, "exit status 0") if code == 0 else (Verdict.FAILED, f"exit status {_exit_code_text(code)}")
