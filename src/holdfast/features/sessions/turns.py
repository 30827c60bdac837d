"""Turns (seed 004 calls them prompt batches): opened by a prompt, closed by Stop, the next prompt, or recovery."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import ACTIVE, REMEMBERED_TURNS, head, is_open

SOFT = ("recovered", "notified", "lost")
"""Ends that were concluded, not told: activity in a live session proves them wrong."""

ANSWERED = ("stopped", "failed", "interrupted", "notified")
"""Ends after which it is the user's turn."""


def open_turn(doc: Doc, event: Event, *, origin: str, prompt: str = "") -> None:
    close_turn(doc, event, "next-prompt")
    last = doc["turn"]
    if last and unprocessed(last):
        # Two are kept at hand; of those before them it is only known where they begin: the log has the rest.
        if doc["previous"] and not doc["missed"]:
            doc["missed"] = doc["previous"]["n"]
        doc["previous"] = last
    n = (last["n"] if last else 0) + 1
    doc["turn"] = {
        "n": n, "id": event.get("turn", ""), "origin": origin, "prompt": head(prompt), "at": event.at,
        "end": 0, "how": "", "tools": 0, "failed": 0, "answer": "", "first": event.seq,
        "seq": event.seq, "processed": 0,
    }  # fmt: skip
    doc["recent"] = [*doc["recent"], [n, event.at]][-REMEMBERED_TURNS:]


def close_turn(doc: Doc, event: Event, how: str, answer: Any = "") -> None:
    """Closing a closed turn changes nothing but what it answered."""
    turn = doc["turn"]
    if is_open(turn):
        doc["turn"] = {
            **turn,
            "end": event.at or 1,
            "how": how,
            "answer": head(answer) or turn["answer"],
            "seq": event.seq,
        }


def reopen_turn(doc: Doc) -> None:
    if doc["turn"]:
        doc["turn"] = {**doc["turn"], "end": 0, "how": ""}


def into_turn(doc: Doc, event: Event, *, goes_on: bool = False, **counts: int) -> None:
    """An activity lands in the latest turn, also when that is closed; where there is none, one is made for it.

    What only begins after the end of a turn (`goes_on`) shows that the agent works on without a prompt.
    """
    turn = doc["turn"]
    if turn is None:
        open_turn(doc, event, origin="recovery")
        turn = doc["turn"]
    elif _is_refuted(doc, turn) or (goes_on and turn["end"] and event.at > turn["end"] and doc["status"] == ACTIVE):
        reopen_turn(doc)
        turn = doc["turn"]
    doc["turn"] = {**turn, "seq": event.seq, **{name: turn[name] + n for name, n in counts.items()}}


def _is_refuted(doc: Doc, turn: Doc) -> bool:
    return not is_open(turn) and turn["how"] in SOFT and doc["status"] == ACTIVE


def unprocessed(turn: Doc) -> bool:
    return bool(turn["end"]) and turn["seq"] > turn["processed"]


def at_hand(doc: Doc) -> list[Doc]:
    """Closed turns nobody has gone through since something happened in them, as far as the document holds them."""
    return [turn for turn in (doc["previous"], doc["turn"]) if turn and unprocessed(turn)]


def any_unprocessed(doc: Doc) -> bool:
    return bool(doc["missed"] or at_hand(doc))


def processed(doc: Doc, n: int, seq: int) -> None:
    last, previous = doc["turn"], doc["previous"]
    if previous and previous["n"] == n and previous["seq"] <= seq:
        doc["previous"] = None
    if last and last["n"] == n:
        doc["turn"] = {**last, "processed": max(last["processed"], seq)}
    if doc["missed"] == n:
        following = n + 1
        known = doc["previous"] or doc["turn"]
        doc["missed"] = following if known and following < known["n"] else 0
