"""The verdict on one check: by its exit status where that shows, by its own summary where it can be trusted."""

import msgspec

from holdfast.analysis.shell.analysis import Ran
from holdfast.analysis.shell.flow import FAILED
from holdfast.core.checks import Check, CheckKind, Verdict
from holdfast.features.checks.runners.attribution import Candidate
from holdfast.features.checks.runners.entries import Entry
from holdfast.features.checks.runners.spec import Report, Runner, first_reason

# 124 comes from `timeout`; the others are 128 and the number of the signal that ended the program.
_KILLED = frozenset((124, 130, 134, 137, 139, 141, 143))
# The shell's own: the file cannot be executed, or the command was not found.
_NOT_STARTED = frozenset((126, 127))
# `_build_check` recognises by this beginning that a program could not be started.
_EXIT = "exit status "


Outcome = tuple[Verdict, str]
"""A verdict and why."""


def judge_runner(candidate: Candidate) -> list[Check]:
    match = candidate.match
    assert match is not None
    runner = match.runner
    # A loop: each summary that shows belongs to a run of its own.
    if len(candidate.reports) > 1 and candidate.trusted and candidate.command.invocation.repeated:
        why = "the summary of each run is shown"
        named = (candidate, runner.kind, runner.name)
        return [_build_check(*named, (one.verdict, why), one) for one in candidate.reports]
    outcome = _runner_verdict(candidate, runner)
    report = candidate.report
    if outcome[0] is Verdict.FAILED and report is None and candidate.signs:
        report = candidate.signs[0]
    return [_build_check(candidate, runner.kind, runner.name, outcome, report)]


def _build_check(
    candidate: Candidate, kind: CheckKind, runner: str, outcome: Outcome, report: Report | None = None
) -> Check:
    verdict, why = outcome
    check = Check(
        kind=kind,
        runner=runner,
        dir=".",
        selection=candidate.selection,
        verdict=verdict,
        why=why,
        operands=candidate.operands,
        could_not_start=verdict is Verdict.DID_NOT_RUN and (why.startswith(_EXIT) or bool(report and report.broken)),
        presumed=report is None and candidate.by_name_only,
    )
    ended = kind is CheckKind.TEST and verdict in (Verdict.PASSED, Verdict.FAILED)
    if report and not report.partial and ended:
        return msgspec.structs.replace(check, passed=report.passed, failed=report.failed, skipped=report.skipped)
    return check


def _runner_verdict(candidate: Candidate, runner: Runner) -> Outcome:
    command, match = candidate.command, candidate.match
    assert match is not None
    # What rules a verdict out comes first; a summary is read only where nothing does.
    if ruled_out := _ruled_out(candidate, match.foreign, match.nothing):
        return ruled_out
    # The exit status of the line is not that of a program in the background.
    if command.pending:
        return _pending_verdict(candidate)
    if command.exit_code is not None and command.ran is Ran.YES:
        return _by_exit(candidate, runner, command.exit_code)
    return _by_output(candidate, runner)


def _ruled_out(candidate: Candidate, foreign: str, nothing: str) -> Outcome | None:
    command = candidate.command
    if command.ran is Ran.NO:
        return Verdict.DID_NOT_RUN, "it was not reached"
    if command.invocation.shadowed:
        return Verdict.DID_NOT_RUN, "a function or alias of that name was run instead"
    # An entry point that runs nothing runs nothing, whatever else was changed about it.
    if candidate.entry and nothing:
        return Verdict.DID_NOT_RUN, nothing
    if why := command.invocation.tampered or foreign:
        return Verdict.UNKNOWN, why
    return (Verdict.DID_NOT_RUN, nothing) if nothing else None


def _pending_verdict(candidate: Candidate) -> Outcome:
    why = "it was started in the background and the command did not wait for it"
    if candidate.trusted:
        return candidate.reports[0].verdict, "the summary is shown"
    return Verdict.UNKNOWN, why


# ── the exit status shows ────────────────────────────────────────────────────────────────────────────────────────────


def _by_exit(candidate: Candidate, runner: Runner, code: int) -> Outcome:
    if code == 0:
        return _success_verdict(candidate, runner)
    if code in _NOT_STARTED:
        return Verdict.DID_NOT_RUN, f"exit status {code}: the program could not be started"
    report = candidate.report
    if code in _KILLED:
        return _killed_verdict(candidate, code)
    # Without trust only a failure counts: a false pass is worse than a false failure.
    if report is not None and (candidate.trusted or report.failed):
        return _failure_with_report(report, code, runner)
    if candidate.signs:
        return Verdict.FAILED, "failures are shown"
    return _failure_without_report(candidate, runner, code)


def _killed_verdict(candidate: Candidate, code: int) -> Outcome:
    """Failures that were counted before the end are real; tests that passed so far prove nothing."""
    if candidate.report is not None and candidate.report.failed and candidate.trusted:
        return Verdict.FAILED, "the summary shows failures"
    return Verdict.UNKNOWN, f"exit status {code}: it was ended before it was done"


def _success_verdict(candidate: Candidate, runner: Runner) -> Outcome:
    report, match = candidate.report, candidate.match
    assert match is not None
    if runner.kind is not CheckKind.TEST:
        return _other_success(report, match.lenient)
    # The summary may come from another program that prints.
    if report is not None and (candidate.trusted or not candidate.crowded):
        return _success_with_report(report)
    doubt = first_reason(
        (candidate.trusted and any(s.partial for s in candidate.signs), "exit status 0, but failures are shown"),
        (match.lenient, f"exit status 0 proves nothing here ({match.lenient}), and no summary is shown"),
        (
            runner.empty_succeeds,
            f"exit status 0, but {runner.name} ends so without any test too, and no count is shown",
        ),
        # All of the output shows, and a runner that ran tests would have printed its summary.
        (candidate.shows_all and not match.quiet, "exit status 0, but its output shows no summary"),
    )
    return (Verdict.UNKNOWN, doubt) if doubt else (Verdict.PASSED, "exit status 0")


