"""The steps of a run as calls come and go: attempts, and the verdict of each step.

`run` is a copy made for the event at hand; lists and structs inside it are shared with the document before, so each
change replaces them."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.features.uat.drivers import NOT_A_DRIVER, ToolUse, recognise_tool_use, use_of_command
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
from holdfast.features.uat.state import Attempt, Run, Step

BY_HAND = "by-hand"
_CLOSED = (COMPLETED, FAILED, INTERRUPTED)


def planned_step(step_plan: PlannedStep) -> Step:
    return Step(wanted=step_plan.calls, budget_ms=step_plan.budget_ms or 0)


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
    step = run.steps[number - 1]
    if not step.attempts or reason:
        _open_attempt(run, number, at, reason)
    else:
        _set_attempt(run, number, status=_reopened_status(step), end=None)
    step = run.steps[number - 1]
    _set_step(run, number, address=step.address or clean_line(address, 300))
    run.current, run.returning = number, ""


def end_call(run: Run, number: int, at: int, *, ok: bool, error: str = "", interrupted: bool = False) -> None:
    """A call of that step ended. An attempt with a failed call has failed; the next call is another attempt."""
    if not has_step(run, number) or not run.steps[number - 1].attempts:
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
    if has_step(run, number) and run.steps[number - 1].attempts:
        _set_attempt(run, number, expected=clean_line(expected, 200), received=clean_line(received, 200))


def judge_step(run: Run, number: int) -> None:
    """A step passes only with its assertions: one that failed fails it, one that is still open keeps it going."""
    if not has_step(run, number) or not run.steps[number - 1].attempts:
        return
    attempt = run.steps[number - 1].attempts[-1]
    mine = [a for a in run.assertions if a.step == number]
    broken = next((a for a in mine if a.result == FAILED), None)
    if broken is not None and attempt.status != INTERRUPTED:
        comparison = {"expected": broken.expected, "received": broken.actual}
        _set_attempt(run, number, status=FAILED, end=attempt.end or broken.at or run.touched, **comparison)
    # The calls are done but an assertion is not seen to hold yet.
    elif attempt.status == COMPLETED and not attempt.by_hand and any(a.result == UNKNOWN for a in mine):
        _set_attempt(run, number, status=IN_PROGRESS, end=None)
    elif attempt.status == IN_PROGRESS and mine and _calls_done(run, number) and not _has_open_assertions(run, number):
        _set_attempt(run, number, status=COMPLETED, end=run.touched)
    _judge_budget(run, number)


def _judge_budget(run: Run, number: int) -> None:
    step = run.steps[number - 1]
    spent = duration_ms(step.attempts[-1])
    if step.budget_ms and step.attempts[-1].status == COMPLETED and spent is not None and spent > step.budget_ms:
        comparison = {"expected": f"at most {step.budget_ms} ms", "received": f"{spent} ms"}
        _set_attempt(
            run, number, status=FAILED, error=f"it took {spent} ms, its budget is {step.budget_ms} ms", **comparison
        )


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
        _pass_open_assertions(run, number, at)
    judge_step(run, number)
    run.current = number


def close_steps(run: Run) -> None:
    """The end of the run: what was never seen to hold has failed, what was cut off is interrupted."""
    for number, step in enumerate(run.steps, 1):
        if not step.attempts:
            continue
        if step.attempts[-1].status == IN_PROGRESS:
            _finish_step(run, number, otherwise=INTERRUPTED)
        else:
            _fail_open_assertions(run, number)
            judge_step(run, number)


def all_over(run: Run) -> bool:
    """The last step ended well: nothing of the scenario is left to do."""
    return bool(run.steps) and run.steps[-1].status in (COMPLETED, SKIPPED)


def gave_up(run: Run) -> bool:
    """The last step failed, or its assertion never came true, and nobody is trying it again."""
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


def has_step(run: Run, number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(run.steps)


# ── attempts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _attempt_reason(run: Run, number: int) -> str:
    """Why this call opens a new attempt of the step; empty when it goes on with the one there is."""
    step = run.steps[number - 1]
    if not step.attempts:
        return ""
    last = step.attempts[-1]
    if run.returning:
        return run.returning
    if number < run.current:
        return "back"
    if number > run.current:
        before = run.steps[run.current - 1].attempts[-1:] if run.current else []
        return (before[0].reason if before else "") or "retry"
    return "retry" if last.status == INTERRUPTED or (last.status == FAILED and bool(last.error)) else ""


def _reopened_status(step: Step) -> str:
    return FAILED if step.attempts[-1].status == FAILED else IN_PROGRESS


def _open_attempt(run: Run, number: int, at: int, reason: str) -> None:
    step = run.steps[number - 1]
    number_of = step.tries + 1
    # The oldest attempts go; their number stays in `tries`.
    earlier_attempts = step.attempts[1 - MOST_ATTEMPTS :] if len(step.attempts) >= MOST_ATTEMPTS else step.attempts
    attempt = Attempt(number=number_of, reason=reason, status=IN_PROGRESS, start=at)
    # A retry goes on where the step failed; after a restart everything in it is done again.
    done = step.done if reason == "retry" else 0
    _set_step(run, number, attempts=[*earlier_attempts, attempt], tries=number_of, done=done)
    if reason:
        # A new attempt has to prove its assertions again, and loses those that were added by hand.
        run.assertions = [
            msgspec.structs.replace(a, result=UNKNOWN, actual="", at=None, by_hand=False) if a.step == number else a
            for a in run.assertions
            if not (a.extra and a.step == number)
        ]
    _refresh_step(run, number)


def _set_attempt(run: Run, number: int, **fields: object) -> None:
    attempts = run.steps[number - 1].attempts
    _set_step(run, number, attempts=[*attempts[:-1], msgspec.structs.replace(attempts[-1], **fields)])
    _refresh_step(run, number)


def _refresh_step(run: Run, number: int) -> None:
    """The step stands where its latest attempt stands."""
    step = run.steps[number - 1]
    last = step.attempts[-1]
    starts = [a.start for a in step.attempts if a.start is not None]
    _set_step(run, number, status=last.status, start=min(starts, default=step.start), end=last.end)


def _set_step(run: Run, number: int, **fields: object) -> None:
    steps = list(run.steps)
    steps[number - 1] = msgspec.structs.replace(steps[number - 1], **fields)
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
        judge_step(run, number)
        return
    error = f"{step.done} of {step.wanted} calls were made" if step.done else "no call of it succeeded"
    _set_attempt(run, number, status=otherwise, end=run.touched, error=step.attempts[-1].error or error)


def _fail_open_assertions(run: Run, number: int) -> None:
    """Nothing is believed: what was to be seen in this step and never was has failed."""
    run.assertions = [
        msgspec.structs.replace(a, result=FAILED, at=a.at or run.touched)
        if a.step == number and a.result == UNKNOWN
        else a
        for a in run.assertions
    ]


def _pass_open_assertions(run: Run, number: int, at: int) -> None:
    run.assertions = [
        msgspec.structs.replace(a, result=PASSED, at=at, by_hand=True)
        # Those that a tool result spoke about keep its word.
        if a.step == number and a.result == UNKNOWN and a.at is None
        else a
        for a in run.assertions
    ]


def _calls_done(run: Run, number: int) -> bool:
    step = run.steps[number - 1]
    return step.done >= step.wanted and not _is_running(run, number)


def _has_open_assertions(run: Run, number: int) -> bool:
    return any(a.step == number and a.result == UNKNOWN for a in run.assertions)


def _is_running(run: Run, number: int) -> bool:
    return any(entry.step == number and entry.matched for entry in run.open.values())


# Which step a tool call belongs to, by what its tool means (`drivers`) and by its arguments.

LONGEST_COMPARED = 4_000
_SHELL = ("shell", "command", "run", "exec", "execute", "bash")
_ACTIONS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("navigate", "open", "goto", "go", "visit", "load", "launch"): ("navigate",),
    ("fill", "type", "enter", "input", "login"): ("fill", "press"),
    ("click", "submit", "press", "tap"): ("click", "press"),
    ("select", "choose"): ("select",),
    ("upload", "attach"): ("upload",),
    ("back",): ("back",),
    ("scroll", "swipe"): ("scroll",),
    ("hover",): ("hover",),
    ("drag",): ("drag",),
    ("screenshot", "capture"): ("screenshot",),
    ("wait",): ("wait",),
    ("verify", "assert", "check", "read", "see", "snapshot"): ("snapshot", "evaluate", "wait", "console"),
    ("evaluate", "script"): ("evaluate",),
}
MEANINGS_OF = {word: meanings for words, meanings in _ACTIONS.items() for word in words}
"""What a scenario calls an action → what tools that do it mean."""


class Called(NamedTuple):
    tool: str
    action: str
    arguments: Mapping[str, Any]
    use: ToolUse = NOT_A_DRIVER
    is_later: bool = False
    """Not the first command of its command line."""


def call_of_event(
    event: Event, extra: Mapping[str, str] | None = None, raw_arguments: Mapping[str, Any] | None = None
) -> Called:
    """`raw_arguments`: the arguments as the agent sent them, where what is stored lacks what was typed."""
    data: ToolPayload = event.data
    arguments = dict(raw_arguments if raw_arguments is not None else data.input)
    if data.command and raw_arguments is None:
        arguments["command"] = data.command
    action = data.action
    use = recognise_tool_use(event.tool, arguments if action == "shell" or "__" in event.tool else {}, extra)
    call = Called(event.tool, action, arguments, use)
    # Of every tool call of every session this is asked; hardly any goes to an address.
    return with_use(call, use) if use.address else call


def use_of_event(event: Event, extra: Mapping[str, str] | None = None) -> ToolUse:
    """What a call is to a driver, where nothing else of it is wanted: this is asked of every call of every session, and
    nearly all are commands that no driver is named in."""
    data: ToolPayload = event.data
    if data.command and data.action == "shell" and "__" not in event.tool:
        return use_of_command(data.command)
    return call_of_event(event, extra).use


def with_use(call: Called, use: ToolUse) -> Called:
    """Where a driver says the address in words of a command, a scenario's `arguments: {url: …}` fits it too."""
    named = {"url": use.address} if use.address and "url" not in call.arguments else {}
    return call._replace(use=use, arguments={**call.arguments, **named}, is_later=use is not call.use)


