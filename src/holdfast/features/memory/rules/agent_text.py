"""Rules over the agent's words: what it says it chose and found out. What the user says is read by `statements`."""

import re
from collections.abc import Iterator

from holdfast.features.memory.model import AGENT
from holdfast.features.memory.rules.candidate import Candidate
from holdfast.features.memory.rules.sentences import sentences
from holdfast.features.memory.terms import files_in

MOST_OF_AGENT = 3


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(words) + r")\b", re.IGNORECASE)


BY_AGENT: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    ("trade_off", 4, _any("trade-?offs?", "at the cost of", "in exchange for")),
    ("decision", 5, _any(r"(?:i|we) (?:chose|decided|went with|opted for|picked|settled on)", "rather than")),
    ("discovery", 4, _any(
        "root cause", "turns? out", "the (?:problem|issue|bug|cause) (?:was|is)",
        r"(?:i|we) (?:found|discovered|learned) that",
    )),
)  # fmt: skip


def by_agent(message: str, seq: int) -> Iterator[Candidate]:
    given = 0
    for words in sentences(message):
        found = _typed(words, BY_AGENT)
        if found and given < MOST_OF_AGENT:
            given += 1
            yield _candidate(found, words, seq)


def _typed(words: str, rules: tuple[tuple[str, int, re.Pattern[str]], ...]) -> tuple[str, int] | None:
    return next(((type_, weight) for type_, weight, rule in rules if rule.search(words)), None)


def _candidate(found: tuple[str, int], words: str, seq: int) -> Candidate:
    files = tuple(files_in(words)[:5])
    return Candidate(
        type=found[0], importance=found[1], text=words, origin=AGENT, evidence=(seq,) if seq else (), files=files
    )
