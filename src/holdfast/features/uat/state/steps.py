"""The steps of a run as calls come and go: attempts, and the verdict of each step."""

# `run` is a copy made for the event at hand; lists and structs inside it are shared with the document before, so each
# change replaces them.

from collections.abc import Callable

from msgspec.structs import replace

from holdfast.features.uat.settings import (
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    INTERRUPTED,
    MOST_ATTEMPTS,
    NOT_REACHED,
    PASSED,
    PENDING,
    SETTABLE,
    SKIPPED,
    UNKNOWN,
    clean_line,
)
from holdfast.features.uat.state import Assertion, Attempt, Run, Step

BY_HAND = "by-hand"
_CLOSED = (COMPLETED, FAILED, INTERRUPTED)


def begin_call(run: Run, number: int, at: int, address: str = "") -> None:
    """A call of that step is under way: the steps before it are over, the one that was going on is left."""
    if not has_step(run, number):
        return
    reason = _attempt_reason(run, number)
    # Back to an earlier step: the one that was going on is left behind.
    if number < run.current:
        _leave_step(run, run.current, interrupted=bool(run.returning))
    # Steps that were jumped over are skipped; the one before is finished.
    for earlier in range(max(1, min(run.current, number)), number):
        _leave_step(run, earlier)
    attempts = run.steps[number - 1].attempts
    if not attempts or reason:
        _open_attempt(run, number, at, reason)
    else:
        reopened = FAILED if attempts[-1].status == FAILED else IN_PROGRESS
        _set_attempt(run, number, status=reopened, end=None)
    _set_step(run, number, address=run.steps[number - 1].address or clean_line(address, 300))
    run.current, run.returning = number, ""


def end_call(run: Run, number: int, at: int, *, ok: bool, error: str = "", interrupted: bool = False) -> None:
    """A call of that step ended. An attempt with a failed call has failed; the next call is another attempt."""
    if not is_tried(run, number):
        return
    step = run.steps[number - 1]
    _set_step(run, number, done=step.done + ok, bad=step.bad + (not ok))
    # The first failed call decides; further ones change nothing.
    if not ok and step.attempts[-1].status != FAILED:
        _set_attempt(run, number, status=INTERRUPTED if interrupted else FAILED, end=at, error=clean_line(error, 300))
    elif ok and step.attempts[-1].status not in (FAILED, INTERRUPTED):
        done = run.steps[number - 1].done >= step.wanted
        _set_attempt(run, number, status=COMPLETED if done else IN_PROGRESS, end=at if done else None)
    judge_step(run, number)


def set_difference(run: Run, number: int, expected: str, received: str) -> None:
    """What a test runner's failed attempt expected and received."""
    if is_tried(run, number):
        _set_attempt(run, number, expected=clean_line(expected, 200), received=clean_line(received, 200))


def judge_step(run: Run, number: int) -> None:
    """A step passes only with its assertions: one that failed fails it, one that is still open keeps it going."""
    if not is_tried(run, number):
        return
    _set_attempt(run, number, **_by_assertions(run, number))
    step, last = run.steps[number - 1], run.steps[number - 1].attempts[-1]
    spent = duration_ms(last) or 0
    if step.budget_ms and last.status == COMPLETED and spent > step.budget_ms:
        error = f"it took {spent} ms, its budget is {step.budget_ms} ms"
        comparison = {"expected": f"at most {step.budget_ms} ms", "received": f"{spent} ms"}
        _set_attempt(run, number, status=FAILED, error=error, **comparison)


def _by_assertions(run: Run, number: int) -> dict[str, object]:
    attempt = run.steps[number - 1].attempts[-1]
    results = {a.result: a for a in reversed(run.assertions) if a.step == number}
    broken = results.get(FAILED)
    if broken and attempt.status != INTERRUPTED:
        end = attempt.end or broken.at or run.touched
        return {"status": FAILED, "end": end, "expected": broken.expected, "received": broken.actual}
    if UNKNOWN in results:
        # The calls are done but an assertion is not seen to hold yet.
        goes_on = attempt.status == COMPLETED and not attempt.by_hand
        return {"status": IN_PROGRESS, "end": None} if goes_on else {}
    is_done = attempt.status == IN_PROGRESS and results and _calls_done(run, number)
    return {"status": COMPLETED, "end": run.touched} if is_done else {}


def set_status(run: Run, number: int, status: str, at: int) -> None:
    """By hand or by a hook. Who marks a step completed vouches for the assertions that no tool result spoke about."""
    if not has_step(run, number) or status not in SETTABLE:
        return
    step = run.steps[number - 1]
    closed = bool(step.attempts) and step.attempts[-1].status in _CLOSED
    if status == IN_PROGRESS and closed:
        _open_attempt(run, number, at, BY_HAND)
    elif not step.attempts:
        _open_attempt(run, number, at, "")
    _set_attempt(run, number, status=status, end=None if status == IN_PROGRESS else at, by_hand=True)
    if status == COMPLETED:
        # Those that a tool result spoke about keep its word.
        _set_open_assertions(run, number, lambda a: a if a.at else replace(a, result=PASSED, at=at, by_hand=True))
    judge_step(run, number)
    run.current = number


def close_steps(run: Run) -> None:
    """The end of the run: open assertions have failed, steps that were cut off are interrupted."""
    for number, step in enumerate(run.steps, 1):
        if step.attempts and step.attempts[-1].status == IN_PROGRESS:
            _finish_step(run, number, otherwise=INTERRUPTED)
        elif step.attempts:
            _fail_open_assertions(run, number)


