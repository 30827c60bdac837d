"""When a statement ends by itself: "for today", "this week", "until march 20", "for a week"."""

import re
from datetime import date, timedelta

_MONTH_NAMES = (
    "january jan januar enero janvier", "february feb februar febrero février", "march mar märz marzo mars",
    "april apr abril avril", "may mai mayo", "june jun juni junio juin", "july jul juli julio juillet",
    "august aug agosto août", "september sep sept septiembre septembre", "october oct oktober octubre octobre",
    "november nov noviembre novembre", "december dec dezember diciembre décembre",
)  # fmt: skip
_WEEKDAY_NAMES = (
    "monday montag lunes lundi", "tuesday dienstag martes mardi", "wednesday mittwoch miércoles mercredi",
    "thursday donnerstag jueves jeudi", "friday freitag viernes vendredi", "saturday samstag sábado samedi",
    "sunday sonntag domingo dimanche",
)  # fmt: skip
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
# "by march 20" counts as an end, too, although it may also name a deadline.
_UNTIL = r"(?:until|till|by|bis(?: zum)?|hasta(?: el)?|jusqu'(?:au|à)|até)"
# Groups 1 and 2: "20th of march"; groups 3 and 4: "march 20".
_UNTIL_DATE = re.compile(
    rf"\b{_UNTIL} (?:the )?(?:(\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of| de)? ([a-zäéû]+)|([a-zäéû]+) (\d{{1,2}})(?:st|nd|rd|th)?)\b",
    re.IGNORECASE,
)
_UNTIL_ISO = re.compile(rf"\b{_UNTIL} (\d{{4}})-(\d\d)-(\d\d)\b", re.IGNORECASE)
_UNTIL_WEEKDAY = re.compile(rf"\b{_UNTIL} (?:next )?([a-zäéû]+)\b", re.IGNORECASE)
_UNTIL_MONTH = re.compile(rf"\b{_UNTIL} (?:the end of |end of |ende )?([a-zäéû]+)\b(?! \d)", re.IGNORECASE)
_DAY = re.compile(
    (
        r"\b(?:for today|today|tonight|right now|for now|at the moment|this (?:morning|afternoon|evening)|heute|oggi|vandaag|dzisiaj|"
        r"hoy|aujourd'hui|hoje|сегодня|until tomorrow)\b|今天|今日"
    ),
    re.IGNORECASE,
)
_TOMORROW = re.compile(r"\b(?:tomorrow|morgen|mañana|demain|amanhã|завтра)\b", re.IGNORECASE)
_WEEK = re.compile(
    (
        r"\b(?:this (?:week|sprint|weekend)|diese woche|die nächsten tage|esta semana|cette semaine|на этой неделе|"
        r"(?:for )?the next few days|for a "
        r"few days)\b|这周|今週"
    ),
    re.IGNORECASE,
)
# "for two weeks", "over the next month"; "once in a day" and its like are rates, hence the lookbehinds.
_SPAN = re.compile(
    r"\b(?:for|over|during|in) (?:the )?(?:next |coming )?(?:a |an |one |(\d+|two|three|four|five|six) )?(day|week|fortnight|month)s?\b"
    r"(?<!\bin a day)(?<!\bin a week)(?<!\bin a month)",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"\b(?:kept|keeps?|retained|stored|saved|held|archived|valid|lives?|lasts?|stays?|cached|remembered|good|"
    r"open) (?:\w+ ){0,2}(?:for|in)\b",
    re.IGNORECASE,
)
"""How long something is kept is no end of the rule that says so."""
_MONTH = re.compile(r"\b(?:this month|diesen monat|este mes|ce mois)\b", re.IGNORECASE)
# These give a beginning, so a date or "today" beside them is not an end.
_LASTING_FROM = re.compile(
    r"\b(?:(?:from|since) (?:this|today|now|tomorrow|yesterday)|seit (?:heute|gestern|dieser)|"
    r"depuis|ab (?:heute|jetzt|sofort)|a partir de|desde|à partir|starting)\b|以后",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    (
        r"\b(?:took|moved|switched|decided|released|merged|replaced|went|got|is (?:out|gone|live|over)|are (?:out|"
        r"gone|live))\b"
    ),
    re.IGNORECASE,
)
"""With these words "today" is the day of a change, not its end."""
_COUNT = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS = {"day": 1, "week": 7, "fortnight": 14, "month": 31}


def end_of(text: str, stated_on: date) -> date | None:
    """The last day on which it holds; none where it names no end."""
    if _LASTING_FROM.search(text):
        return None
    return _dated_end(text, stated_on) or _near_end(text, stated_on)


def _dated_end(text: str, stated_on: date) -> date | None:
    if match := _UNTIL_ISO.search(text):
        return _date_or_none(int(match[1]), int(match[2]), int(match[3]))
    if match := _UNTIL_DATE.search(text):
        month = _MONTHS.get((match[2] or match[3]).lower())
        if month:
            return _next_date(stated_on, month, int(match[1] or match[4]))
    if (match := _UNTIL_WEEKDAY.search(text)) and (weekday := _WEEKDAYS.get(match[1].lower())) is not None:
        # Said on a friday, "until friday" means the next one: `or 7`.
        return stated_on + timedelta(days=(weekday - stated_on.weekday()) % 7 or 7)
    if (match := _UNTIL_MONTH.search(text)) and (month := _MONTHS.get(match[1].lower())):
        # The 28th exists in every month, so no calendar is needed.
        return _next_date(stated_on, month, 28)
    return None


def _near_end(text: str, stated_on: date) -> date | None:
    # A counted span comes before the vague words below: both may stand in one sentence.
    if (match := _SPAN.search(text)) and not _LENGTH.search(text):
        return stated_on + timedelta(
            days=_DAYS[match[2].lower()] * int(_COUNT.get((match[1] or "1").lower(), match[1] or 1))
        )
    if _WEEK.search(text):
        # Weeks end on sunday.
        return stated_on + timedelta(days=6 - stated_on.weekday())
    if _MONTH.search(text):
        return stated_on + timedelta(days=31 - stated_on.day)
    if _DAY.search(text) and not _HAPPENED.search(text):
        return stated_on
    return stated_on + timedelta(days=1) if _TOMORROW.search(text) else None


def _next_date(stated_on: date, month: int, day: int) -> date | None:
    here = _date_or_none(stated_on.year, month, day)
    # A date that lies before the day it was said is meant for next year.
    return here if here is None or here >= stated_on else _date_or_none(stated_on.year + 1, month, day)


def _date_or_none(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
