"""Scores whether a prompt orders a user-facing test, by the patterns of `orders.toml`."""

import re
from functools import cache
from typing import NamedTuple

from holdfast.core.data_files import load_data
from holdfast.core.lazy import lazy_pattern

LONGEST_READ = 3_000
MOST_CLAUSES = 60
MOST = 50
FOREIGN = 30
"""An order in another language: with the scenario's name and a call of one of its steps it begins a run."""
TOOL, SCENARIO = 30, 20
LONGEST_NAME = 4
"""Words a flow's name may have."""
_ASKS = "\N{INVERTED QUESTION MARK}"
# "Look" and "through" come before "test" and "run": "run through" would match as "run".
_VERBS = ("look", "through", "test", "run")
# Points for the kind of verb, and more where its object is a flow; a run begins from the settings' threshold.
_BASE = {"test": 30, "run": 20, "through": 15, "look": 15}
_WITH_FLOW = {"test": 15, "run": 25, "through": 10, "look": 10}


class Reading(NamedTuple):
    """What the words alone are worth."""

    score: int
    reasons: tuple[str, ...]
    orders: str
    """The clauses that order something, for the scenario's name to be looked for in."""


NOTHING = Reading(0, (), "")


@cache
def order_pattern(name: str) -> re.Pattern[str]:
    return lazy_pattern("".join(_table()[name]))


@cache
def _table() -> dict[str, list[str]]:
    return load_data(__file__, "orders", dict[str, list[str]])


def read_prompt(prompt: str) -> Reading:
    best, orders = NOTHING, []
    clauses = _split_clauses(prompt)
    seen = any(order_pattern("browser").search(clause) for clause in clauses)
    for clause in clauses:
        clause_reading = _read_order(clause, seen)
        if clause_reading.score:
            orders.append(clause_reading.orders)
        best = max(best, clause_reading, key=lambda reading: reading.score)
    return best._replace(orders=" / ".join(orders))


def is_uat(text: str) -> bool:
    return bool(order_pattern("uat").search(text))


def is_flow(word: str) -> bool:
    return _is_all("flow", word)


def _is_all(name: str, word: str) -> bool:
    return bool(order_pattern(name).fullmatch(word))


def _split_clauses(prompt: str) -> list[str]:
    """Without quoted code and text, which order nothing; a question keeps its mark."""
    text = order_pattern("quoted").sub(" ", prompt[:LONGEST_READ])
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower().replace("?", f" {_ASKS}. ")
    # Spanish opens a question with the mark that ends it here.
    parts = (part.strip(" \t\"'*->").lstrip(f"{_ASKS}¡ ") for part in order_pattern("clause").split(text))
    return [part for part in parts if part][:MOST_CLAUSES]


def _read_order(clause: str, seen: bool) -> Reading:
    """`seen`: somewhere in the prompt there is a browser."""
    polite = order_pattern("polite").match(clause)
    request = clause[polite.end() :] if polite else clause
    kind, verb = next(((name, m[0]) for name in _VERBS if (m := order_pattern(name).match(request))), ("", ""))
    if not kind:
        foreign = _foreign_order(clause)
        return Reading(FOREIGN, (f"+{FOREIGN} “{foreign}”",), clause) if foreign else NOTHING
    # "Can you …?" is an order in the form of a question.
    asks = clause.endswith(_ASKS) and not re.match(r"(?:please|can|could|would|will) ?", clause)
    if asks or order_pattern("not_now").search(clause) or order_pattern("code_tests").search(request):
        return NOTHING
    return _score_order(kind, verb, request, _object_of_order(verb, request[len(verb) :]), seen)


def _foreign_order(clause: str) -> str:
    """The verb of an order in another language to test or run something; empty for anything else."""
    if any(order_pattern(name).search(clause) for name in ("in_english", "not_an_order", "says_i")):
        return ""
    if clause.endswith(_ASKS) and not order_pattern("polite_question").match(clause):
        return ""
    words = order_pattern("foreign_word").findall(clause)
    spoken = next((word for word in words if _is_all("foreign_verb", word)), "")
    match = order_pattern("unspaced").search(clause)
    return spoken or (match.group() if match else "")


def _object_of_order(verb: str, rest: str) -> str:
    """`uat`, `flow`, `browser`, nothing that we know, or `other`: something next to one of them."""
    words = _words(rest)
    asks_uat = is_uat(f"{verb} {rest}")
    flow = next((n for n, word in enumerate(words) if is_flow(word)), None)
    if flow is not None:
        is_other = _is_beside_flow(words[:flow], words[flow + 1 :])
    elif asks_uat:
        is_other = any(_is_all("not_the_uat", word) for word in words)
    else:
        return _browser_or_other(rest)
    return "other" if is_other else "uat" if asks_uat else "flow"


def _browser_or_other(rest: str) -> str:
    browser = order_pattern("browser").search(rest)
    before = _words(rest[: browser.start()] if browser else rest)
    named = [word for word in before if word not in ("in", "with", "the", "a", "using", "by")]
    if any(_is_all("preposition", word) for word in named):
        return "other"
    return "browser" if browser else ""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9][a-z0-9'_-]*", text)


def _is_beside_flow(before: list[str], after: list[str]) -> bool:
    """“The performance of the login flow”, “the login flow logs”: neither is the flow."""
    last = max((n for n, word in enumerate(before) if _is_all("preposition", word)), default=-1)
    if last >= 0 and not _is_around_uat(before[:last]):
        return True
    # “Start implementing the login flow”.
    first = "".join(before[:1]).replace("testing", "")
    if first.endswith("ing") or len(before) - last - 1 > LONGEST_NAME:
        return True
    if not after:
        return False
    if is_uat(" ".join(before)):  # “the UAT scenario checkout”: its name may follow
        return _is_all("not_the_uat", after[0])
    return not (_is_all("goes_on", after[0]) or is_flow(after[0]))


def _is_around_uat(words: list[str]) -> bool:
    return is_uat(" ".join(words)) and all(_is_all("around_uat", word) for word in words)


def _score_order(kind: str, verb: str, request: str, thing: str, seen: bool) -> Reading:
    if thing == "other":
        return NOTHING
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
