"""Scores whether a prompt asks for a user-facing test."""

import re
from typing import NamedTuple

from holdfast.core.lazy import lazy_pattern
from holdfast.features.uat.state.foreign_orders import is_order

LONGEST_READ = 3_000
MOST_CLAUSES = 60
MOST = 50
FOREIGN = 30
"""An order in another language: with the scenario's name and a call of one of its steps it begins a run."""
LONGEST_NAME = 4
"""Words a flow's name may have."""

# Ends of sentences, and words such as "and then" between two orders.
_CLAUSE = lazy_pattern(
    r"[.;:!?\n]+(?=\s|$)|,?\s+(?:and then|then|and|after that|afterwards|next)\s+|,\s+", re.IGNORECASE
)
_QUOTED = lazy_pattern(r"```.*?(?:```|$)|`[^`\n]*`|[\"“](?:[^\s\"“”]+\s+){3,40}[^\s\"“”]*[\"”]", re.DOTALL)
"""Code, and quotations longer than a name."""
_ASKS = "\N{INVERTED QUESTION MARK}"
_POLITE = lazy_pattern(
    r"^(?:(?:please|pls|now|ok|okay|hey|hi|claude|just|also|finally|first|next|then|and|again|great|thanks|so|"
    r"can you|could you|would you|will you|i want you to|i need you to|i'd like you to|i would like you to|"
    r"we need to|we should|you should|let's|lets|let us|go ahead and|time to|try to|be so kind and|kindly|"
    r"your task is to|i want to|i'd like to|go and)[\s,]+){0,6}"
)
_RUN = lazy_pattern(
    r"(?:(?:click|play) through|re-?run|run|execute|perform|start|begin|launch|kick off|carry out|conduct|do|redo|"
    r"repeat|play|exercise)\b"
)
_THROUGH = lazy_pattern(r"(?:walk|step|go|work|run) through\b")
_TEST = lazy_pattern(r"(?:re-?test|test|verify|validate|smoke[- ]test|acceptance[- ]test|e2e[- ]test|uat)\b")
_LOOK = lazy_pattern(r"(?:check|try(?: out)?|confirm|make sure|(?:see|test|verify|validate) (?:if|whether|that))\b")
_UAT = lazy_pattern(r"\buats?\b|\buser[- ]acceptance\b|\bacceptance[- ](?:test|scenario|run|check)")
_AROUND_UAT = lazy_pattern(
    r"the|an?|our|this|that|whole|full|uats?|user|user-acceptance|acceptance|tests?|testing|scenarios?|runs?"
)
_NOT_THE_UAT = lazy_pattern(
    r"env|environment|server|db|migrations?|seed|setup|docs?|documentation|plan|planning|reports?|deployment|branch|"
    r"config|configuration|data|scripts?|build|release|checklist|template|package|folder|files?|system|instance|url|team"
)
_PREPOSITION = lazy_pattern(r"of|for|on|about|from|with|in|into|to|at|by")
_GOES_ON = lazy_pattern(
    r"with|in|on|as|like|again|now|please|using|through|via|by|at|works?|still|twice|too|once|end|to|step|is|"
    r"carefully|thoroughly|fully|manually|properly|first|today|uats?|tests?|testing|scenarios?|flows?"
)
"""What may follow the name of a flow that is itself the object."""
_FLOW = lazy_pattern(r"(?:[a-z0-9]+[-_])*(?:flow|scenario|journey|story|stories|path|end-to-end|e2e)s?")
_BROWSER = lazy_pattern(
    r"\bbrowser\b|\bplaywright\b|\bchrom(?:e|ium)\b|\bfirefox\b|\bthrough the ui\b|\b(?:like|as) a (?:real )?user\b|"
    r"\bscreenshots?\b"
)
_CODE_TESTS = lazy_pattern(
    r"\b(?:unit|integration|regression|load|performance|snapshot|property|mutation|component|contract|flaky|a/b)"
    r"[- ]?test|\b(?:pytest|jest|vitest|mocha|rspec|junit|phpunit|tox|cypress|ctest)\b|"
    r"\b(?:go|cargo|npm|pnpm|yarn|make|gradle|mvn|dotnet|swift|bun|deno|mix|rake)(?: run)? test|"
    r"\btest[- ]suite|\btests/|\w_test\b|\btest_\w|\.(?:spec|test)\.|"
    r"\btest (?:file|case|coverage|data|fixture|helper|runner|name|module)|"
    r"(?<!acceptance )(?<!acceptance-)(?<!uat )\btests\b|\b(?:ci|pipeline|workflow|github actions?)\b|"
    r"\.(?:py|ts|tsx|js|jsx|go|rs|rb|java|md|ya?ml|json)\b|"
    r"\b(?:code|codebase|source|review|curl|api|endpoint|handler|function|class|method|module|query|backend|database)s?\b"
)
_NOT_NOW = lazy_pattern(
    r"\b(?:don'?t|do not|never|without|not yet|later|tomorrow|cancel|abort|skip|instead of|no need|if you|when|"
    r"once(?! more| again)|unless|example|e\.g|how to|whether we|could have|should have|would have)\b"
)


class Reading(NamedTuple):
    """What the words alone are worth."""

    score: int
    reasons: tuple[str, ...]
    orders: str
    """The clauses that order something, for the scenario's name to be looked for in."""


