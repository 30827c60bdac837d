"""Is somebody asking for a UAT run?"""

# A score with reasons: 0-50 the words, 0-30 the tool, 0-20 the scenario (O3-b).

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.features.uat.state.order_words import SCENARIO, TOOL, Reading, is_flow, is_uat, order_pattern, read_prompt
from holdfast.features.uat.state.step_match import Called, matches_step

WORTH_KEEPING = 20
"""A prompt that scores less cannot begin a run with any tool."""


class Assessment(NamedTuple):
    score: int
    scenario: str
    reasons: tuple[str, ...]


def assess_prompt(prompt: str, scenarios: Mapping[str, Plan], call: Called | None = None) -> Assessment:
    """The best scenario for a prompt and, if one is about to run, a tool call."""
    reading = read_prompt(prompt)
    if reading.score < WORTH_KEEPING:
        return Assessment(reading.score, "", reading.reasons)
    tool, tool_reason = _score_tool_call((), "", call)
    nameless = Assessment(reading.score + tool, "", (*reading.reasons, *tool_reason))
    offers = [_assess_scenario(reading, name, plan, scenarios, call) for name, plan in scenarios.items()]
    return max(offers, key=lambda offer: offer.score, default=nameless)


def named_scenarios(prompt: str, scenarios: Iterable[str]) -> list[str]:
    """Scenarios whose whole name is in the prompt's orders."""
    orders = read_prompt(prompt).orders
    return [name for name in scenarios if _correlate_name(orders, name)[0] == SCENARIO]


def _assess_scenario(
    reading: Reading, name: str, plan: Plan, scenarios: Mapping[str, Plan], call: Called | None
) -> Assessment:
    points, reason = _correlate_name(reading.orders, name)
    if not points and len(scenarios) == 1 and is_uat(reading.orders) and _names_nothing(reading.orders):
        points, reason = 10, f"{name} is the only scenario"
    tool, tool_reason = _score_tool_call(plan.steps, plan.base_url, call)
    if not points:
        # Without a scenario the tool's points stay below those of a call that is a step of one.
        return Assessment(reading.score + min(tool, TOOL - 5), "", (*reading.reasons, *tool_reason))
    reasons = (*reading.reasons, f"+{points} {reason}", *tool_reason)
    return Assessment(reading.score + tool + points, name, reasons)


def _score_tool_call(steps: Sequence[PlannedStep], base_url: str, call: Called | None) -> tuple[int, tuple[str, ...]]:
    if call is None:
        return 0, ()
    if any(matches_step(step, call, base_url) for step in steps):
        return TOOL, (f"+{TOOL} {call.tool} is a step of it",)
    return (TOOL - 5, (f"+{TOOL - 5} {call.tool} drives a browser",)) if call.use.is_known else (0, ())


def _correlate_name(orders: str, name: str) -> tuple[int, str]:
    words, order_words = (order_pattern("word").findall(text) for text in (name.lower(), orders))
    # Names in scripts without spaces are searched for as they are.
    is_named = f" {' '.join(words)} " in f" {' '.join(order_words)} "
    if words and (is_named or (not name.isascii() and name.lower() in orders)):
        return SCENARIO, f"it names the scenario {name}"
    telling = {word for word in words if not is_flow(word)} - {"test", "page", "uat"}
    if telling and telling <= set(order_words):
        return SCENARIO - 5, f"it names what {name} is about"
    return 0, ""


def _names_nothing(orders: str) -> bool:
    """“Run the UAT with screenshots”: there is only one it can mean. “Run the UAT of the payment” means another."""
    return all(order_pattern("common").fullmatch(word) for word in re.findall(r"[a-z0-9]+", orders))
