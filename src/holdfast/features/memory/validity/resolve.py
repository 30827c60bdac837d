"""Statements over days → those that hold at the end. Pure."""

import re
from collections.abc import Callable, Sequence
from datetime import date

import msgspec

from holdfast.features.memory.validity.expiry import end_of
from holdfast.features.memory.validity.parse import Parsed, parse_statement
from holdfast.features.memory.validity.relations import choose_replaced, lasting_chance, lifts_end, replacement_strength
from holdfast.statements.cues import QUESTION_START, find_cues

USER = "user"
# Least probability that a statement lasts: a plain one, one that wonders aloud, one that reports a fault.
NEVER_LASTING, DOUBTFUL, REPORTED = 0.15, 0.4, 0.97
# With the full-width question mark of Chinese and Japanese.
_QUESTION = re.compile(r"[?？]\s*$")
_WONDERING = re.compile(
    (
        r"\b(?:maybe|perhaps|might|would|could|wonder|not sure|some day|one day|worth another look|vielleicht|"
        r"quizás?|tal vez|peut-être|talvez|может)\b|也许|かも"
    ),
    re.IGNORECASE,
)
_REPORT = re.compile(
    (
        r"\b(?:please check|can you (?:check|look)|(?:have|take) a look|for some reason|"
        r"look (?:at|into) it|please look|(?:fix|check|mend) (?:it|this|"
        r"that|these|those)|looks? wrong|can you fix|no idea why|"
        r"schau mal|revísalo|regarde|посмотри)\b|看一下|调べて"
    ),
    re.IGNORECASE,
)
_PAST = re.compile(
    (
        r"\b(?:last year|last month|years? ago|used to|back then|früher|damals|el año pasado|l'année dernière|в "
        r"прошлом году|once had)\b|去年|昔|\bin (?:19|20)\d\d\b.{0,40}\b(?:was|were|had|used)\b"
    ),
    re.IGNORECASE,
)
_INCIDENT = re.compile(
    r"\b(?:was|were|went|got|had|crashed|failed|broke|hung|timed out|war|waren|estuvo|était|esteve|был[аои]?)\b.{0,40}"
    r"\b(?:yesterday|last night|this morning|gestern|heute früh|ayer|anoche|hier|ontem|вчера)\b|(?:昨天|昨日|昨晚)",
    re.IGNORECASE,
)
"""Something happened once; unless it is a decision that was taken then."""
_ONCE = re.compile(
    r"\b(?:once now|just this once|this (?:one )?time|once, now|for this (?:one|change|run|test|time))\b", re.IGNORECASE
)


class Statement(msgspec.Struct, frozen=True):
    """`at`: a day, ISO; `by`: "user" or "agent"."""

    at: str
    by: str
    text: str


Judge = Callable[[Parsed, Parsed], float]
"""(newer, older) → how surely the newer makes the older void, as `relations.replacement_strength` says it."""


def valid_statements(statements: Sequence[Statement], asked_at: str, judge: Judge = replacement_strength) -> list[int]:
    """The agent's words never hold by themselves and supersede nothing."""
    ended = superseded_by(statements, judge)
    today = parse_date(asked_at)
    return [
        n for n, one in enumerate(statements)
        if one.by == USER and n not in ended and _is_lasting(one.text) and not _is_over(one, today)
    ]  # fmt: skip


def superseded_by(statements: Sequence[Statement], judge: Judge = replacement_strength) -> dict[int, int]:
    """Older → the newer one that made it void; in the order they were said."""
    parsed = {
        n: parse_statement(one.text) for n, one in enumerate(statements) if one.by == USER and _may_be_news(one.text)
    }
    lasting = {n for n in parsed if _is_lasting(statements[n].text)}
    ended: dict[int, int] = {}
    for newer, newer_parsed in parsed.items():
        # What is void already is not replaced again: each statement ends once, by the first that ended it.
        older = [n for n in sorted(lasting - set(ended)) if n < newer]
        # News ("the audit is through") outlasts nothing itself, but brings the end that an older rule named.
        if newer in lasting and _may_replace(statements[newer]):
            gone = choose_replaced({n: judge(newer_parsed, parsed[n]) for n in older})
        else:
            gone = [n for n in older if lifts_end(newer_parsed, parsed[n])]
        ended.update(dict.fromkeys(gone, newer))
    return ended


def _may_replace(newer: Statement) -> bool:
    """What was said for a while only takes nothing back for good."""
    # An unreadable day must not stop the check; which day it is does not matter for "is there an end".
    until = end_of(newer.text, parse_date(newer.at) or date.min)
    return until is None


_ELSEWHERE = re.compile(
    r"\b(?:in|at) (?:the|my|your|their|our) (?:\w+ )?(?:office|team|company|job|firm|repo|"
    r"project)\b.{0,20}\b(?:they|people|everybody|we had)\b|^(?:a|my|some) (?:\w+ )?(?:friend|mate|brother|sister|neighbour)\b",
    re.IGNORECASE,
)
"""How others do it."""
_WISH_OF_OTHERS = re.compile(
    r"\b(?:a|one|some|the|our|my|another) (?:\w+ )?(?:customers?|clients?|users?|colleagues?|reviewers?|boss|people|vendor|someone) "
    r"(?:asked|asks|wants?|would like|requested|complain\w*|wished|says?|said|thinks?)\b",
    re.IGNORECASE,
)


def _may_be_news(text: str) -> bool:
    """Said of here and of now: no question, no memory, nothing that is done just once."""
    # People leave out the question mark, so the first word is looked at as well.
    is_question = _QUESTION.search(text) or QUESTION_START.match(text)
    others = (_PAST, _ONCE, _ELSEWHERE, _WISH_OF_OTHERS)
    return not is_question and not any(pattern.search(text) for pattern in others)


def _is_said(text: str) -> bool:
    """News that is more than an incident: "the server was down yesterday" says nothing about today."""
    if not _may_be_news(text):
        return False
    # "yesterday we decided …" is past tense too, but what was decided still holds.
    return not _INCIDENT.search(text) or bool(find_cues(text) & {"we_decide", "we_move", "from_now", "deontic"})


def _is_lasting(text: str) -> bool:
    if not _is_said(text):
        return False
    least = REPORTED if _REPORT.search(text) else DOUBTFUL if _WONDERING.search(text) else NEVER_LASTING
    return lasting_chance(text) >= least


def _is_over(one: Statement, today: date | None) -> bool:
    stated_on = parse_date(one.at)
    until = end_of(one.text, stated_on) if stated_on else None
    # The named day itself still counts.
    return until is not None and today is not None and today > until


def parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
