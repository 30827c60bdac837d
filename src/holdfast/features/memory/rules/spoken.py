"""Rules over words: what the user decided, wants and corrected; what the agent says it chose and found out."""

import re
from collections.abc import Iterator

from holdfast.features.memory.model import AGENT, USER
from holdfast.features.memory.rules.candidate import Candidate
from holdfast.features.memory.rules.sentences import sentences
from holdfast.features.memory.words import files_in

MOST_OF_AGENT = 3


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(words) + r")\b", re.IGNORECASE)


_QUESTION = re.compile(r"\?\s*$|^(?:what|why|how|when|where|who|which|can|could|would|is|are|do|does|did)\b", re.I)
_CORRECTION = re.compile(
    r"^(?:no\b|nope|wrong|not like that|actually\b|that'?s (?:not|wrong)|i (?:said|told you|meant|asked)"
    r"|don'?t\b|stop\b|undo)",
    re.IGNORECASE,
)
BY_USER: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    ("trade_off", 6, _any("trade-?offs?", "at the cost of", "in exchange for", r"(?:slower|faster|simpler) but")),
    ("decision", 8, _any(
        "we(?:'ve| have)? (?:decided|agreed|settled)", "i(?:'ve| have)? decided", "decision:", "the decision is",
        "from now on", r"let'?s (?:use|go with|stick with|keep|drop|switch to|not use)",
        "we(?:'ll| will) (?:use|go with|stick|keep|drop|switch)",
        r"(?:we|i) (?:chose|choose|picked|opted for|went with)", r"go with \w+", r"stick (?:with|to) \w+",
        r"use \S+(?: \S+){0,3} (?:instead of|rather than|over|not) \w+",
    )),
    ("gotcha", 7, _any(
        "watch out", "beware", "be careful", "gotcha", "careful with", r"(?:only )?works only (?:if|when|with)",
        r"(?:breaks|fails|hangs|crashes) (?:if|when|unless|without)", "must (?:be run|run) (?:first|before|after)",
    )),
    ("preference", 7, _any(
        "always", "never", "i (?:prefer|want|like|hate|dislike)", "please (?:don'?t|do not|avoid|use)", "avoid using",
        "don'?t (?:use|add|touch|change|ever|write|create|commit|push)",
        "do not (?:use|add|touch|change|write|commit|push)",
    )),
    ("discovery", 7, _any("remember", "keep in mind", "for the record", "important:", "note that", "fyi")),
)  # fmt: skip
BY_AGENT: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    ("trade_off", 4, _any("trade-?offs?", "at the cost of", "in exchange for")),
    ("decision", 5, _any(r"(?:i|we) (?:chose|decided|went with|opted for|picked|settled on)", "rather than")),
    ("discovery", 4, _any(
        "root cause", "turns? out", "the (?:problem|issue|bug|cause) (?:was|is)",
        r"(?:i|we) (?:found|discovered|learned) that",
    )),
)  # fmt: skip


def by_user(prompt: str, seq: int, follows: bool) -> Iterator[Candidate]:
    """`follows`: an answer went before, so that a "no" corrects it."""
    for number, words in enumerate(sentences(prompt)):
        found = _typed(words, BY_USER)
        if number == 0 and follows and _CORRECTION.search(words) and (not found or found[0] != "decision"):
            found = ("preference", 7)
        if found and not _QUESTION.search(words):
            yield _candidate(found, words, USER, seq)


def by_agent(message: str, seq: int) -> Iterator[Candidate]:
    given = 0
    for words in sentences(message):
        found = _typed(words, BY_AGENT)
        if found and given < MOST_OF_AGENT:
            given += 1
            yield _candidate(found, words, AGENT, seq)


def _typed(words: str, rules: tuple[tuple[str, int, re.Pattern[str]], ...]) -> tuple[str, int] | None:
    return next(((type_, weight) for type_, weight, rule in rules if rule.search(words)), None)


def _candidate(found: tuple[str, int], words: str, origin: str, seq: int) -> Candidate:
    files = tuple(files_in(words)[:5])
    return Candidate(
        type=found[0], importance=found[1], text=words, origin=origin, evidence=(seq,) if seq else (), files=files
    )
