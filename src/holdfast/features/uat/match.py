"""Which step a tool call belongs to. Names of Microsoft's Playwright MCP, of the seed's one, and plain shell steps."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.core.event import Event
from holdfast.features.uat.model import COMPLETED, FAILED, IN_PROGRESS, PENDING

LONGEST_COMPARED = 4_000
_BROWSER = re.compile(r"(?:^|[_.-])(?:browser|playwright|puppeteer)_[a-z]")
_SHELL = ("shell", "command", "run", "exec", "execute", "bash")
_GLOBS = {
    ("navigate", "open", "goto", "go", "visit", "load"): ("*navigate*", "*goto*"),
    ("fill", "type", "enter", "input", "login"): ("*fill*", "*type*", "*press_key*"),
    ("click", "submit", "press", "tap"): ("*click*", "*press_key*"),
    ("select", "choose"): ("*select*",),
    ("screenshot", "capture"): ("*screenshot*",),
    ("wait",): ("*wait*",),
    ("verify", "assert", "check", "read", "see", "snapshot"): (
        *("*snapshot*", "*evaluate*", "*get_visible*", "*find*", "*wait_for*", "*console*", "*expect*"),
    ),
    ("evaluate", "script"): ("*evaluate*", "*run_code*"),
}
GLOBS = {word: globs for words, globs in _GLOBS.items() for word in words}


class Called(NamedTuple):
    tool: str
    action: str
    arguments: Mapping[str, Any]


def called(event: Event) -> Called:
    given = event.get("input")
    arguments = dict(given) if isinstance(given, Mapping) else {}
    if command := event.get("command"):
        arguments["command"] = command
    return Called(event.tool, str(event.get("action") or ""), arguments)


def is_ours(call: Called) -> bool:
    """An agent that talks to Holdfast itself does no step of the scenario."""
    return str(call.arguments.get("command") or "").lstrip().startswith("holdfast ")


def is_browser(tool: str) -> bool:
    return bool(_BROWSER.search(tool.lower()))


def short(tool: str) -> str:
    """`mcp__playwright__browser_navigate` is `browser_navigate`."""
    return tool.rpartition("__")[2]


def matches(step: Mapping[str, Any], call: Called, base_url: str = "") -> bool:
    return _tool_fits(step, call) and all(
        _fits(expected, call.arguments.get(name), base_url) for name, expected in (step.get("arguments") or {}).items()
    )


def choose(plan: Mapping[str, Any], run: Mapping[str, Any], call: Called) -> int:
    """The number of the step this call is part of, 0 when it is part of none.

    A step still going on or to be tried again comes first, then the next one, then the last one once more (a form
    has many fields), then a later one if the scenario says exactly what it looks like.
    """
    steps, base_url, current = plan.get("steps", ()), plan.get("base_url", ""), run["current"]

    def fits(number: int) -> bool:
        return 0 < number <= len(steps) and matches(steps[number - 1], call, base_url)

    near = [current, current + 1] if _unfinished(run, current) else [current + 1, current]
    later = range(current + 2, len(steps) + 1)
    exact = [n for n in later if steps[n - 1].get("tool") or steps[n - 1].get("arguments")]
    return next((n for n in (*near, *exact) if fits(n) and _may(run, n)), 0)


def _unfinished(run: Mapping[str, Any], number: int) -> bool:
    return number > 0 and run["steps"][number - 1]["status"] in (IN_PROGRESS, FAILED)


def _may(run: Mapping[str, Any], number: int) -> bool:
    return run["steps"][number - 1]["status"] in (PENDING, IN_PROGRESS, FAILED, COMPLETED)


def _tool_fits(step: Mapping[str, Any], call: Called) -> bool:
    action = str(step.get("action", "")).lower()
    if globs := step.get("tool"):
        names = {call.tool, short(call.tool), call.action}
        return any(_glob(glob.strip(), name) for glob in globs.split("|") for name in names if name)
    if action in _SHELL:
        return call.action == "shell"
    return is_browser(call.tool) and any(_glob(glob, short(call.tool)) for glob in GLOBS.get(action, (f"*{action}*",)))


def _fits(expected: Any, actual: Any, base_url: str) -> bool:
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(_fits(e, actual.get(k), base_url) for k, e in expected.items())
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        return isinstance(actual, list) and all(any(_fits(e, a, base_url) for a in actual) for e in expected)
    if isinstance(expected, str) and actual is not None:
        return text_fits(
            expected, actual if isinstance(actual, str) else msgspec.json.encode(actual).decode(), base_url
        )
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def text_fits(glob: str, text: str, base_url: str = "") -> bool:
    """A glob over the whole text. One that begins with / also fits an address by its path."""
    text = text[:LONGEST_COMPARED]
    if _glob(glob, text):
        return True
    if not glob.startswith("/") or "://" not in text:
        return False
    path = _path(text)
    below = _path(base_url).rstrip("/") if base_url else ""
    return _glob(glob, path) or _glob(below + glob, path)


def _path(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _glob(glob: str, text: str) -> bool:
    return glob == text or fnmatch.fnmatchcase(text.lower(), glob.lower())