def is_ours(call: Called) -> bool:
    """An agent that talks to Holdfast itself does no step of the scenario."""
    return str(call.arguments.get("command") or "").lstrip().startswith("holdfast ")


def short_tool_name(tool: str) -> str:
    """`mcp__playwright__browser_navigate` is `browser_navigate`."""
    return tool.rpartition("__")[2]


def matches_step(step: PlannedStep, call: Called, base_url: str = "") -> bool:
    return _tool_fits(step, call) and all(
        _argument_matches(expected, call.arguments.get(name), base_url) for name, expected in step.arguments.items()
    )


def choose_step(plan: Plan, run: Run, call: Called) -> int:
    """The number of the step this call is part of, 0 when it is part of none.

    After a crash or a way back the earliest step that fits. Else a step still going on or to be tried again comes
    first, then the next one, then the last one once more (a form has many fields), then a later one if the scenario
    says exactly what it looks like, then an earlier one whose page is opened again.
    """
    steps, base_url, current = plan.steps, plan.base_url, run.current

    def fits(number: int) -> bool:
        return 0 < number <= min(len(steps), len(run.steps)) and matches_step(steps[number - 1], call, base_url)

    if run.returning:
        return next((n for n in range(1, current + 2) if fits(n)), 0)
    near = [current, current + 1] if _is_unfinished_step(run, current) else [current + 1, current]
    again = _opened_again(run, call)
    if again and not (fits(current + 1) and _is_exact(steps[current])):
        return again if fits(again) else 0
    if call.use.meaning == "navigate" and _goes_elsewhere(run, current, call):
        near = [current + 1, current]
    exact = [n for n in range(current + 2, len(steps) + 1) if _is_exact(steps[n - 1])]
    earlier = [n for n in range(1, current) if _is_exact(steps[n - 1])] if call.use.meaning == "navigate" else []
    return next((n for n in (*near, *exact, *earlier) if fits(n)), 0)


