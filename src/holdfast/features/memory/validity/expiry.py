"""When a statement ends by itself: "for today", "this week", "until march 20", "until April", "for the next two weeks"."""

import re
from calendar import monthrange
from datetime import date, timedelta

_MONTH_NAMES = (
    "january jan januar enero janvier janeiro января", "february feb februar febrero février fevereiro февраля",
    "march mar märz marzo mars março марта", "april apr abril avril апреля", "may mai mayo maio мая",
    "june jun juni junio juin junho июня", "july jul juli julio juillet julho июля",
    "august aug agosto août августа", "september sep sept septiembre septembre setembro сентября",
    "october oct oktober octubre octobre outubro октября", "november nov noviembre novembre novembro ноября",
    "december dec dezember diciembre décembre dezembro декабря",
)  # fmt: skip
_WEEKDAY_NAMES = (
    "monday montag lunes lundi segunda понедельника", "tuesday dienstag martes mardi terça вторника",
    "wednesday mittwoch miércoles mercredi quarta среды", "thursday donnerstag jueves jeudi quinta четверга",
    "friday freitag viernes vendredi sexta пятницы", "saturday samstag sonnabend sábado samedi субботы",
    "sunday sonntag domingo dimanche воскресенья",
)  # fmt: skip
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
# Chinese and Japanese count their months and name their weekdays by number.
_NUMERALS = {numeral: number for number, numeral in enumerate("一二三四五六七八九十", 1)} | {"十一": 11, "十二": 12}
_CJK_WEEKDAYS = {
    name: number % 7 for names in ("一二三四五六日", "月火水木金土日") for number, name in enumerate(names)
}
_CJK_WEEKDAYS["天"] = 6
# "by friday" is an end where something is back or over by then ("the mirror is back by friday"); else it is a deadline, which
# comes round again with every invoice.
_UNTIL = (
    r"(?:until|till|til|^by|(?:back|ready|done|here|over|fixed|up|live|gone|goes|finished|through|available|replaced|migrated|off|out) by|"
    r"bis(?: zum)?|hasta(?: el| la)?|jusqu['’](?:au|à|en)(?: la| le)?|até(?: o| a)?|до|fino a)(?: the)?"
)
_END = r"(?:end of|ende|fines de|finales de|final de|fim de|fin(?: de)?|la fin (?:de |d['’])?|конца)"
_WORD = r"([^\W\d_]+)"
# Groups: "20th of march", or "march 20"; then a year.
_UNTIL_DATE = re.compile(
    rf"\b{_UNTIL} (?:(\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of| de)? {_WORD}|{_WORD} (\d{{1,2}})(?:st|nd|rd|th)?)\b(?:,? (\d{{4}}))?",
    re.IGNORECASE,
)
_UNTIL_NUMBERS = re.compile(
    rf"\b{_UNTIL} (?:(\d{{4}})-(\d\d)-(\d\d)\b|(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})?)", re.IGNORECASE
)
_UNTIL_DAY = re.compile(rf"\b{_UNTIL} (\d{{1,2}})(?:st|nd|rd|th|-?го)\b", re.IGNORECASE)
# The end of it, its word, and a year: "until April", "till the end of March 2027", "bis Ende März", "until friday".
_UNTIL_NAMED = re.compile(
    rf"\b{_UNTIL} (?:next |this |nächsten |kommenden |próximo )?({_END} )?(?:the )?{_WORD}\b(?: (\d{{4}}))?(?! \d)",
    re.IGNORECASE,
)
_UNTIL_YEAR = re.compile(rf"\b{_UNTIL} (20\d\d)\b(?!-)", re.IGNORECASE)
_UNTIL_CJK = re.compile(
    r"([一二三四五六七八九十\d]{1,2})月(末|底)?(?:まで|为止|之?前)|(?:到|直到)([一二三四五六七八九十\d]{1,2})月(末|底)?"
)
_UNTIL_CJK_DAY = re.compile(r"(?:到|直到)?(?:周|星期)([一二三四五六日天])(?:为止|之?前)|([月火水木金土日])曜日?まで")
# "until the end of the week", "bis Monatsende", "until next month": what is named is the stretch that runs now.
_UNTIL_STRETCH = {
    "week": re.compile(
        rf"\b{_UNTIL} (?:{_END} (?:the |der |la |de la |da |this )?)?(?:next week|the weekend|week(?:end)?\b|woche\b|wochenende|"
        r"nächste woche|semana|semaine|недели)", re.IGNORECASE,
    ),
    "month": re.compile(
        rf"\b{_UNTIL} (?:{_END} (?:the |this |des |del |du |do )?)?(?:next month|month\b|monats?(?:ende)?\b|nächsten monat|mes\b|mês\b|"
        r"mois\b|месяца)", re.IGNORECASE,
    ),
    "year": re.compile(
        rf"\b{_UNTIL} (?:{_END} (?:the |this |des |del |de l['’]|do )?)?(?:next year|year\b|jahres?(?:ende)?\b|nächstes jahr|año\b|"
        r"année\b|ano\b|года)", re.IGNORECASE,
    ),
}  # fmt: skip
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
        r"few days)\b|这周|本周|今週"
    ),
    re.IGNORECASE,
)
_COUNTS = (
    "one ein eine einen un une una uno um uma один одну 一", "two zwei dos deux dois duas две два couple 两 二",
    "three drei tres trois três три few paar unas algunas quelques 三", "four vier cuatro quatre quatro четыре 四",
    "five fünf cinco cinq пять 五", "six sechs seis шесть 六", "seven sieben siete sept sete семь 七",
    "eight acht ocho huit oito восемь 八", "nine neun nueve neuf nove девять 九", "ten zehn diez dix dez десять 十",
)  # fmt: skip
_COUNT = {name: number for number, names in enumerate(_COUNTS, 1) for name in names.split()}
_UNIT_DAYS = (
    (1, "day days tag tage tagen día días dia dias jour jours день дня дней 天 日"),
    (7, "week weeks woche wochen semana semanas semaine semaines неделю недели недель 周 週間 个星期"),
    (14, "fortnight"),
    (31, "month months monat monate monaten mes meses mês mois месяц месяца месяцев 个月 ヶ月"),
)
_DAYS = {name: days for days, names in _UNIT_DAYS for name in names.split()}
_COUNTED = rf"(?:(\d{{1,2}}|{'|'.join(_COUNT)}) (?:of )?)?"
# The longest first, or "day" would be found in "days".
_UNIT = rf"({'|'.join(sorted(_DAYS, key=len, reverse=True))})\b"
# "for two weeks", "for the next month", "die nächsten zwei Wochen", "durante dos semanas", "в ближайшие две недели".
_SPAN = re.compile(
    rf"\b(?:(?:for|during|für|durante|por|pendant|на)(?: the| die| las| los| les)?(?: next| coming| nächsten| próxim[ao]s)? (?:an? )?|"
    r"(?:over|in|within) the (?:next|coming) (?:an? )?|(?:in )?den nächsten |die nächsten |die kommenden |"
    r"(?:en )?(?:las|los) próxim[ao]s |(?:nas|nos) próxim[ao]s |в ближайшие )"
    rf"{_COUNTED}(?:prochaines |próxim[ao]s )?{_UNIT}"
    r"|\bles (?:(\w+) )?prochaine?s (jours|semaines|mois)\b"
    rf"|\b{_COUNTED}{_UNIT} (?:lang|long)\b",
    re.IGNORECASE,
)  # fmt: skip
_FROM_TODAY = re.compile(r"next|coming|nächst|kommend|próxim|prochain|ближайш|接下来|未来|今後|这", re.IGNORECASE)
_SPAN_CJK = re.compile(r"(?:接下来|未来|今後|这)([一二两三四五六七八九十\d]{1,2})(天|周|个星期|个月|日|週間|ヶ月)")
_LENGTH = re.compile(
    r"\b(?:kept|keeps?|retain\w*|stor(?:e|es|ed)|save[sd]?|hold|holds|held|archived?|valid|liv(?:e|es)|lasts?|stays?|cache[sd]?|"
    r"remember(?:ed|s)?|good|open|waits?|locked|blocked|supported|guaranteed|runs? for|sleeps?|gültig|aufbewahrt|gespeichert|gehalten|"
    r"guard\w+|conserv\w+|válid\w+|valables?|храни\w+|действ\w+)\b",
    re.IGNORECASE,
)
"""How long something is kept is no end of the rule that says so."""
_RECURRING = re.compile(
    r"\b(?:every|each|always|weekly|monthly|daily|before (?:a|the) release|jede\w*|cada|chaque|tous les|todos os|кажд\w+)\b|每|毎",
    re.IGNORECASE,
)
"""Then a weekday or a length comes round again."""
_MONTH = re.compile(
    r"\b(?:this month|diesen monat|este mes|este mês|ce mois|в этом месяце)\b|这个月|今月", re.IGNORECASE
)
# These give a beginning, so "today" or "this week" beside them is not an end.
_LASTING_FROM = re.compile(
    r"\b(?:(?:from|since) (?:this|today|now|tomorrow|yesterday)|seit (?:heute|gestern|dieser)|"
    r"(?:as of|effective|beginning|starting) (?:this|today|tonight|now|tomorrow|next|immediately)|"
    r"depuis|ab (?:heute|jetzt|sofort)|a partir de|desde|à partir|starting|dès)\b"
    r"|以后|(?:今天|今日|明天|明日|本周|今週|今月)(?:起|开始|から)",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    (
        r"\b(?:took|moved|switched|decided|dropped|migrated|released|merged|replaced|retired|went|got|"
        r"is (?:out|gone|live|over)|are (?:out|gone|live)|umgestellt|gewechselt|umgezogen|abgeschaltet|beschlossen|entschieden|"
        r"pasamos|cambiamos|decidimos|dejamos|migré|décidé|mudamos|trocamos|решили|перешли|перенесли)\b"
    ),
    re.IGNORECASE,
)
"""With these words "today" is the day of a change, not its end."""


