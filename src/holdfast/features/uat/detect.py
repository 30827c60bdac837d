"""Is somebody asking for a UAT run? A score with its reasons: 0-50 the words, 0-30 the tool, 0-20 the scenario (O3-b).

Conservative: only an order to do it now counts. A question, a wish for code, a mention or a negation does not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.features.uat.match import Called, is_browser, matches

LONGEST_READ = 3_000
MOST_CLAUSES = 60
WORDS, TOOL, SCENARIO = 50, 30, 20
WORTH_KEEPING = 20
"""A prompt that scores less cannot begin a run with any tool."""

_CLAUSE = re.compile(r"[.;:!?\n]+(?=\s|$)|,?\s+(?:and then|then|and|after that|afterwards|next)\s+|,\s+", re.IGNORECASE)
_QUOTED = re.compile(r"```.*?(?:```|$)|`[^`\n]*`|[\"“](?:[^\s\"“”]+\s+){3,40}[^\s\"“”]*[\"”]", re.DOTALL)
"""Code, and quotations longer than a name."""
_ASKS = "\N{INVERTED QUESTION MARK}"
_POLITE = re.compile(
    r"^(?:(?:please|pls|now|ok|okay|hey|hi|claude|just|also|finally|first|next|then|and|again|great|thanks|so|"
    r"can you|could you|would you|will you|i want you to|i need you to|i'd like you to|i would like you to|"
    r"we need to|we should|you should|let's|lets|let us|go ahead and|time to|try to|be so kind and|kindly|"
    r"your task is to|i want to|i'd like to|go and)[\s,]+){0,6}"
)
_RUN = re.compile(
    r"(?:re-?run|run|execute|perform|start|begin|launch|kick off|carry out|conduct|do|redo|repeat|play|exercise|"
    r"(?:walk|step|click|go|work|run|play) through)\b"
)
_TEST = re.compile(r"(?:re-?test|test|verify|validate|smoke[- ]test|acceptance[- ]test|e2e[- ]test|uat)\b")
_LOOK = re.compile(r"(?:check|try(?: out)?|confirm|make sure|(?:see|test|verify|validate) (?:if|whether|that))\b")
_UAT = re.compile(r"\buats?\b|\buser[- ]acceptance\b|\bacceptance[- ](?:test|scenario|run|check)")
_FLOW = re.compile(r"\b(?:flow|scenario|journey|user story|user stories|happy path|end[- ]to[- ]end|e2e)s?\b")
_BROWSER = re.compile(
    r"\bbrowser\b|\bplaywright\b|\bchrom(?:e|ium)\b|\bfirefox\b|\bthrough the ui\b|\b(?:like|as) a (?:real )?user\b|"
    r"\bscreenshots?\b"
)
_CODE_TESTS = re.compile(
    r"\b(?:unit|integration|regression|load|performance|snapshot|property|mutation|component|contract|flaky|a/b)"
    r"[- ]?test|\b(?:pytest|jest|vitest|mocha|rspec|junit|phpunit|tox|cypress|ctest)\b|"
    r"\b(?:go|cargo|npm|pnpm|yarn|make|gradle|mvn|dotnet|swift|bun|deno|mix|rake)(?: run)? test|"
    r"\btest[- ]suite|\btests/|\w_test\b|\btest_\w|\.(?:spec|test)\.|"
    r"\btest (?:file|case|coverage|data|fixture|helper|runner|name|module)|"
    r"(?<!acceptance )(?<!acceptance-)(?<!uat )\btests\b|\b(?:ci|pipeline|workflow|github actions?)\b|"
    r"\.(?:py|ts|tsx|js|jsx|go|rs|rb|java|md|ya?ml|json)\b|"
    r"\b(?:code|codebase|source|review|curl|api|endpoint|handler|function|class|method|module|query|backend|database)s?\b"
)
_NOT_NOW = re.compile(
    r"\b(?:don'?t|do not|never|without|not yet|later|tomorrow|cancel|abort|skip|instead of|no need|if you|once|when|"
    r"unless|example|e\.g|how to|whether we|could have|should have|would have)\b"
)


_COMMON = re.compile(
    r"the|an?|our|all|this|that|of|for|in|on|with|and|please|now|again|once|more|full|whole|complete|it|uats?|user|"
    r"acceptance|tests?|testing|scenarios?|flow|run|rerun|re|execute|perform|start|begin|launch|kick|off|carry|out|"
    r"conduct|do|redo|repeat|browser|playwright|chrome|chromium|firefox|screenshots?|take"
)


class Reading(NamedTuple):
    """What the words alone are worth."""

    score: int
    reasons: tuple[str, ...]
    orders: str
    """The clauses that order something, for the scenario's name to be looked for in."""


