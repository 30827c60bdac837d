"""What the model cost, and what is set aside for calls under way. No call begins without its tokens set aside here.

One document for all projects, changed by one writer: two jobs cannot both take the last tokens of a day. Pure.
"""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc, Ref

KIND, DAY_MS, MOST_DAYS = "memory.meter", 86_400_000, 31
REF = Ref(KIND, "all")


def born(at: int) -> Doc:
    return {"day": at // DAY_MS, "open": {}, "days": {}, "at": at}


def reduce(doc: Doc | None, event: Event) -> Doc | None:
    step = {"memory.asked": _asked, "memory.answered": _answered}[event.kind]
    return step(doc or born(event.at), event)


def left(doc: Doc | None, at: int, limit: int) -> int:
    """Tokens that may still be set aside today. What is still open counts, whenever it was begun."""
    if doc is None:
        return limit
    held = sum(one["tokens"] for one in doc["open"].values())
    value: int = limit - used(doc, at) - held
    return value


def used(doc: Doc | None, at: int) -> int:
    return int(doc["days"].get(_day(doc, at), {}).get("tokens", 0)) if doc else 0


def beyond(doc: Doc | None, at: int) -> int:
    """By how much a call of today cost more than the most it could: an endpoint that thinks aloud, say. The next ones set
    aside so much more."""
    return int(doc["days"].get(_day(doc, at), {}).get("beyond", 0)) if doc else 0


def busy(doc: Doc | None, project: str) -> bool:
    return doc is not None and any(one["project"] == project for one in doc["open"].values())


def _day(doc: Doc, at: int) -> str:
    """A clock that goes back does not give a day twice."""
    return str(max(doc["day"], at // DAY_MS))


def _asked(doc: Doc, event: Event) -> Doc:
    """Set aside if there is enough, and if no other call for this project is under way; else nothing changes."""
    tokens = int(event.get("tokens") or 0)
    enough = tokens > 0 and left(doc, event.at, int(event.get("limit") or 0)) >= tokens
    if not enough or busy(doc, event.project):
        return doc
    day = _day(doc, event.at)
    mine = {"project": event.project, "tokens": tokens, "day": day}
    return {**doc, "day": int(day), "open": {**doc["open"], str(event.get("id")): mine}, "at": event.at}


def _answered(doc: Doc, event: Event) -> Doc:
    """On the day it was set aside; never less than nothing, however an endpoint counts."""
    mine = doc["open"].get(str(event.get("id")))
    if mine is None:
        return doc
    before = doc["days"].get(mine["day"], {"tokens": 0, "calls": 0, "failed": 0, "beyond": 0})
    tokens = max(0, int(event.get("tokens") or 0))
    after = {
        "tokens": before["tokens"] + tokens, "calls": before["calls"] + 1,
        "failed": before["failed"] + (not event.get("ok")),
        "beyond": max(before["beyond"], before["beyond"] + tokens - mine["tokens"]),
    }  # fmt: skip
    days = {**doc["days"], mine["day"]: after}
    kept = dict(sorted(days.items(), key=lambda one: int(one[0]))[-MOST_DAYS:])
    still = {name: one for name, one in doc["open"].items() if name != str(event.get("id"))}
    return {**doc, "open": still, "days": kept, "at": event.at}


def told(doc: Doc | None, at: int, limit: int) -> dict[str, Any]:
    days = doc["days"] if doc else {}
    today = days.get(_day(doc, at), {}) if doc else {}
    return {
        "limit": limit, "used": used(doc, at), "left": max(0, left(doc, at, limit)),
        "held": sum(one["tokens"] for one in doc["open"].values()) if doc else 0,
        "calls": today.get("calls", 0), "failed": today.get("failed", 0),
        "days": [{"at": int(day) * DAY_MS, **one} for day, one in reversed(days.items())],
    }  # fmt: skip