def _is_exact(step: PlannedStep) -> bool:
    return bool(step.tool or step.arguments)


def _opened_again(run: Run, call: Called) -> int:
    """The earlier step whose page this call opens once more."""
    address = call.use.address
    if call.use.meaning != "navigate" or not address:
        return 0
    return next((n for n in range(1, run.current) if run.steps[n - 1].address == address[:300]), 0)


def _goes_elsewhere(run: Run, number: int, call: Called) -> bool:
    address = run.steps[number - 1].address if number else ""
    return bool(address and call.use.address and address != call.use.address[:300])


def _is_unfinished_step(run: Run, number: int) -> bool:
    return number > 0 and run.steps[number - 1].status in (IN_PROGRESS, FAILED, INTERRUPTED)


def _tool_fits(step: PlannedStep, call: Called) -> bool:
    action = step.action.lower()
    if step.tool:
        names = {call.tool, short_tool_name(call.tool), call.action}
        return any(_matches_glob(glob.strip(), name) for glob in step.tool.split("|") for name in names if name)
    if action in _SHELL:
        return call.action == "shell"
    if not call.use.is_known:
        return False
    allowed_meanings = MEANINGS_OF.get(action)
    return (
        call.use.meaning in allowed_meanings
        if allowed_meanings
        else _matches_glob(f"*{action}*", short_tool_name(call.tool))
    )


def _argument_matches(expected: Any, actual: Any, base_url: str) -> bool:
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            _argument_matches(e, actual.get(k), base_url) for k, e in expected.items()
        )
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        return isinstance(actual, list) and all(
            any(_argument_matches(e, a, base_url) for a in actual) for e in expected
        )
    if isinstance(expected, str) and actual is not None:
        return text_fits(
            expected, actual if isinstance(actual, str) else msgspec.json.encode(actual).decode(), base_url
        )
    # In Python True equals 1: a flag must not match a number.
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def text_fits(glob: str, text: str, base_url: str = "") -> bool:
    """A glob over the whole text. One that begins with / also fits an address by its path."""
    text = text[:LONGEST_COMPARED]
    if _matches_glob(glob, text):
        return True
    if not glob.startswith("/") or "://" not in text:
        return False
    path = _path_of_url(text)
    below = _path_of_url(base_url).rstrip("/") if base_url else ""
    return _matches_glob(glob, path) or _matches_glob(below + glob, path)


def _path_of_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _matches_glob(glob: str, text: str) -> bool:
    return glob == text or fnmatch.fnmatchcase(text.lower(), glob.lower())
