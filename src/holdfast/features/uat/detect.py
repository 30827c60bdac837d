"""Is somebody asking for a UAT run? A score with reasons: 0-50 the words, 0-30 the tool, 0-20 the scenario (O3-b)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.features.uat.match import Called, matches
from holdfast.features.uat.prompt import Reading, is_flow, is_uat, read

TOOL, SCENARIO = 30, 20
WORTH_KEEPING = 20
"""A prompt that scores less cannot begin a run with any tool."""

_COMMON = re.compile(
    r"the|an?|our|all|this|that|of|for|in|on|with|and|please|now|again|once|more|full|whole|complete|it|uats?|user|"
    r"acceptance|tests?|testing|scenarios?|flow|run|rerun|re|execute|perform|start|begin|launch|kick|off|carry|out|"
    r"conduct|do|redo|repeat|browser|playwright|chrome|chromium|firefox|screenshots?|take"
)


_WORD = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")
"""Words; scripts without spaces stand beside Latin names without one."""


class Assessment(NamedTuple):
    score: int
    scenario: str
    reasons: tuple[str, ...]


def assess(prompt: str, scenarios: Mapping[str, Any], call: Called | None = None) -> Assessment:
    """The best scenario for a prompt and, if one is about to run, a tool call."""
    reading = read(prompt)
    if reading.score < WORTH_KEEPING:
        return Assessment(reading.score, "", reading.reasons)
    offers = [_offer(reading, name, plan, scenarios, call) for name, plan in scenarios.items()]
    return max(offers, key=lambda offer: offer.score, default=_without_scenario(reading, call))


def named(prompt: str, scenarios: Iterable[str]) -> list[str]:
    """Scenarios whose whole name is in the prompt's orders."""
    orders = read(prompt).orders
    return [name for name in scenarios if _correlation(orders, name)[0] == SCENARIO]


def _offer(reading: Reading, name: str, plan: Any, scenarios: Mapping[str, Any], call: Called | None) -> Assessment:
    points, reason = _correlation(reading.orders, name)
    if not points and len(scenarios) == 1 and is_uat(reading.orders) and _names_nothing(reading.orders):
        points, reason = 10, f"{name} is the only scenario"
    tool, tool_reason = _tool(plan.get("steps", ()), plan.get("base_url", ""), call)
    if not points:
        return Assessment(reading.score + min(tool, TOOL - 5), "", (*reading.reasons, *tool_reason))
    reasons = (*reading.reasons, f"+{points} {reason}", *tool_reason)
    return Assessment(reading.score + tool + points, name, reasons)


def _without_scenario(reading: Reading, call: Called | None) -> Assessment:
    tool, reason = _tool((), "", call)
    return Assessment(reading.score + tool, "", (*reading.reasons, *reason))


def _tool(steps: Sequence[Mapping[str, Any]], base_url: str, call: Called | None) -> tuple[int, tuple[str, ...]]:
    if call is None:
        return 0, ()
    if any(matches(step, call, base_url) for step in steps):
        return TOOL, (f"+{TOOL} {call.tool} is a step of it",)
    return (TOOL - 5, (f"+{TOOL - 5} {call.tool} drives a browser",)) if call.use.known else (0, ())


def _correlation(orders: str, name: str) -> tuple[int, str]:
    words = _WORD.findall(name.lower())
    said = _WORD.findall(orders)
    if not words or not said:
        return 0, ""
    if _contains(said, words) or (not name.isascii() and name.lower() in orders):
        return SCENARIO, f"it names the scenario {name}"
    telling = [word for word in words if not is_flow(word) and word not in ("test", "page", "uat")]
    if telling and all(word in said for word in telling):
        return SCENARIO - 5, f"it names what {name} is about"
    return 0, ""


def _names_nothing(orders: str) -> bool:
    """“Run the UAT with screenshots”: there is only one it can mean. “Run the UAT of the payment” means another."""
    return all(_COMMON.fullmatch(word) for word in re.findall(r"[a-z0-9]+", orders))


def _contains(said: list[str], words: list[str]) -> bool:
    return any(said[n : n + len(words)] == words for n in range(len(said) - len(words) + 1))
