"""Cutting a sentence: a task that hangs on a lasting statement is taken off, an introduction is left out."""

import re

from holdfast.statements.cues import IMPERATIVES

LEAST_WORDS = 3
_ALSO_LASTING = frozenset("use keep ask let go do call avoid stick run set leave see think say".split())
"""Verbs with which a lasting wish begins as often as a task does."""
_TASK_VERBS = "|".join(verb for verb in IMPERATIVES.split("|") if verb not in _ALSO_LASTING)
_LASTING_WORD = re.compile(
    r"\b(?:always|never|every|each|all|any|must|only|instead|everywhere|from now on|in future|whenever|when "
    r"you|before you)\b",
    re.IGNORECASE,
)
_GLUE = r"(?:[,;]\s*(?:so|and|then|please|also|but)?|\s+(?:so|please))\s+(?:then |now |please |also |just )*"
_TAIL_TASK = re.compile(
    rf"{_GLUE}(?:{_TASK_VERBS})\b(?! (?:is|are|was)\b).*$"
    r"|[,;]? (?:so|also) (?:lösch|leg|mach|bau|nimm|schreib|ändere|entfern)\w*\b.*$|, nimm für .*$",
    re.IGNORECASE,
)
_ASKING = r"(?:please |pls |can you |could you |can u |now |then |ok |yes |lgtm[.,]? )*"
_HEAD_TASK = re.compile(
    rf"^{_ASKING}(?:{_TASK_VERBS}|do|set|run|leave)\b(?:(?!\b(?:that|which)\b)[^,;]){{3,120}}?"
    r"[,;] (?:and|but|oh and) (?=\S+ \S+ \S+)",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(
    r"^(?:(?:(?:no+(?: no)*|nope)[,.:!]+|(?:ok(?:ay)?|yes|yeah|hey|hi|hm+|ah|oh|ach|and|und|but|so|well|actually|"
    r"wrong|please|pls|sorry|also|again|ojo|ach ja|y|et)[,.:!]*)\s+)*"
    r"(?:(?:(?:please |pls |bitte )?(?:remember|note|keep in mind|be aware|bear in mind|don't forget|know)(?: "
    r"that|:|,)?|by the way|btw|fyi|for the (?:record|future)|for future reference|"
    r"just so you know|so you know(?: who is who)?|one (?:more )?thing(?: for (?:the future|later|the next "
    r"time))?|as (?:per|of) [^,:]{3,30}|in general|as a rule|going forward|while i think of it|"
    r"merk dir|wichtig für später|übrigens|por cierto|au fait|кстати|ちなみに|以后|be careful with|careful with|be "
    r"careful|careful|beware|watch out|important(?: for later)?|"
    r"we (?:all )?agreed (?:in the team )?that|if you wonder about [^,]{3,40}|i told you before|ok final word "
    r"on this|and then sth general [^:]{0,60})\b[,:]*\s*)?",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<head>[^:]{2,110}?):\s+(?P<rest>\S.*)$", re.DOTALL)
_HEAD_WORD = re.compile(
    r"\b(?:notes?|rules?|remark|thing|things|future|later|done|decided|decision|outcome|result|meeting|spike|"
    r"vote|call|explain|background|context|setup|say|this|him|her|them|entschieden|before|general|why|reason|"
    r"4|\d)\b",
    re.IGNORECASE,
)


def cut_clauses(text: str) -> list[str]:
    """One or two or three parts; together they are the sentence."""
    parts: list[str] = []
    if (head := _HEAD_TASK.match(text)) and not _LASTING_WORD.search(head.group(0)):
        parts.append(head.group(0).rstrip(" ,;"))
        text = text[head.end() :]
    tail = _TAIL_TASK.search(text)
    if tail and _count_words(text[: tail.start()]) >= LEAST_WORDS and not _LASTING_WORD.search(tail.group(0)):
        return [*parts, text[: tail.start()].strip(), tail.group(0).lstrip(" ,;")]
    return [*parts, text]


def shorten_to_quote(text: str) -> str:
    """Without its introduction, as far as enough is left."""
    bare = text[match.end() :] if (match := _INTRODUCTION.match(text)) else text
    colon = _COLON.match(bare)
    if (
        colon
        and _count_words(colon["rest"]) >= LEAST_WORDS
        and (_HEAD_WORD.search(colon["head"]) or _count_words(colon["head"]) > 3)
    ):
        bare = colon["rest"]
    bare = bare.strip(" ,;:-")
    return (
        bare if bare and (_count_words(bare) >= LEAST_WORDS or _count_words(text) < LEAST_WORDS + 2) else text.strip()
    )


def _count_words(text: str) -> int:
    return len(text.split()) + sum(char > "\u2e80" for char in text) // 2