def end_of(text: str, stated_on: date) -> date | None:
    """The last day on which it holds; none where it names no end."""
    if end := _dated_end(text, stated_on) or _stretch_end(text, stated_on):
        return end
    return None if _LASTING_FROM.search(text) else _near_end(text, stated_on)


# ── a day that is named ──────────────────────────────────────────────────────────────────────────────────────────────


def _dated_end(text: str, stated_on: date) -> date | None:
    if match := _UNTIL_NUMBERS.search(text):
        if match[1]:
            return _date_or_none(int(match[1]), int(match[2]), int(match[3]))
        return _next_date(stated_on, int(match[5]), int(match[4]), match[6])
    if (match := _UNTIL_DATE.search(text)) and (month := _MONTHS.get((match[2] or match[3]).lower())):
        return _next_date(stated_on, month, int(match[1] or match[4]), match[5])
    if match := _UNTIL_DAY.search(text):
        return _next_day(stated_on, int(match[1]))
    if match := _UNTIL_YEAR.search(text):
        return date(int(match[1]) - 1, 12, 31)
    return _named_end(text, stated_on) or _cjk_end(text, stated_on)


def _named_end(text: str, stated_on: date) -> date | None:
    for match in _UNTIL_NAMED.finditer(text):
        name = match[2].lower()
        if (weekday := _WEEKDAYS.get(name)) is not None and not _RECURRING.search(text):
            return _next_weekday(stated_on, weekday)
        if month := _MONTHS.get(name):
            return _end_of_month_named(stated_on, month, match[3], whole=bool(match[1]))
    return None


