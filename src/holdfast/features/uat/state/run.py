"""How events change the document of a run."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import (
    AssertionTold,
    CallEnded,
    CallStarted,
    FirstCall,
    HealthChecked,
    JudgedAssertion,
    JudgedCheck,
    ProblemNoted,
    RunStarted,
    ScreenshotKept,
    SignalLeft,
    StepSet,
)
from holdfast.features.uat.drivers.assertions import expected_conditions
from holdfast.features.uat.settings import (
    ACTIVE,
    COMPLETED,
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    LARGEST_OVERLAY,
    MOST_CHECKS,
    MOST_OPEN,
    MOST_PROBLEMS,
    MOST_RECENT,
    MOST_SIGNALS,
    PASSED,
    SKIPPED,
    UNKNOWN,
    clean_line,
)
from holdfast.features.uat.state import (
    Assertion,
    JsonObject,
    Note,
    OpenCall,
    RecentCall,
    RecentCheck,
    RecentShot,
    Run,
    Signal,
    Step,
    steps,
)
from holdfast.features.uat.state.merge import encoded_size, merge_objects

PAPERWORK = ("uat.reported", "uat.restored", "uat.archived")
"""Nothing happened in the run itself."""


_SAME_NAME = ("of", "mode", "root", "confidence", "auto", "source", "digest", "environment")


def new_run(event: Event) -> Run:
    data: RunStarted = event.data
    plan = data.plan
    return Run(
        id=data.uat,
        session=event.session,
        project=event.project,
        scenario=plan.name,
        start=event.at,
        at=event.at,
        touched=event.at,
        first_seq=event.seq,
        last_seq=event.seq,
        base_url=plan.base_url,
        message=clean_line(data.message, 1000),
        reasons=data.reasons[:MOST_RECENT],
        steps=[Step(wanted=planned.calls, budget_ms=planned.budget_ms or 0) for planned in plan.steps],
        assertions=[
            Assertion(step=planned.step or 0, expected=expected_conditions(planned), budget_ms=planned.budget_ms or 0)
            for planned in plan.assertions
        ],
        **{name: getattr(data, name) for name in _SAME_NAME},
    )


def reduce_run(run: Run | None, event: Event) -> Run | None:
    if event.kind == "uat.started":
        # A second start under the same id changes nothing.
        return run or _first_call(new_run(event), event)
    change = CHANGES.get(event.kind)
    if run is None or change is None:
        return run
    # A shallow copy: each change below replaces a list instead of adding to it.
    after = copy.copy(run)
    # A report or an archive does not make the run younger: its age decides when it expires.
    after.at = run.at if event.kind in PAPERWORK else max(run.at, event.at)
    after.last_seq = event.seq or run.last_seq
    change(after, event)
    return after


def reduce_events(run: Run, events: Iterable[Event]) -> Run:
    for event in events:
        run = reduce_run(run, event) or run
    return run


def _first_call(run: Run, event: Event) -> Run:
    """The call by which a run was noticed is its first one."""
    if event.data.first is not None:
        _call_started(run, event, event.data.first)
    return run


def _call_started(run: Run, event: Event, call: FirstCall | CallStarted) -> None:
    if len(run.open) >= MOST_OPEN:
        # Calls whose end never came would pile up: the oldest go.
        run.open = dict(list(run.open.items())[1 - MOST_OPEN :])
    entry = OpenCall(n=call.n, tool=call.tool, step=call.step, at=event.at, call=call.call, matched=call.matched)
    run.open = {**run.open, str(call.n): entry}
    run.n, run.touched = max(run.n, call.n), max(run.touched, event.at)
    if call.matched and run.status == ACTIVE:
        steps.begin_call(run, call.step, event.at, call.address)


def _call_ended(run: Run, event: Event) -> None:
    call: CallEnded = event.data
    seen = run.open.get(str(call.n))
    run.open = {key: entry for key, entry in run.open.items() if key != str(call.n)}
    run.n, run.touched = max(run.n, call.n), max(run.touched, event.at)
    _count_call(run, event, call)
    is_active = run.status == ACTIVE
    # The start of this call was not seen: its step begins with its end.
    if is_active and call.matched and seen is None:
        steps.begin_call(run, call.step, call.began or event.at, call.address)
    _judge_assertions(run, event, call.assertions)
    if is_active:
        _end_step_call(run, event, call)
    _note_findings(run, event, call)


def _end_step_call(run: Run, event: Event, call: CallEnded) -> None:
    if call.matched:
        steps.end_call(run, call.step, event.at, ok=call.ok, error=call.error, interrupted=call.interrupted)
        if call.expected:
            steps.set_difference(run, call.step, call.expected, call.received)
    else:
        steps.judge_step(run, call.step)
    run.returning = call.returning or run.returning


def _note_findings(run: Run, event: Event, call: CallEnded) -> None:
    if not call.ok:
        _add_note(run, event, "error", INTERRUPTED if call.interrupted else "tool", call.error or "failed", call.step)
    for page_problem in call.problems:
        _add_note(run, event, "warning", page_problem.type, page_problem.message, call.step)
    for check in call.health:
        _count_health_check(run, event, check)


def _count_call(run: Run, event: Event, call: CallEnded) -> None:
    run.calls += 1
    counter = "ok" if call.ok else "interrupted" if call.interrupted else "failed"
    setattr(run, counter, getattr(run, counter) + 1)
    error = clean_line(call.error, 200)
    recent = RecentCall(n=call.n, tool=call.tool, step=call.step, ms=call.ms, ok=call.ok, at=event.at, error=error)
    run.last = [*run.last, recent][-MOST_RECENT:]
    run.framework = run.framework or call.framework
    if call.driver and call.driver not in run.drivers:
        run.drivers = [*run.drivers, call.driver][-MOST_RECENT:]


def _judge_assertions(run: Run, event: Event, judged: Iterable[JudgedAssertion]) -> None:
    """A met assertion stays met unless it is broken; a broken one stays broken."""
    assertions = list(run.assertions)
    for one in judged:
        before = assertions[one.index].result if one.index < len(assertions) else FAILED
        # Where the driver said nothing, the earlier result stays.
        if before == FAILED or (before == PASSED and not one.broken) or (one.untold and assertions[one.index].actual):
            continue
        result = FAILED if one.broken else PASSED if one.met else UNKNOWN
        assertions[one.index] = replace(
            assertions[one.index], result=result, actual=one.actual, at=event.at, by_hand=False
        )
    run.assertions = assertions


def _apply_step_set(run: Run, event: Event) -> None:
    data: StepSet = event.data
    run.touched = max(run.touched, event.at)
    steps.set_status(run, data.step, data.status, event.at)


def _apply_assertion(run: Run, event: Event) -> None:
    """By hand: a new one, or the result of one of the scenario's."""
    data: AssertionTold = event.data
    index, number = data.index, data.step
    if index is not None and 0 <= index < len(run.assertions):
        judged = replace(run.assertions[index], result=data.result, actual=data.actual, at=event.at, by_hand=True)
        run.assertions = [*run.assertions[:index], judged, *run.assertions[index + 1 :]]
        steps.judge_step(run, judged.step)
    # By hand only to a step that was tried: another assertion counts for the run as a whole.
    elif len(run.assertions) < MOST_CHECKS and steps.is_tried(run, number):
        one = Assertion(step=number, result=data.result, at=event.at, by_hand=True, extra=True)
        one.expected, one.actual = data.expected or data.description, data.actual
        run.assertions = [*run.assertions, one]
        steps.judge_step(run, number)
    elif len(run.asserted) < MOST_CHECKS:
        run.asserted = [*run.asserted, data.result]


