"""Decides which of a person's statements still hold: a newer one replaces an older one on the same subject, and some
name their end."""

import re
from collections.abc import Sequence
from datetime import date, timedelta

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.features.memory.state.words import stem_word

USER = "user"
SAME_SUBJECT = 0.7
"""Share of the shorter statement's words that both must have, at least two."""
_WORD = lazy_pattern(r"[^\W_]+(?:[-_./+][^\W_]+)*")
_FILLER = frozenset(
    "a an the to of in on at for with by from as is are be was were it its this that these those and or not no "
    "never always must should only do does don't we i you our my your their here there all any every each now "
    "please use used using longer anymore instead will has have".split()
)
_TAKES_BACK = lazy_pattern(
    r"\b(?:no longer|not any ?more|anymore|instead of|replaces|replaced|dropped|stop(?:ped)? using|switched|"
    r"moved (?:from|off|to)|forget (?:the|that|about))\b",
    re.IGNORECASE,
)


class Statement(msgspec.Struct, frozen=True):
    """`at`: an ISO day; `by`: "user" or "agent"."""

    at: str
    by: str
    text: str


def valid_statements(statements: Sequence[Statement], asked_at: str) -> list[int]:
    """Positions of those that hold; an agent's words never do."""
    said = [n for n, one in enumerate(statements) if one.by == USER and not one.text.rstrip().endswith(("?", "？"))]
    replaced = {
        old
        for place, old in enumerate(said)
        if any(replaces(statements[new].text, statements[old].text) for new in said[place + 1 :])
    }
    return [n for n in said if n not in replaced and not _is_over(statements[n], asked_at)]


def replaces(newer: str, older: str) -> bool:
    """Same subject, different claim. Repetition replaces nothing."""
    new, old = subject_words(newer), subject_words(older)
    shared = new & old
    if not shared or newer.strip().lower() == older.strip().lower():
        return False
    if _TAKES_BACK.search(newer) and len(shared) >= min(2, len(old)):
        return True
    return len(shared) >= max(2, SAME_SUBJECT * min(len(new), len(old)))


def subject_words(text: str) -> frozenset[str]:
    words = (word for word in _WORD.findall(text.lower()) if word not in _FILLER)
    return frozenset(stem_word(word) if word.isalpha() else word for word in words)


_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep", "october oct", "november nov", "december dec"), 1)
    for name in names.split()
}  # fmt: skip
_WEEKDAYS = {name: n for n, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())}
_UNTIL = lazy_pattern(
    r"\b(?:until|till|through) (?:the )?(?:end of )?(?:(?P<iso>\d{4}-\d\d-\d\d)|(?P<month>[a-z]+) (?P<day>\d{1,2})\b|(?P<name>[a-z]+))",
    re.IGNORECASE,
)
_SPAN = lazy_pattern(r"\bfor the next (?P<n>\d+|two|three|four)? ?(?P<unit>day|week|month)s?\b", re.IGNORECASE)
_NEAR = lazy_pattern(r"\b(?P<day>for today|today only|tonight)\b|\b(?P<week>this (?:week|sprint))\b", re.IGNORECASE)
_DAYS = {"day": 1, "week": 7, "month": 31}
_NUMBERS = {"two": 2, "three": 3, "four": 4}


def end_of(text: str, stated_on: date) -> date | None:
    """The last day on which the statement holds; None if it names no end."""
    if match := _UNTIL.search(text):
        return _named_day(match, stated_on)
    if match := _SPAN.search(text):
        count = match["n"] or "1"
        return stated_on + timedelta(days=_DAYS[match["unit"].lower()] * (_NUMBERS.get(count.lower()) or int(count)))
    if match := _NEAR.search(text):
        return stated_on if match["day"] else _end_of_week(stated_on)
    return None


def _named_day(match: re.Match[str], stated_on: date) -> date | None:
    try:
        if match["iso"]:
            return date.fromisoformat(match["iso"])
        name = (match["month"] or match["name"]).lower()
        if name in _WEEKDAYS:
            return stated_on + timedelta(days=(_WEEKDAYS[name] - stated_on.weekday()) % 7 or 7)
        if name in ("week", "sprint"):
            return _end_of_week(stated_on)
        return _day_of_month(_MONTHS[name], int(match["day"] or 0), stated_on) if name in _MONTHS else None
    except ValueError:
        return None


def _day_of_month(month: int, day: int, stated_on: date) -> date:
    """The next such day. A month alone ends the day before it begins."""
    named = date(stated_on.year, month, day or 1) - timedelta(days=not day)
    return named if named >= stated_on else date(stated_on.year + 1, month, day or 1) - timedelta(days=not day)


def _end_of_week(day: date) -> date:
    return day + timedelta(days=6 - day.weekday())


def _is_over(one: Statement, asked_at: str) -> bool:
    stated_on, today = parse_date(one.at), parse_date(asked_at)
    end = end_of(one.text, stated_on) if stated_on else None
    return end is not None and today is not None and today > end


def parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