def _end_of_month_named(stated_on: date, month: int, year: str | None, whole: bool) -> date:
    """ "until April" ends as April begins, "until the end of April" with it."""
    # Said in that very month, "until the end of" it means this year's, and "until" it the next one.
    passed = month < stated_on.month or (month == stated_on.month and not whole)
    first = date(int(year) if year else stated_on.year + passed, month, 1)
    return first.replace(day=monthrange(first.year, month)[1]) if whole else first - timedelta(days=1)


def _cjk_end(text: str, stated_on: date) -> date | None:
    if match := _UNTIL_CJK.search(text):
        named = match[1] or match[3]
        month = int(named) if named.isdigit() else _NUMERALS.get(named, 0)
        if 1 <= month <= 12:
            return _end_of_month_named(stated_on, month, None, whole=bool(match[2] or match[4]))
    if (match := _UNTIL_CJK_DAY.search(text)) and not _RECURRING.search(text):
        return _next_weekday(stated_on, _CJK_WEEKDAYS[match[1] or match[2]])
    return None


def _next_weekday(stated_on: date, weekday: int) -> date:
    # Said on a friday, "until friday" means the next one: `or 7`.
    return stated_on + timedelta(days=(weekday - stated_on.weekday()) % 7 or 7)


def _next_day(stated_on: date, day: int) -> date | None:
    """ "until the 15th": of this month, or of the next where that has passed."""
    if day >= stated_on.day:
        return _date_or_none(stated_on.year, stated_on.month, day)
    following = stated_on.replace(day=1) + timedelta(days=32)
    return _date_or_none(following.year, following.month, day)


