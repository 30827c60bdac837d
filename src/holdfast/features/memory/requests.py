"""Finds requests, limits and corrections in a person's own typed words."""

# Only phrases such as "from now on" or "remember that" count: on 740 real prompts a trained classifier was wrong nine
# times in ten.

import re
from collections.abc import Iterator

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.core.text import INSTEAD

LONGEST_PROMPT, MOST_LINES = 1_500, 12
"""A longer prompt contains pasted text, where "from now on" is somebody else's."""
SHORTEST, LONGEST, MOST_REQUESTS = 2, 400, 4
LONGEST_TYPED = 6_000
REMOVED_MARK = "[redacted:"

_FENCED = lazy_pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<(\w[\w-]*)\b[^>]*>.*?</\1\s*>", re.DOTALL)
_NOT_TYPED = lazy_pattern(r"\s*(?:[>|$@\[{}<]|[-+*•#]|/[/*]|\d+[.):]|at \S+\(|File \"|Traceback|\w+:\s*$)")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])|\n+")
_OPENING = r"\W*(?:(?:please|pls|ok(?:ay)?|and|also|but|so|no|yes|bitte|por favor)[,:]?\s+)*"
_LASTING = (
    r"from (?:now|here) on|going forward|for (?:all )?future sessions|as a (?:general )?rule"
    r"|ab jetzt|ab sofort|künftig|a partir de (?:ahora|agora)|desde ahora|désormais|dorénavant|à partir de maintenant"
    r"|с этого момента|впредь"
)
_STANDING = lazy_pattern(
    rf"{_OPENING}(?:(?:{_LASTING})\b[,:]?\s*|(?=(?:always|never)\b(?! mind|\s+\w+(?:ed|en|ing)\b))"
    r"|(?:今後は?|これからは?|以后|从现在开始)[，,、]?)(?P<words>.+)",
    re.IGNORECASE | re.DOTALL,
)
_STANDING_LAST = lazy_pattern(rf"(?P<words>.+?)[,;]?\s+(?:{_LASTING})\W*", re.IGNORECASE | re.DOTALL)
_REMEMBER = lazy_pattern(
    rf"{_OPENING}(?:remember|don't forget|merk dir|recuerda|retiens|lembre(?:-se)?|запомни)"
    r"(?:(?: for (?:later|the future|next time))?:|\s+(?:that|dass|que|что)|\s*,\s*(?:dass|что))\s+(?P<words>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_ANSWERS = lazy_pattern(
    r"\b(?:answers?|repl(?:y|ies)|explain|explanations?|summar(?:y|ies|ise|ize)|ask me|tell me|talk|speak|tone"
    r"|antworte\w*|responde|réponds|отвечай)\b",
    re.IGNORECASE,
)


_LIMIT = lazy_pattern(
    r"\b(?:(?:do|did|does|should|would|must|can|is|was)(?:n'?t| not)|cannot|never|always|must|only|without|instead of|make sure|ensure"
    r"|avoid|prefer|unless|not yet|no need|has to|have to|needs?(?: to)?|let'?s not|stop|leave|keep|skip|ignore|limit|at (?:most|least)"
    r"|we (?:use|want|have no)|you (?:have no|may not)|i(?:'ll| will) do|i (?:want|need|prefer|like)|my \w+ (?:\w+ )?is"
    r"|nicht|nur|immer|sin|solo|nunca)\b",
    re.IGNORECASE,
)
_CLAUSE_END = lazy_pattern(r"\.{2,}\s*|…\s*|;\s+")
_CORRECTION = lazy_pattern(
    rf"{_OPENING}(?:again,?\s+|i (?:said|told you)\s+)*(?:don'?t|do not|never|always|stop|we (?:don'?t|never|always|use)|use)\s+\S+",
    re.IGNORECASE,
)
_MOMENTARY = lazy_pattern(
    r"\b(?:yet|now|just|this|that|these|those|it|here|again|still|anything|any|today)\b", re.IGNORECASE
)
_POINTS_BACK = lazy_pattern(
    r"(?:\S+\s+){1,2}(?:this|that|these|those|it)\b(?:\W*$|\s+(?:again|any|ever|on|in|here|to|for|without|unless|before"
    r"|after|when|if|at|from|by|with)\b)",
    re.IGNORECASE,
)
"""A pronoun as the object: without the sentence before it the statement says nothing."""
LONGEST_LIMIT, MOST_OF_PROMPT = 300, 8


class Request(msgspec.Struct, frozen=True):
    type: str
    text: str


def explicit_requests(prompt: str) -> list[Request]:
    """At most a few. Questions and prompts with pasted lines never count."""
    if len(prompt) > LONGEST_PROMPT or _holds_pasted_text(prompt):
        return []
    found = {request.text: request for request in map(_as_request, own_sentences(prompt)) if request}
    return list(found.values())[:MOST_REQUESTS]


def _holds_pasted_text(prompt: str) -> bool:
    lines = [line for line in prompt.split("\n") if line.strip()]
    return len(lines) > MOST_LINES or bool(_FENCED.search(prompt)) or any(map(_NOT_TYPED.match, lines))


def own_sentences(prompt: str) -> Iterator[str]:
    for line in _FENCED.sub("\n", prompt).split("\n"):
        if not _NOT_TYPED.match(line):
            yield from (" ".join(sentence.split()) for sentence in _SENTENCE_END.split(line) if sentence.strip())


def limits_in(prompt: str) -> list[str]:
    """What the person demands or rules out, word for word; of a prompt with pasted text only the lines they typed."""
    clauses = (part.strip() for one in own_sentences(prompt[:LONGEST_TYPED]) for part in _CLAUSE_END.split(one))
    typed = (one for one in clauses if len(one) <= LONGEST_LIMIT and not one.endswith("?"))
    return [one for one in typed if _LIMIT.search(one) and INSTEAD not in one][:MOST_OF_PROMPT]


def corrections_in(prompt: str) -> list[str]:
    """Short sentences that correct the agent in general, not about the matter at hand."""
    if len(prompt) > LONGEST_PROMPT or _holds_pasted_text(prompt):
        return []
    found = (one for one in own_sentences(prompt) if len(one) <= LONGEST and _CORRECTION.match(one))
    return [one for one in found if not one.endswith("?") and not _MOMENTARY.search(one)][:MOST_REQUESTS]


def _as_request(sentence: str) -> Request | None:
    if sentence.endswith(("?", "？")) or INSTEAD in sentence or REMOVED_MARK in sentence:
        return None
    if match := _STANDING.fullmatch(sentence) or _STANDING_LAST.fullmatch(sentence):
        if _POINTS_BACK.match(match["words"]):
            return None
        kind = "preference" if _ABOUT_ANSWERS.search(match["words"]) else "rule"
    elif match := _REMEMBER.fullmatch(sentence):
        kind = "fact"
    else:
        return None
    words = match["words"].strip(" ,:;")
    return Request(kind, words) if _is_statement(words) else None


def _is_statement(words: str) -> bool:
    """Long enough to stand alone; CJK text has no spaces, so two characters count as a word."""
    size = len(words.split()) + sum(char > "\u2e80" for char in words) // 2
    return size >= SHORTEST and len(words) <= LONGEST