class Assessment(NamedTuple):
    score: int
    scenario: str
    reasons: tuple[str, ...]


NOTHING = Reading(0, (), "")


def read(prompt: str) -> Reading:
    best, orders = NOTHING, []
    for clause in _clauses(prompt):
        found = _order(clause)
        if found.score:
            orders.append(found.orders)
        best = max(best, found, key=lambda reading: reading.score)
    return best._replace(orders=" / ".join(orders))


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
    if not points and len(scenarios) == 1 and _UAT.search(reading.orders) and _names_nothing(reading.orders):
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
    return (TOOL - 5, (f"+{TOOL - 5} {call.tool} drives a browser",)) if is_browser(call.tool) else (0, ())


def _correlation(orders: str, name: str) -> tuple[int, str]:
    words = re.findall(r"[a-z0-9]+", name.lower())
    said = re.findall(r"[a-z0-9]+", orders)
    if not words or not said:
        return 0, ""
    if _contains(said, words):
        return SCENARIO, f"it names the scenario {name}"
    telling = [word for word in words if not _FLOW.fullmatch(word) and word not in ("test", "page", "uat")]
    if telling and all(word in said for word in telling):
        return SCENARIO - 5, f"it names what {name} is about"
    return 0, ""


def _names_nothing(orders: str) -> bool:
    """“Run the UAT with screenshots”: there is only one it can mean. “Run the UAT of the payment” means another."""
    return all(_COMMON.fullmatch(word) for word in re.findall(r"[a-z0-9]+", orders))


def _contains(said: list[str], words: list[str]) -> bool:
    return any(said[n : n + len(words)] == words for n in range(len(said) - len(words) + 1))


def _clauses(prompt: str) -> list[str]:
    """Without quoted code and text, whose orders are not ours; a question keeps its mark."""
    text = _QUOTED.sub(" ", prompt[:LONGEST_READ])
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower().replace("?", f" {_ASKS}. ")
    return [clause for part in _CLAUSE.split(text) if (clause := part.strip(" \t\"'*->"))][:MOST_CLAUSES]


def _order(clause: str) -> Reading:
    polite = _POLITE.match(clause)
    said = clause[polite.end() :] if polite else clause
    asks = clause.endswith(_ASKS) and not re.match(r"(?:please|can|could|would|will) ?", clause)
    verb = next(((name, m) for name, pattern in _VERBS if (m := pattern.match(said))), None)
    if verb is None or asks or _NOT_NOW.search(clause) or _CODE_TESTS.search(said):
        return NOTHING
    name, match = verb
    rest = said[match.end() :]
    return _scored(name, match.group(), said, rest)


_VERBS = (("look", _LOOK), ("test", _TEST), ("run", _RUN))


def _scored(kind: str, verb: str, said: str, rest: str) -> Reading:
    uat, flow, browser = bool(_UAT.search(said)), bool(_FLOW.search(rest)), bool(_BROWSER.search(rest))
    if uat and kind != "look":
        return Reading(WORDS, (f"+{WORDS} it orders UAT (“{verb}”)",), said)
    base = {"test": 30, "run": 20, "look": 15}[kind]
    points, reasons = base, [f"+{base} “{verb}”"]
    if flow or uat:
        points += {"look": 10, "test": 15, "run": 25}[kind]
        reasons.append(f"+{points - base} a flow or scenario")
    if browser:
        points += 15
        reasons.append("+15 in a browser")
    if points == base and kind != "test":
        return NOTHING._replace(orders=said)
    return Reading(min(points, WORDS), tuple(reasons), said)
