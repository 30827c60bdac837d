"""What happened in a session, in order: every prompt and every tool call, once, under its turn."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery, Reader
from holdfast.features.sessions import lookup, views
from holdfast.features.sessions.exits import EXIT_READ
from holdfast.features.sessions.model import KINDS, about

ENDS = ("tool.finished", "tool.failed")
QUIET = (
    "permission.granted", "tokens.read", "turn.processed", "turn.adopted", "session.process", "session.summarised", EXIT_READ,
)  # fmt: skip
SHOWN_KINDS = (
    "session.started", "session.ended", "prompt.submitted", "tool.started", *ENDS, "permission.requested",
    "permission.denied", "turn.ended", "turn.failed", "turn.interrupted", "subagent.started", "subagent.ended",
    "compact.ended", "notification", "model.switched", "task.created", "task.completed", "elicitation.requested",
    "decision.made", "note.added", *(kind for kind in KINDS if kind not in QUIET),
)  # fmt: skip
LONGEST_PAGE = 500
LOOK_AHEAD = 200


def timeline(call: Call) -> dict[str, Any]:
    """A page from the end (or before `before`), oldest first. `next` is the `before` of the page before it."""
    doc = lookup.wanted(call)
    limit = max(1, min(int(call.args.get("limit") or 100), LONGEST_PAGE))
    page = call.reader.events(
        EventQuery(
            session=doc["id"], kinds=SHOWN_KINDS, before=int(call.args.get("before") or 0), limit=limit, newest=True
        )
    )
    return {
        "session": views.row(doc, call),
        "entries": entries(doc, page, call.reader),
        "next": page[0].seq if len(page) == limit else None,
        "now": call.now,
    }


def entries(doc: Doc, page: Sequence[Event], reader: Reader) -> list[dict[str, Any]]:
    ended = _ended_calls(doc, page, reader)
    shown = [e for e in page if e.kind != "tool.started" or e.get("call") not in ended]
    numbers = turn_numbers(doc, shown, reader)
    exits = exits_read(doc, shown, reader)
    return [entry(event, n, exits) for event, n in zip(shown, numbers, strict=True)]


def exits_read(doc: Doc, page: Sequence[Event], reader: Reader) -> dict[int, dict[str, Any]]:
    """How commands ended that the agent's hook said nothing of, by the numbers of their events."""
    silent = [e.seq for e in page if e.kind in ENDS and e.get("action") == "shell" and "exit_code" not in e.data]
    if not silent:
        return {}
    query = EventQuery(session=doc["id"], kinds=(EXIT_READ,), after=silent[0], limit=len(page) + LOOK_AHEAD)
    return {e.get("of"): {name: e.get(name) for name in ("ok", "exit_code")} for e in reader.events(query)}


def entry(event: Event, turn: int, exits: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    data = event.data
    found = {
        "seq": event.seq, "at": event.at, "kind": event.kind, "turn": turn, "tool": event.tool,
        "lane": data.get("lane", ""), "lane_type": data.get("lane_type", ""), "text": text(event),
    }  # fmt: skip
    found |= {name: data[name] for name in ("call", "ok", "exit_code", "ms", "synthetic") if name in data}
    return found | exits.get(event.seq, {})


def text(event: Event) -> str:
    data, kind = event.data, event.kind
    if kind in ("prompt.submitted", "turn.ended", "turn.failed", "notification"):
        return str(data.get("prompt") or data.get("message") or data.get("error") or "")
    if kind == "decision.made":
        told = [str(c.get("source", "")) for c in data.get("contexts", ())]
        return f"{data.get('verdict')}: {'; '.join(data.get('reasons', ())) or ', '.join(told)}"
    if event.tool:
        return about(event)
    words = (data.get(name) for name in ("source", "reason", "subject", "text", "new", "trigger", "parent", "child"))
    return str(next((word for word in words if word), ""))


def _ended_calls(doc: Doc, page: Sequence[Event], reader: Reader) -> set[str]:
    """Calls whose end is told in this page or on the next one: there they are shown, not here."""
    ended = {e.get("call") for e in page if e.kind in ENDS and e.get("call")}
    begun = {e.get("call") for e in page if e.kind == "tool.started" and e.get("call")}
    if page and begun - ended - doc["running"].keys():
        later = EventQuery(session=doc["id"], kinds=ENDS, after=page[-1].seq, limit=LOOK_AHEAD)
        ended |= {e.get("call") for e in reader.events(later)}
    return ended


def turn_numbers(doc: Doc, page: Sequence[Event], reader: Reader) -> list[int]:
    """Turns begin where their documents say; walked downwards from the last one that begins in or before the page."""
    if not page or not doc["turn"]:
        return [0] * len(page)
    n = _turn_at(doc, reader, page[-1].seq)
    numbers, first = [], _first(doc, reader, n)
    for event in reversed(page):
        while n and event.seq < first:
            n -= 1
            first = _first(doc, reader, n)
        numbers.append(n)
    return numbers[::-1]


def _turn_at(doc: Doc, reader: Reader, seq: int) -> int:
    low, high = 0, doc["turn"]["n"]
    while low < high:
        middle = (low + high + 1) // 2
        if _first(doc, reader, middle) <= seq:
            low = middle
        else:
            high = middle - 1
    return low


def _first(doc: Doc, reader: Reader, n: int) -> int:
    found = views.turn(doc, reader, n) if n else None
    return found["first"] if found else 0
