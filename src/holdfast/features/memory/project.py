"""The best of a project's memory, ready to be told without looking anything up. Bounded; pure."""

from collections.abc import Callable
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.memory.model import CANDIDATE, HANDOFF, MOST_ITEMS, OUTSIDE, TRUSTED, line, strings
from holdfast.features.memory.session import told
from holdfast.features.memory.terms import terms

DAY = 86_400_000
MOST_TERMS = 60
Step = Callable[[Doc, Event], Doc]


def born(event: Event) -> Doc:
    return {"project": event.project, "items": [], "handoff": None, "at": event.at, "status": ""}


def reduce(doc: Doc | None, event: Event) -> Doc | None:
    before = doc or born(event)
    after = STEPS[event.kind](before, event)
    return doc if after is before and doc is not None else {**after, "at": event.at}


def injectable(item: Doc) -> bool:
    """What a tool, a file, a page or the agent itself said is told to nobody until a person vouched for it (P10)."""
    return item["origin"] in TRUSTED or item["promoted"]


def worth(item: Doc, now: int) -> float:
    """Importance, a little for being seen again, fading over months."""
    age = max(0, now - item["at"]) / DAY
    value: float = (100 if item["pinned"] else 0) + item["importance"] + min(item["times"], 5) * 0.4 - min(age / 30, 4)
    return value


def _observed(doc: Doc, event: Event) -> Doc:
    identity = event.get("id")
    known = next((item for item in doc["items"] if item["id"] == identity), None)
    if event.get("status") == CANDIDATE and known is None:
        return doc
    gone = {identity, *strings(event.get("supersedes"))}
    item = _item(event) if known is None else {**known, "times": known["times"] + 1, "at": event.at}
    return {**doc, "items": _best([*(i for i in doc["items"] if i["id"] not in gone), item], event.at)}


def _item(event: Event) -> Doc:
    text = line(event.get("text"), 300)
    files = strings(event.get("files"), 5)
    return {
        "id": event.get("id"), "type": event.get("type"), "text": text, "origin": event.get("origin") or OUTSIDE,
        "importance": int(event.get("importance") or 1), "files": files, "at": event.at, "session": event.session,
        "times": 1, "pinned": bool(event.get("pinned")), "promoted": False,
        "terms": list(dict.fromkeys(terms(f"{text} {' '.join(files)}")))[:MOST_TERMS],
    }  # fmt: skip


def _best(items: list[Doc], now: int) -> list[Doc]:
    if len(items) <= MOST_ITEMS:
        return items
    worst = min(items, key=lambda item: (worth(item, now), item["id"]))
    return [item for item in items if item is not worst]


def _changed(name: str, value: Callable[[Event], Any]) -> Step:
    def step(doc: Doc, event: Event) -> Doc:
        identity = event.get("id")
        return {**doc, "items": [{**i, name: value(event)} if i["id"] == identity else i for i in doc["items"]]}

    return step


def _forgotten(doc: Doc, event: Event) -> Doc:
    return {**doc, "items": [item for item in doc["items"] if item["id"] != event.get("id")]}


def _handed_over(doc: Doc, event: Event) -> Doc:
    return {
        **doc,
        "handoff": {
            "id": event.get("id"), "text": str(event.get("text") or "")[:6000], "from": event.session, "at": event.at,
            "claimed": "",
        },
    }  # fmt: skip


def _decided(doc: Doc, event: Event) -> Doc:
    """Told once, and so claimed: the words may go."""
    handoff = doc["handoff"]
    if handoff and not handoff["claimed"] and any(c.get("source") == HANDOFF for c in told(event)):
        return {**doc, "handoff": {**handoff, "claimed": event.session, "text": ""}}
    return doc


STEPS: dict[str, Step] = {
    "memory.observed": _observed,
    "memory.kept": _observed,
    "memory.pinned": _changed("pinned", lambda event: bool(event.get("pinned", True))),
    "memory.promoted": _changed("promoted", lambda _event: True),
    "memory.forgotten": _forgotten,
    "memory.handed_over": _handed_over,
    "decision.made": _decided,
}