def _count_health_check(run: Run, event: Event, check: JudgedCheck | HealthChecked) -> None:
    run.checks += 1
    run.bad_checks += check.result != "success"
    if isinstance(check, HealthChecked) and check.precondition and check.result != "success":
        run.blocked = True
    entry = RecentCheck(at=event.at, type=clean_line(check.type, 100), result=check.result)
    run.last_checks = [*run.last_checks, entry][-MOST_RECENT:]


def _apply_screenshot(run: Run, event: Event) -> None:
    shot: ScreenshotKept = event.data
    if not shot.success:
        _add_note(run, event, "warning", "screenshot", shot.problem, shot.step)
        return
    run.shots += 1
    entry = RecentShot(at=event.at, name=shot.name, path=shot.path, size=shot.size, step=shot.step, action=shot.action)
    run.last_shots = [*run.last_shots, entry][-MOST_RECENT:]


def _apply_problem(run: Run, event: Event) -> None:
    data: ProblemNoted = event.data
    _add_note(run, event, data.level, data.type or "note", data.message, data.step)
    if data.tool and data.tool not in run.unknown_tools:
        run.unknown_tools = [*run.unknown_tools, data.tool][-MOST_RECENT:]


def _add_note(run: Run, event: Event, level: str, kind: str, message: Any, step: int) -> None:
    entry = Note(at=event.at, type=clean_line(kind, 50), message=clean_line(message, 300), step=step or 0)
    if level == "error":
        run.errors += 1
        run.last_errors = [*run.last_errors, entry][-MOST_PROBLEMS:]
    else:
        run.warnings += 1
        run.last_warnings = [*run.last_warnings, entry][-MOST_PROBLEMS:]


