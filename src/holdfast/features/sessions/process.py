"""Going through closed turns (S4-14): their facts become documents, their token use is read. Costs no model."""

from collections.abc import Iterator
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.sessions import days, reduce, transcript
from holdfast.features.sessions.model import COMPLETED, DEFAULTS, SESSION, TOKENS, TURN, said, turn_key
from holdfast.features.sessions.turns import any_unprocessed, at_hand

SETTLED_MS = 1000
"""A transcript is written a little later than the hook that tells of its end."""
FACTS = ("id", "origin", "prompt", "answer", "at", "end", "how", "tools", "failed", "first", "seq")


def process(call: JobCall) -> list[Event]:
    doc = call.reader.state(Ref(SESSION, str(call.job.payload["session"])))
    if not doc:
        return []
    settings = call.settings(doc["project"]) or DEFAULTS
    return list(go_through(doc, call.reader, call.now, transcripts=settings.transcripts))


def go_through(doc: Doc, reader: Reader, now: int, *, transcripts: bool = True) -> Iterator[Event]:
    for turn in _unprocessed(doc, reader):
        facts = {name: turn[name] for name in FACTS}
        more = days.more_of(turn, reader.state(Ref(TURN, turn_key(doc["id"], turn["n"]))))
        told = {"facts": facts, "more": more, "day": days.local_day(turn["at"]), "agent": doc["agent"]}
        yield said(doc, "turn.processed", now, f"{turn['n']}.{turn['seq']}", n=turn["n"], upto=turn["seq"], **told)
    if transcripts:
        yield from _token_use(doc, now)


def _unprocessed(doc: Doc, reader: Reader) -> list[Doc]:
    """After a day in the spool there may be more of them than a document holds: the log knows them all."""
    if not any_unprocessed(doc):
        return []
    held = at_hand(doc)
    missed = _from_log(doc, reader, until=held[0]["n"] if held else doc["turn"]["n"]) if doc["missed"] else []
    return [*missed, *held]


def _from_log(doc: Doc, reader: Reader, until: int) -> list[Doc]:
    ref, told, turns = Ref(SESSION, doc["id"]), None, {}
    for event in reader.replay(session=doc["id"]):
        told = reduce.reduce(told, event, ref) if event.kind in reduce.SUBSCRIBED_KINDS else told
        if told and told["turn"]:
            turns[told["turn"]["n"]] = told["turn"]
    return [turns[n] for n in range(doc["missed"], until) if n in turns]


def _token_use(doc: Doc, now: int) -> Iterator[Event]:
    """The session's own transcript as far as it has grown, and those of its subagents once they are through."""
    if doc["transcript"]:
        not_before = doc["started_at"] if doc["origin"] == "fork" else 0
        reading = transcript.read(doc["transcript"], doc["read"], not_before)
        if reading:
            yield said(doc, "tokens.read", now, f"{reading.offset}.{doc['seq']}", **_told(doc, reading))
    for lane, entry in doc["lanes"].items():
        settled = doc["status"] == COMPLETED or now - entry["end"] > SETTLED_MS
        if entry.get("transcript") and settled and (reading := transcript.read(entry["transcript"], None)):
            yield said(doc, "tokens.read", now, f"{lane}.{doc['seq']}", lane=lane, **_told(doc, reading))


def _told(doc: Doc, reading: transcript.Reading) -> dict[str, Any]:
    by_turn: dict[str, dict[str, int]] = {}
    for at, tokens in reading.found:
        _add(by_turn.setdefault(str(_turn_at(doc, at)), {}), tokens)
    total: dict[str, int] = {}
    for tokens in by_turn.values():
        _add(total, tokens)
    by_turn.pop("0", None)  # Before the first turn we know of: of the session, of no turn.
    stand = {"path": reading.path, "offset": reading.offset, "last": reading.last, "ids": reading.ids}
    when = {"day": days.local_day(reading.last or doc["at"]), "agent": doc["agent"]}
    return {**stand, "total": total, "by_turn": by_turn, **when}


def _turn_at(doc: Doc, at: int) -> int:
    """Lines are written late, so their time decides which turn they belong to, not when they were read."""
    began = [n for n, start in doc["recent"] if start <= at]
    return began[-1] if began else 0


def _add(into: dict[str, int], tokens: dict[str, int]) -> None:
    for name in TOKENS:
        into[name] = into.get(name, 0) + tokens.get(name, 0)