def all_over(run: Run) -> bool:
    """The last step ended well: nothing of the scenario is left to do."""
    return bool(run.steps) and run.steps[-1].status in (COMPLETED, SKIPPED)


def gave_up(run: Run) -> bool:
    """The last step failed, or its assertion never held, and it is not being tried again."""
    if not run.steps:
        return False
    last = run.steps[-1]
    return last.status == FAILED or (last.status == IN_PROGRESS and _calls_done(run, len(run.steps)))


def duration_ms(step: Step | Attempt) -> int | None:
    return None if step.start is None or step.end is None else max(0, step.end - step.start)


def step_verdict(run: Run, step: Step) -> str:
    """passed, failed, skipped, not_reached or interrupted; in_progress as long as the run goes on."""
    if step.status == COMPLETED:
        return PASSED
    if step.status == PENDING:
        return NOT_REACHED
    return INTERRUPTED if step.status == IN_PROGRESS and run.end is not None else step.status


def is_flaky(step: Step) -> bool:
    return step.status == COMPLETED and any(a.status in (FAILED, INTERRUPTED) for a in step.attempts[:-1])


def has_step(run: Run, number: int) -> bool:
    return 1 <= number <= len(run.steps)


def is_tried(run: Run, number: int) -> bool:
    return has_step(run, number) and bool(run.steps[number - 1].attempts)


# ── attempts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _attempt_reason(run: Run, number: int) -> str:
    """Why this call opens a new attempt of the step; empty when it goes on with the one there is."""
    if not is_tried(run, number):
        return ""
    if run.returning or number < run.current:
        return run.returning or "back"
    if number > run.current:
        return _reason_of_step_before(run) or "retry"
    last = run.steps[number - 1].attempts[-1]
    return "retry" if last.status == INTERRUPTED or (last.status == FAILED and bool(last.error)) else ""


def _reason_of_step_before(run: Run) -> str:
    """A step that was tried already comes again because the one before was tried again."""
    return run.steps[run.current - 1].attempts[-1].reason if is_tried(run, run.current) else ""


def _open_attempt(run: Run, number: int, at: int, reason: str) -> None:
    step = run.steps[number - 1]
    attempt = Attempt(number=step.tries + 1, reason=reason, status=IN_PROGRESS, start=at)
    # A retry goes on where the step failed; after a restart everything in it is done again.
    done = step.done if reason == "retry" else 0
    # The oldest attempts go; their number stays in `tries`.
    attempts = [*step.attempts, attempt][-MOST_ATTEMPTS:]
    _set_step(run, number, attempts=attempts, tries=attempt.number, done=done)
    if reason:
        # A new attempt has to prove its assertions again, and loses those that were added by hand.
        run.assertions = [
            replace(a, result=UNKNOWN, actual="", at=None, by_hand=False) if a.step == number else a
            for a in run.assertions
            if not (a.extra and a.step == number)
        ]
    _refresh_step(run, number)


def _set_attempt(run: Run, number: int, **fields: object) -> None:
    attempts = run.steps[number - 1].attempts
    _set_step(run, number, attempts=[*attempts[:-1], replace(attempts[-1], **fields)])
    _refresh_step(run, number)


def _refresh_step(run: Run, number: int) -> None:
    """A step has the status of its latest attempt."""
    step = run.steps[number - 1]
    last = step.attempts[-1]
    starts = [a.start for a in step.attempts if a.start is not None]
    _set_step(run, number, status=last.status, start=min(starts, default=step.start), end=last.end)


def _set_step(run: Run, number: int, **fields: object) -> None:
    steps = list(run.steps)
    steps[number - 1] = replace(steps[number - 1], **fields)
    run.steps = steps


def _leave_step(run: Run, number: int, *, interrupted: bool = False) -> None:
    """The run went on to another step."""
    step = run.steps[number - 1]
    if step.status == PENDING:
        _set_step(run, number, status=SKIPPED)
    # Calls run side by side: one of this step may still be under way.
    elif step.status == IN_PROGRESS and not _is_running(run, number):
        _finish_step(run, number, otherwise=INTERRUPTED if interrupted else FAILED)


def _finish_step(run: Run, number: int, *, otherwise: str) -> None:
    """`otherwise`: what a step is whose calls were not all made."""
    step = run.steps[number - 1]
    if step.done >= step.wanted:
        _set_attempt(run, number, status=COMPLETED, end=step.end or run.touched)
        _fail_open_assertions(run, number)
        return
    error = f"{step.done} of {step.wanted} calls were made" if step.done else "no call of it succeeded"
    _set_attempt(run, number, status=otherwise, end=run.touched, error=step.attempts[-1].error or error)


def _fail_open_assertions(run: Run, number: int) -> None:
    """Assertions of this step that never held have failed."""
    _set_open_assertions(run, number, lambda a: replace(a, result=FAILED, at=a.at or run.touched))
    judge_step(run, number)


def _set_open_assertions(run: Run, number: int, change: Callable[[Assertion], Assertion]) -> None:
    run.assertions = [change(a) if a.step == number and a.result == UNKNOWN else a for a in run.assertions]


def _calls_done(run: Run, number: int) -> bool:
    step = run.steps[number - 1]
    return step.done >= step.wanted and not _is_running(run, number)


def _is_running(run: Run, number: int) -> bool:
    return any(entry.step == number and entry.matched for entry in run.open.values())