def _apply_signal(run: Run, event: Event) -> None:
    data: SignalLeft = event.data
    others = [(name, one) for name, one in run.hooks.items() if name != data.name]
    run.hooks = {**dict(others[1 - MOST_SIGNALS :]), data.name: Signal(data=data.data, at=event.at)}


def _apply_patch(run: Run, event: Event) -> None:
    after = merge_objects(run.overlay, event.data.patch)
    if encoded_size(after) <= LARGEST_OVERLAY:
        run.overlay = after
    else:
        _add_note(run, event, "warning", "update", "an update was left out: the document would become too large", 0)


def _apply_reports(run: Run, event: Event) -> None:
    made = [report for report in event.data.reports if report not in run.reports]
    run.reports = [*run.reports, *made][-MOST_RECENT:]


def _apply_run_ended(run: Run, event: Event) -> None:
    if run.status != ACTIVE:
        return
    run.status, run.end, run.reason = COMPLETED, event.at, event.data.reason
    steps.close_steps(run)
    run.assertions = [_final_assertion(run, one) for one in run.assertions]
    run.outcome = outcome_of_run(run)
    run.flaky = any(steps.is_flaky(step) for step in run.steps)


def _final_assertion(run: Run, assertion: Assertion) -> Assertion:
    """Of the whole run: an open assertion has failed, unless a part of the run was never reached."""
    if assertion.budget_ms:
        spent = max(0, (run.end or run.touched) - run.start)
        held = PASSED if spent <= assertion.budget_ms else FAILED
        return replace(assertion, result=held, actual=f"{spent} ms", at=run.end)
    reached = all(step.status in (COMPLETED, FAILED) for step in run.steps) and (run.calls or run.steps)
    if assertion.step or not reached or assertion.result != UNKNOWN:
        return assertion
    return replace(assertion, result=FAILED)


def verdict_of_ended_run(run: Run, ending: Event) -> JsonObject:
    """What the end of this run says to those who only hear events (gates ask for proof by them)."""
    over = reduce_run(run, ending) or run
    return {"scenario": over.scenario, "outcome": over.outcome, "flaky": over.flaky}


def outcome_of_run(run: Run) -> str:
    """From the steps and assertions; a run without any of them proves nothing."""
    statuses = [step.status for step in run.steps]
    judged = {a.result for a in run.assertions} | set(run.asserted)
    if FAILED in (*statuses, *judged):
        return FAILED
    if INTERRUPTED in statuses:
        return INTERRUPTED
    is_proven = COMPLETED in statuses if statuses else PASSED in judged
    is_done = judged <= {PASSED} and all(map(_is_done, run.steps))
    return PASSED if is_done and is_proven and not run.blocked else INCOMPLETE


def _is_done(step: Step) -> bool:
    # A step that was skipped on purpose has an attempt that says so; one that was passed over has none.
    return step.status == COMPLETED or (step.status == SKIPPED and bool(step.attempts))


CHANGES: dict[str, Callable[[Run, Event], None]] = {
    "uat.call_started": lambda run, event: _call_started(run, event, event.data),
    "uat.call_ended": _call_ended,
    "uat.step": _apply_step_set,
    "uat.asserted": _apply_assertion,
    "uat.checked": lambda run, event: _count_health_check(run, event, event.data),
    "uat.shot": _apply_screenshot,
    "uat.problem": _apply_problem,
    "uat.signal": _apply_signal,
    "uat.patched": _apply_patch,
    "uat.reported": _apply_reports,
    "uat.restored": lambda run, event: setattr(run, "restored", run.restored + (event.data.was != "good")),
    "uat.archived": lambda run, event: setattr(run, "archived", event.at),
    "uat.ended": _apply_run_ended,
}
