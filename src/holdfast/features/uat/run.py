"""How events change the document of a run."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.features.uat import steps
from holdfast.features.uat.judge import expected
from holdfast.features.uat.model import (
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
    line,
)
from holdfast.features.uat.patch import merged, size
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
)

PAPERWORK = ("uat.reported", "uat.restored", "uat.archived")
"""Nothing happened in the run itself."""


def begun(event: Event) -> Run:
    plan = event.get("plan") or {}
    return Run(
        id=str(event.get("uat", "")),
        session=event.session,
        project=event.project,
        scenario=str(plan.get("name", "")),
        start=event.at,
        at=event.at,
        touched=event.at,
        first_seq=event.seq,
        last_seq=event.seq,
        of=event.get("of", 0),
        mode=event.get("mode", ""),
        root=event.get("root", ""),
        base_url=plan.get("base_url", ""),
        message=line(event.get("message"), 1000),
        confidence=event.get("confidence", 0),
        reasons=list(event.get("reasons") or ())[:MOST_RECENT],
        auto=bool(event.get("auto")),
        source=str(event.get("source") or ""),
        steps=[steps.planned_step(wanted) for wanted in plan.get("steps", ())],
        assertions=[
            Assertion(step=wanted.get("step") or 0, expected=expected(wanted)) for wanted in plan.get("assertions", ())
        ],
    )


def reduced(run: Run | None, event: Event) -> Run | None:
    if event.kind == "uat.started":
        return run or _first_call(begun(event), event)
    change = CHANGES.get(event.kind)
    if run is None or change is None:
        return run
    after = copy.copy(run)
    after.at = run.at if event.kind in PAPERWORK else max(run.at, event.at)
    after.last_seq = event.seq or run.last_seq
    change(after, event)
    return after


def _first_call(run: Run, event: Event) -> Run:
    """The call by which a run was noticed is the first one of it."""
    first = event.get("first")
    if isinstance(first, Mapping):
        _call_started(run, event, first)
    return run


def _started(run: Run, event: Event) -> None:
    _call_started(run, event, event.data)


def _call_started(run: Run, event: Event, call: Any) -> None:
    if len(run.open) >= MOST_OPEN:
        run.open = dict(list(run.open.items())[1 - MOST_OPEN :])
    number, matched = call.get("step", 0), bool(call.get("matched", True))
    n = call.get("n", 0)
    entry = OpenCall(n=n, tool=call.get("tool", ""), step=number, at=event.at, call=call.get("call", ""))
    entry.matched = matched
    run.open = {**run.open, str(n): entry}
    run.n, run.touched = max(run.n, n), max(run.touched, event.at)
    if matched and run.status == ACTIVE:
        steps.begin_call(run, number, event.at, str(call.get("address") or ""))


def _ended_call(run: Run, event: Event) -> None:
    n, number, ok = event.get("n", 0), event.get("step", 0), bool(event.get("ok"))
    interrupted = bool(event.get("interrupted"))
    seen = run.open.get(str(n))
    run.open = {key: entry for key, entry in run.open.items() if key != str(n)}
    run.n, run.touched = max(run.n, n), max(run.touched, event.at)
    _count_call(run, event, ok=ok, interrupted=interrupted)
    matched = bool(event.get("matched", True)) and run.status == ACTIVE
    if matched and seen is None:
        steps.begin_call(run, number, event.get("began") or event.at, str(event.get("address") or ""))
    _judge_assertions(run, event, event.get("assertions") or ())
    if matched:
        error = str(event.get("error") or "")
        steps.end_call(run, number, event.at, ok=ok, error=error, interrupted=interrupted)
        if event.get("expected"):
            steps.set_difference(run, number, str(event.get("expected")), str(event.get("received") or ""))
    elif run.status == ACTIVE:
        steps.judge_step(run, number)
    if not ok:
        kind = INTERRUPTED if interrupted else "tool"
        _note(run, event, "error", kind, event.get("error") or "failed", number)
    for found in event.get("problems") or ():
        _note(run, event, "warning", found["type"], found["message"], number)
    for check in event.get("health") or ():
        _check(run, event, check)
    if event.get("returning") and run.status == ACTIVE:
        run.returning = str(event.get("returning"))


def _count_call(run: Run, event: Event, *, ok: bool, interrupted: bool) -> None:
    run.calls += 1
    if ok:
        run.ok += 1
    elif interrupted:
        run.interrupted += 1
    else:
        run.failed += 1
    recent = RecentCall(
        n=event.get("n", 0),
        tool=event.get("tool", ""),
        step=event.get("step", 0),
        ms=event.get("ms", 0),
        ok=ok,
        at=event.at,
        error=line(event.get("error"), 200),
    )
    run.last = [*run.last, recent][-MOST_RECENT:]
    if event.get("framework"):
        run.framework = True


def _judge_assertions(run: Run, event: Event, judged: Iterable[JsonObject]) -> None:
    """What was met stays met unless it is broken; what is not met yet may still be; what is broken stays broken."""
    known = list(run.assertions)
    for one in judged:
        before = known[one["index"]].result if one["index"] < len(known) else FAILED
        if before == FAILED or (before == PASSED and not one["broken"]):
            continue
        result = FAILED if one["broken"] else PASSED if one["met"] else UNKNOWN
        known[one["index"]] = msgspec.structs.replace(
            known[one["index"]], result=result, actual=one["actual"], at=event.at, by_hand=False
        )
    run.assertions = known


def _step(run: Run, event: Event) -> None:
    run.touched = max(run.touched, event.at)
    steps.set_status(run, event.get("step", 0), str(event.get("status") or ""), event.at)


def _asserted(run: Run, event: Event) -> None:
    """By hand: new, or instead of one of the scenario's."""
    index, result = event.get("index"), str(event.get("result") or "")
    number = event.get("step") or 0
    if isinstance(index, int) and 0 <= index < len(run.assertions):
        known = list(run.assertions)
        actual = str(event.get("actual") or "")
        known[index] = msgspec.structs.replace(known[index], result=result, actual=actual, at=event.at, by_hand=True)
        run.assertions = known
        steps.judge_step(run, known[index].step)
    elif len(run.assertions) < MOST_CHECKS and steps.has_step(run, number) and run.steps[number - 1].attempts:
        wanted = str(event.get("expected") or event.get("description") or "")
        actual = str(event.get("actual") or "")
        one = Assertion(step=number, result=result, at=event.at, by_hand=True, extra=True, expected=wanted)
        run.assertions = [*run.assertions, msgspec.structs.replace(one, actual=actual)]
        steps.judge_step(run, number)
    elif len(run.asserted) < MOST_CHECKS:
        run.asserted = [*run.asserted, result]