def _next_date(stated_on: date, month: int, day: int, year: str | None = None) -> date | None:
    here = _date_or_none(int(year) if year else stated_on.year, month, day)
    # A date that lies before the day it was said is meant for next year.
    return here if year or here is None or here >= stated_on else _date_or_none(stated_on.year + 1, month, day)


def _date_or_none(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


# ── a stretch of days ────────────────────────────────────────────────────────────────────────────────────────────────


def _stretch_end(text: str, stated_on: date) -> date | None:
    """A counted span, or what runs now up to its end."""
    match = _SPAN.search(text) or _SPAN_CJK.search(text)
    # "the next two weeks" begin today, whatever is said of them; "two weeks" may be how long something takes each time.
    if match and (_FROM_TODAY.search(match[0]) or not (_LENGTH.search(text) or _RECURRING.search(text))):
        return stated_on + timedelta(days=_counted_days(match))
    named = next((name for name, pattern in _UNTIL_STRETCH.items() if pattern.search(text)), "")
    return _end_of_stretch(named, stated_on) if named and not _RECURRING.search(text) else None


def _counted_days(match: re.Match[str]) -> int:
    groups = match.groups()
    count, unit = next(pair for pair in zip(groups[::2], groups[1::2], strict=True) if pair[1])
    number = int(count) if count and count.isdigit() else _COUNT.get((count or "one").lower(), 1)
    return number * _DAYS[unit.lower()]


def _end_of_stretch(name: str, stated_on: date) -> date:
    if name == "week":
        # Weeks end on sunday.
        return stated_on + timedelta(days=6 - stated_on.weekday())
    if name == "month":
        return stated_on.replace(day=monthrange(stated_on.year, stated_on.month)[1])
    return date(stated_on.year, 12, 31)


def _near_end(text: str, stated_on: date) -> date | None:
    if not _HAPPENED.search(text):
        if _WEEK.search(text):
            return _end_of_stretch("week", stated_on)
        if _MONTH.search(text):
            return _end_of_stretch("month", stated_on)
        if _DAY.search(text):
            return stated_on
    return stated_on + timedelta(days=1) if _TOMORROW.search(text) else None