def _other_success(report: Report | None, lenient: str) -> Outcome:
    if not lenient:
        return Verdict.PASSED, "exit status 0"
    return (report.verdict if report else Verdict.UNKNOWN), f"exit status 0 proves nothing with {lenient}"


def _success_with_report(report: Report) -> Outcome:
    if report.failed:
        return Verdict.FAILED, "exit status 0, but the summary shows failures"
    if report.verdict is Verdict.DID_NOT_RUN:
        return Verdict.DID_NOT_RUN, report.nothing or "no test passed"
    return Verdict.PASSED, "exit status 0 and the summary"


def _failure_with_report(report: Report, code: int, runner: Runner) -> Outcome:
    if report.failed:
        return Verdict.FAILED, f"exit status {_exit_code_text(code)} and failures in the summary"
    if report.verdict is Verdict.DID_NOT_RUN:
        return Verdict.DID_NOT_RUN, report.nothing or "no test passed"
    if runner.kind is not CheckKind.TEST:
        return Verdict.FAILED, f"exit status {_exit_code_text(code)}"
    return Verdict.UNKNOWN, f"exit status {_exit_code_text(code)}, but the summary shows no failure"


def _exit_code_text(code: int) -> str:
    return "not 0" if code == FAILED else str(code)


def _failure_without_report(candidate: Candidate, runner: Runner, code: int) -> Outcome:
    # A run that failed a test prints a summary; with all output shown and none in it, nothing ran.
    if runner.kind is CheckKind.TEST and candidate.shows_all:
        verdict, why = runner.codes.get(code, Verdict.DID_NOT_RUN), f"exit status {_exit_code_text(code)}"
        if verdict is Verdict.FAILED:
            return Verdict.DID_NOT_RUN, f"{why} without a summary: the tests could not be started"
        return verdict, why
    # FAILED is an exit status that is only known not to be 0.
    if code == FAILED:
        return Verdict.FAILED, "the exit status was not 0"
    verdict = runner.codes.get(code, Verdict.UNKNOWN)
    return verdict, f"exit status {code}"


# ── only the output shows ────────────────────────────────────────────────────────────────────────────────────────────


def _by_output(candidate: Candidate, runner: Runner) -> Outcome:
    report = candidate.report
    if report is not None and candidate.trusted:
        counts = f"{report.passed} passed, {report.failed} failed"
        return report.verdict, report.nothing or f"the exit status does not show, the summary does: {counts}"
    if candidate.signs:
        return Verdict.FAILED, "the exit status does not show, but failures do"
    if candidate.command.interrupted:
        return Verdict.UNKNOWN, "the command was ended before it was done"
    # Nothing hides the output, so a runner that may or may not have been reached was not.
    in_sight = candidate.shown == "whole" and not candidate.distrust and runner.kind is CheckKind.TEST
    if candidate.command.ran is Ran.MAYBE and in_sight:
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
        return f"the agent did not report its exit status, and {candidate.distrust or hidden}"
    return f"the exit status is not that of the run, and {candidate.distrust or hidden}; run it without the pipe, or with `set -o pipefail`"


# ── entry points ─────────────────────────────────────────────────────────────────────────────────────────────────────


def judge_entry(candidate: Candidate) -> list[Check]:
    """One check for each summary that is shown; without one, what the name says and no verdict."""
    entry = candidate.entry
    assert entry is not None
    outcome = _ruled_out(candidate, "", entry.nothing)
    if outcome is None and candidate.reports and entry.kind in (CheckKind.TEST, None):
        return [_entry_check(candidate, report) for report in candidate.reports]
    if entry.kind is None:
        return []
    if outcome is None:
        unseen = entry.kind is CheckKind.TEST
        outcome = _unseen_tests(candidate, entry) if unseen else _plain_verdict(candidate.command.exit_code)
    return [_build_check(candidate, entry.kind, entry.runner or entry.name, outcome)]


def _unseen_tests(candidate: Candidate, entry: Entry) -> Outcome:
    code = candidate.command.exit_code or 0
    # A silent entry point (`make -s test > log`) may well have run its tests.
    silent = candidate.shown == "hidden" or candidate.silent
    if code in _NOT_STARTED or (code and candidate.command.ran is Ran.YES and not silent):
        return Verdict.DID_NOT_RUN, f"exit status {_exit_code_text(code)} and no summary of a run"
    return Verdict.UNKNOWN, f"{entry.name} {entry.target}".strip() + " shows no summary of a test run"


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
    # One of several packages failed without a summary of its own.
    elif verdict is Verdict.PASSED and _is_unexplained(candidate):
        verdict, why = Verdict.UNKNOWN, f"exit status {candidate.command.exit_code}, and no summary shows what failed"
    return _build_check(candidate, CheckKind.TEST, report.runner, (verdict, why), report)


def _is_unexplained(candidate: Candidate) -> bool:
    several = candidate.entry is not None and candidate.entry.several
    return several and bool(candidate.command.exit_code) and not any(report.failed for report in candidate.reports)


def _plain_verdict(code: int | None) -> Outcome:
    if code is None:
        return Verdict.UNKNOWN, "the exit status does not show"
    if code in _NOT_STARTED:
        return Verdict.DID_NOT_RUN, f"exit status {code}"
    return (Verdict.PASSED, "exit status 0") if code == 0 else (Verdict.FAILED, f"exit status {_exit_code_text(code)}")
