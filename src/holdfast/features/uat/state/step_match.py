"""Matches a tool call to a step."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.features.uat.drivers import recognise_tool_use, use_of_command
from holdfast.features.uat.drivers.table import NOT_A_DRIVER, ToolUse, meanings_of_action
from holdfast.features.uat.settings import FAILED, IN_PROGRESS, INTERRUPTED
from holdfast.features.uat.state import Run

LONGEST_COMPARED = 4_000
_SHELL = ("shell", "command", "run", "exec", "execute", "bash")


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
    allowed_meanings = meanings_of_action().get(action)
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
