"""Matches a tool call to a step."""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.features.uat.drivers import recognise_tool_use, use_of_command
from holdfast.features.uat.drivers.table import NOT_A_DRIVER, ToolUse, meanings_of_action
from holdfast.features.uat.settings import FAILED, IN_PROGRESS, INTERRUPTED
from holdfast.features.uat.state import NO_STEP, Run

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
    """`raw_arguments`: the arguments as the agent sent them; the stored ones lack typed values."""
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
    """What a call is to a driver. Runs for every call of every session; nearly all are commands without a driver."""
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
    """The number of the step this call is part of, 0 when it is part of none."""
    last = min(len(plan.steps), len(run.steps))
    fitting = {n for n in range(1, last + 1) if matches_step(plan.steps[n - 1], call, plan.base_url)}
    exact = {n for n in fitting if plan.steps[n - 1].tool or plan.steps[n - 1].arguments}
    return next((n for n in _steps_in_order(run, call, exact, len(plan.steps)) if n in fitting), 0)


def _steps_in_order(run: Run, call: Called, exact: set[int], steps: int) -> Iterable[int]:
    """Which steps come into question, the likeliest first.

    After a crash or a way back the earliest. Else a step still going on or to be tried again comes first, then the next
    one, then the last one once more (a form has many fields), then a later one if the scenario says exactly what it
    looks like, then an earlier one whose page is opened again.
    """
    current = run.current
    if run.returning:
        return range(1, current + 2)
    again = _opened_again(run, call)
    if again and current + 1 not in exact:
        return (again,)
    navigates = call.use.meaning == "navigate"
    step = run.steps[current - 1] if current else NO_STEP
    address = call.use.address[:300] if navigates and step.address else ""
    stays = step.status in (IN_PROGRESS, FAILED, INTERRUPTED) and address in ("", step.address)
    near = (current, current + 1) if stays else (current + 1, current)
    earlier = range(1, current) if navigates else ()
    return (*near, *(n for n in (*range(current + 2, steps + 1), *earlier) if n in exact))


def _opened_again(run: Run, call: Called) -> int:
    """The earlier step whose page this call opens once more."""
    address = call.use.address
    if call.use.meaning != "navigate" or not address:
        return 0
    return next((n for n in range(1, run.current) if run.steps[n - 1].address == address[:300]), 0)


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
            _argument_matches(value, actual.get(name), base_url) for name, value in expected.items()
        )
    if isinstance(expected, str):
        return actual is not None and text_fits(expected, _as_text(actual), base_url)
    if isinstance(expected, Sequence):
        return isinstance(actual, list) and all(_is_among(value, actual, base_url) for value in expected)
    # In Python True equals 1: a flag must not match a number.
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def _is_among(expected: Any, listed: list[Any], base_url: str) -> bool:
    return any(_argument_matches(expected, one, base_url) for one in listed)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


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