def _checked(run: Run, event: Event) -> None:
    _check(run, event, event.data)


def _check(run: Run, event: Event, check: Any) -> None:
    run.checks += 1
    run.bad_checks += check.get("result") != "success"
    entry = RecentCheck(at=event.at, type=line(check.get("type"), 100), result=str(check.get("result") or ""))
    run.last_checks = [*run.last_checks, entry][-MOST_RECENT:]


def _shot(run: Run, event: Event) -> None:
    if not event.get("success"):
        _note(run, event, "warning", "screenshot", event.get("problem"), event.get("step", 0))
        return
    run.shots += 1
    entry = RecentShot(
        at=event.at,
        name=event.get("name") or "",
        path=event.get("path") or "",
        size=event.get("size") or 0,
        step=event.get("step") or 0,
        action=event.get("action") or "",
    )
    run.last_shots = [*run.last_shots, entry][-MOST_RECENT:]


def _problem(run: Run, event: Event) -> None:
    level = "error" if event.get("level") == "error" else "warning"
    _note(run, event, level, event.get("type", "note"), event.get("message"), event.get("step", 0))
    tool = event.get("tool")
    if isinstance(tool, str) and tool and tool not in run.unknown_tools:
        run.unknown_tools = [*run.unknown_tools, tool][-MOST_RECENT:]


