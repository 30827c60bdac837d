"""What a model said → candidates. It is data: every field is checked, capped and tied to the turn it came from. Pure.

A model's own words are told to nobody until a person promoted them (`OUTSIDE` of TRUSTED). Where it quotes the user word
for word, the quotation itself is what is remembered, and that is the user's.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast.core import fence
from holdfast.features.memory.llm.turns import Turn
from holdfast.features.memory.model import MODEL, MOST_PER_TURN, TYPES, USER, line, mapping, strings
from holdfast.features.memory.rules.candidate import Candidate
from holdfast.features.memory.rules.sentences import sentences

LARGEST = 256 * 1024
SHORTEST, LONGEST, FEWEST_WORDS = 12, 400, 3
HEAVIEST = 7
OWN_WORDS = ("decision", "preference", "gotcha", "trade_off", "discovery")


class BadAnswer(Exception):
    """It is not what was asked for."""


def candidates(said: str, turns: Sequence[Turn]) -> list[tuple[Turn, Candidate]]:
    told = _object(said).get("observations")
    if not isinstance(told, list):
        raise BadAnswer("there is no list `observations` in it")
    given: dict[int, int] = {}
    found = []
    for one in told[: MOST_PER_TURN * len(turns)]:
        number = _number(mapping(one).get("turn"), 1 if len(turns) == 1 else 0)
        if 1 <= number <= len(turns) and given.get(number, 0) < MOST_PER_TURN:
            turn = turns[number - 1]
            for candidate in _candidate(mapping(one), turn):
                given[number] = given.get(number, 0) + 1
                found.append((turn, candidate))
    return found


def _object(said: str) -> dict[str, Any]:
    """Models like to talk around their JSON."""
    begin, end = said.find("{"), said.rfind("}")
    if begin < 0 or end < begin or len(said) > LARGEST:
        raise BadAnswer("there is no JSON object in it" if len(said) <= LARGEST else "it is too long")
    try:
        told = msgspec.json.decode(said[begin : end + 1].encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        raise BadAnswer("its JSON cannot be read") from None
    if not isinstance(told, dict):
        raise BadAnswer("its JSON is not an object")
    return told


def _candidate(one: Any, turn: Turn) -> Iterator[Candidate]:
    type_, text = str(one.get("type") or ""), _words(one.get("text"))
    if type_ not in TYPES or len(text) < SHORTEST:
        return
    quoted = _quoted(one.get("quote"), turn) if type_ in OWN_WORDS else ""
    evidence = tuple(seq for seq in (turn.prompt_seq, turn.message_seq) if seq)
    yield Candidate(
        type=type_, text=quoted or text, detail=text if quoted else "", origin=USER if quoted else MODEL,
        importance=max(1, min(_number(one.get("importance"), 4), HEAVIEST)), files=_files(one, turn),
        evidence=evidence[:1] if quoted else evidence,
    )  # fmt: skip


def _words(value: Any) -> str:
    return line(fence.harmless(value), LONGEST) if isinstance(value, str) else ""


def _quoted(value: Any, turn: Turn) -> str:
    """The user's own sentence that holds these words; pasted text is not his (`sentences`)."""
    words = line(value, LONGEST).lower() if isinstance(value, str) else ""
    if len(words) < SHORTEST or len(words.split()) < FEWEST_WORDS:
        return ""
    return next((own for own in sentences(turn.prompt) if words.rstrip(".!") in own.lower()), "")


def _files(one: Any, turn: Turn) -> tuple[str, ...]:
    """Only files that this turn really touched."""
    named = strings(one.get("files"))
    return tuple(f for f in turn.files if any(f == n or f.endswith(f"/{n.lstrip('./')}") for n in named if n))[:5]


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1000 else default