NOTHING = Reading(0, (), "")
# "Look" and "through" come before "test" and "run": "run through" would match as "run".
_VERBS = (("look", _LOOK), ("through", _THROUGH), ("test", _TEST), ("run", _RUN))
# Points for the kind of verb, and more where its object is a flow; a run begins from the settings' threshold.
_BASE = {"test": 30, "run": 20, "through": 15, "look": 15}
_WITH_FLOW = {"test": 15, "run": 25, "through": 10, "look": 10}


def read_prompt(prompt: str) -> Reading:
    best, orders = NOTHING, []
    clauses = _split_clauses(prompt)
    seen = any(_BROWSER.search(clause) for clause in clauses)
    for clause in clauses:
        clause_reading = _read_order(clause, seen)
        if clause_reading.score:
            orders.append(clause_reading.orders)
        best = max(best, clause_reading, key=lambda reading: reading.score)
    return best._replace(orders=" / ".join(orders))


def is_uat(text: str) -> bool:
    return bool(_UAT.search(text))


def is_flow(word: str) -> bool:
    return bool(_FLOW.fullmatch(word))


def split_prompt_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9][a-z0-9'_-]*", text)


def _split_clauses(prompt: str) -> list[str]:
    """Without quoted code and text, whose orders are not ours; a question keeps its mark."""
    text = _QUOTED.sub(" ", prompt[:LONGEST_READ])
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower().replace("?", f" {_ASKS}. ")
    # Spanish opens a question with the mark that stands for its end here.
    parts = (part.strip(" \t\"'*->").lstrip(f"{_ASKS}¡ ") for part in _CLAUSE.split(text))
    return [part for part in parts if part][:MOST_CLAUSES]


def _read_order(clause: str, seen: bool) -> Reading:
    """`seen`: somewhere in the prompt there is a browser."""
    polite = _POLITE.match(clause)
    request = clause[polite.end() :] if polite else clause
    # "Can you …?" is an order in the form of a question.
    asks = clause.endswith(_ASKS) and not re.match(r"(?:please|can|could|would|will) ?", clause)
    verb = next(((name, m) for name, pattern in _VERBS if (m := pattern.match(request))), None)
    if verb is None and (foreign := is_order(clause, asks=clause.endswith(_ASKS))):
        return Reading(FOREIGN, (f"+{FOREIGN} “{foreign}”",), clause)
    if verb is None or asks or _NOT_NOW.search(clause) or _CODE_TESTS.search(request):
        return NOTHING
    kind, match = verb
    thing = _object_of_order(match.group(), request[match.end() :])
    return NOTHING if thing == "other" else _score_order(kind, match.group(), request, thing, seen)


def _object_of_order(verb: str, rest: str) -> str:
    """`uat`, `flow`, `browser`, nothing that we know, or `other`: something that only stands beside one of them."""
    rest_words = split_prompt_words(rest)
    flow = next((n for n, word in enumerate(rest_words) if is_flow(word)), None)
    if flow is not None:
        return (
            "other"
            if _is_beside_flow(rest_words[:flow], rest_words[flow + 1 :])
            else "uat"
            if is_uat(f"{verb} {rest}")
            else "flow"
        )
    if is_uat(f"{verb} {rest}"):
        return "other" if any(_NOT_THE_UAT.fullmatch(word) for word in rest_words) else "uat"
    looked = _BROWSER.search(rest)
    before = split_prompt_words(rest[: looked.start()]) if looked else rest_words
    named = [word for word in before if word not in ("in", "with", "the", "a", "using", "by")]
    return "other" if any(_PREPOSITION.fullmatch(word) for word in named) else "browser" if looked else ""


def _is_beside_flow(before: list[str], after: list[str]) -> bool:
    """“The performance of the login flow”, “the login flow logs”: neither is the flow."""
    last = max((n for n, word in enumerate(before) if _PREPOSITION.fullmatch(word)), default=-1)
    head, name = before[: max(last, 0)], before[last + 1 :]
    if last >= 0 and not (is_uat(" ".join(head)) and all(_AROUND_UAT.fullmatch(word) for word in head)):
        return True
    if before and before[0].endswith("ing") and before[0] != "testing":  # “start implementing the login flow”
        return True
    if len(name) > LONGEST_NAME or not after:
        return len(name) > LONGEST_NAME
    if is_uat(" ".join(before)):  # “the UAT scenario checkout”: its name may stand behind
        return bool(_NOT_THE_UAT.fullmatch(after[0]))
    return not (_GOES_ON.fullmatch(after[0]) or is_flow(after[0]))


def _score_order(kind: str, verb: str, request: str, thing: str, seen: bool) -> Reading:
    if thing == "uat" and kind in ("test", "run"):
        return Reading(MOST, (f"+{MOST} it orders UAT (“{verb}”)",), request)
    points, reasons = _BASE[kind], [f"+{_BASE[kind]} “{verb}”"]
    if thing in ("flow", "uat"):
        points += _WITH_FLOW[kind]
        reasons.append(f"+{_WITH_FLOW[kind]} a flow or scenario")
    if thing == "browser" or (thing and seen):
        points += 15
        reasons.append("+15 in a browser")
    # Only the word "test" counts without an object that we know.
    if points == _BASE[kind] and kind != "test":
        return NOTHING
    return Reading(min(points, MOST), tuple(reasons), request)


TOOL, SCENARIO = 30, 20
