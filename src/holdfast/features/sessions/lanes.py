"""Subagents are lanes inside their parent's session (H6): keyed by session + agent id, never sessions of their own."""

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import MOST_LANES, head


def touched(doc: Doc, event: Event, tools: int = 0) -> None:
    """Something happened in a lane. One whose beginning was missed begins here; one that ended stays ended."""
    lane = event.get("lane", "")
    if not lane:
        return
    known = doc["lanes"].get(lane)
    if known is None:
        doc["lanes_seen"] += 1
        known = {"type": head(event.get("lane_type"), 40), "at": event.at, "end": 0, "tools": 0, "last": event.at}
    entry = {**known, "tools": known["tools"] + tools, "last": event.at}
    doc["lanes"] = _capped({**doc["lanes"], lane: entry})


def ended(doc: Doc, event: Event) -> None:
    """Its transcript is a file of its own, whose token use is still to be read."""
    touched(doc, event)
    known = doc["lanes"].get(event.get("lane", ""))
    if known is None:
        return
    entry = {**known, "end": known["end"] or event.at or 1}
    if event.get("lane_transcript") and "read" not in known:
        entry["transcript"] = event.get("lane_transcript")
    doc["lanes"] = {**doc["lanes"], event.get("lane", ""): entry}


def tokens_read(doc: Doc, lane: str) -> None:
    known = doc["lanes"].get(lane)
    if known:
        kept = {name: value for name, value in known.items() if name != "transcript"}
        doc["lanes"] = {**doc["lanes"], lane: {**kept, "read": True}}


def all_ended(doc: Doc, event: Event) -> None:
    if any_open(doc):
        doc["lanes"] = {k: v if v["end"] else {**v, "end": event.at or 1} for k, v in doc["lanes"].items()}


def any_open(doc: Doc) -> bool:
    return any(not lane["end"] for lane in doc["lanes"].values())


def _capped(lanes: dict[str, Doc]) -> dict[str, Doc]:
    """Those that ended go first, the oldest of them before the others."""
    while len(lanes) > MOST_LANES:
        victim = next((k for k, v in lanes.items() if v["end"]), None) or next(iter(lanes))
        lanes = {k: v for k, v in lanes.items() if k != victim}
    return lanes