def _note(run: Run, event: Event, level: str, kind: str, message: Any, step: int) -> None:
    entry = Note(at=event.at, type=line(kind, 50), message=line(message, 300), step=step or 0)
    if level == "error":
        run.errors += 1
        run.last_errors = [*run.last_errors, entry][-MOST_PROBLEMS:]
    else:
        run.warnings += 1
        run.last_warnings = [*run.last_warnings, entry][-MOST_PROBLEMS:]


def _signal(run: Run, event: Event) -> None:
    name = str(event.get("name") or "")
    known = {n: v for n, v in run.hooks.items() if n != name}
    kept = dict(list(known.items())[1 - MOST_SIGNALS :]) if len(known) >= MOST_SIGNALS else known
    run.hooks = {**kept, name: Signal(data=event.get("data"), at=event.at)}


def _patched(run: Run, event: Event) -> None:
    patch = event.get("patch")
    after = merged(run.overlay, patch) if isinstance(patch, Mapping) else run.overlay
    if size(after) <= LARGEST_OVERLAY:
        run.overlay = after
    else:
        _note(run, event, "warning", "update", "an update was left out: the document would become too large", 0)


def _reported(run: Run, event: Event) -> None:
    made = [r for r in event.get("reports") or () if r not in run.reports]
    run.reports = [*run.reports, *made][-MOST_RECENT:]


def _restored(run: Run, event: Event) -> None:
    run.restored += event.get("was") != "good"


def _archived(run: Run, event: Event) -> None:
    run.archived = event.at


def _over(run: Run, event: Event) -> None:
    if run.status != ACTIVE:
        return
    run.status, run.end, run.reason = COMPLETED, event.at, str(event.get("reason", ""))
    steps.close(run)
    run.assertions = [_final(run, one) for one in run.assertions]
    run.outcome = outcome(run)
    run.flaky = any(steps.is_flaky(step) for step in run.steps)


def _final(run: Run, assertion: Assertion) -> Assertion:
    """Of the whole run: what was never seen to hold has failed, unless a part of the run was never reached."""
    reached = all(step.status in (COMPLETED, FAILED) for step in run.steps) and (run.calls or run.steps)
    if assertion.step or not reached or assertion.result != UNKNOWN:
        return assertion
    return msgspec.structs.replace(assertion, result=FAILED)


def verdict(run: Run, ending: Event) -> JsonObject:
    """What the end of this run says to those who only hear events (gates ask for proof by them)."""
    over = reduced(run, ending) or run
    return {"scenario": over.scenario, "outcome": over.outcome, "flaky": over.flaky}


def outcome(run: Run) -> str:
    """From the steps and assertions; a run without any of them proves nothing."""
    stood = [step.status for step in run.steps]
    judged = [a.result for a in run.assertions] + run.asserted
    if FAILED in stood or FAILED in judged:
        return FAILED
    if INTERRUPTED in stood:
        return INTERRUPTED
    # A step that was skipped on purpose has an attempt that says so; one that was passed over has none.
    done = all(s.status == COMPLETED or (s.status == SKIPPED and s.attempts) for s in run.steps)
    proven = COMPLETED in stood or (not stood and PASSED in judged)
    return PASSED if done and proven and all(result == PASSED for result in judged) else INCOMPLETE


CHANGES: dict[str, Callable[[Run, Event], None]] = {
    "uat.call_started": _started,
    "uat.call_ended": _ended_call,
    "uat.step": _step,
    "uat.asserted": _asserted,
    "uat.checked": _checked,
    "uat.shot": _shot,
    "uat.problem": _problem,
    "uat.signal": _signal,
    "uat.patched": _patched,
    "uat.reported": _reported,
    "uat.restored": _restored,
    "uat.archived": _archived,
    "uat.ended": _over,
}
