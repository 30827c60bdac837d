"""A session's happenings as rows by range: a list of a hundred thousand of them is scrolled without reading them all."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery, Reader
from holdfast.features.sessions import lookup, timeline, views

SHOWN = tuple(kind for kind in timeline.SHOWN_KINDS if kind != "tool.started")
ONLY: dict[str, tuple[str, ...]] = {
    "": SHOWN,
    "prompts": ("prompt.submitted", "turn.ended", "turn.failed", "turn.interrupted"),
    "tools": timeline.ENDS,
    "failures": ("tool.failed", "turn.failed", "permission.denied", "session.lost"),
    "decisions": ("decision.made",),
    "subagents": ("subagent.started", "subagent.ended"),
}
EVERY = 200
LONGEST_PAGE = 500
LOOK_BACK = 400
SEARCHED_AT_ONCE = 10_000
SEARCH_PAGE = 1_000
MOST_TURNS, MOST_MARKS = 400, 400


def rows(call: Call) -> dict[str, Any]:
    """From event `start` on, or before `before`, or the last ones; with `q`, only those with these words in them."""
    doc = lookup.wanted(call)
    args, kinds = call.args, ONLY.get(str(call.args.get("only") or ""), SHOWN)
    limit = max(1, min(int(args.get("limit") or EVERY), LONGEST_PAGE))
    start, before = int(args.get("start") or 0), int(args.get("before") or 0)
    after = max(0, start - 1)
    query = EventQuery(session=doc["id"], kinds=kinds, after=after, before=before, limit=limit, newest=not start)
    words = str(args.get("q") or "").strip()
    page, older = _matching(call.reader, query, words) if words else _page(call.reader, query)
    return {"rows": shown(doc, page, call.reader), "older": older, "now": call.now}


def _page(reader: Reader, query: EventQuery) -> tuple[list[Event], int]:
    page = reader.events(query)
    return page, page[0].seq if len(page) == query.limit else 0


def _matching(reader: Reader, query: EventQuery, words: str) -> tuple[list[Event], int]:
    """Newest first, so many at a go; `older` says where to look on."""
    wanted, found, looked, before = words.casefold(), list[Event](), 0, query.before
    while len(found) < query.limit and looked < SEARCHED_AT_ONCE:
        page = reader.events(msgspec.structs.replace(query, after=0, before=before, limit=SEARCH_PAGE, newest=True))
        for event in reversed(page):
            if len(found) < query.limit and wanted in _haystack(event):
                found.append(event)
                before = event.seq
        looked += len(page)
        if len(page) < SEARCH_PAGE:
            return found[::-1], before if len(found) == query.limit else 0
        before = before if len(found) == query.limit else page[0].seq
    return found[::-1], before


def _haystack(event: Event) -> str:
    return f"{event.tool} {event.kind} {msgspec.json.encode(event.data, enc_hook=str).decode()}".casefold()


def shown(doc: Doc, page: Sequence[Event], reader: Reader) -> list[dict[str, Any]]:
    numbers = timeline.turn_numbers(doc, page, reader)
    turns = {n: views.turn(doc, reader, n) or {} for n in set(numbers)}
    begun, exits = _begun(doc, page, reader), timeline.exits_read(doc, page, reader)
    return [
        {
            **timeline.entry(event, n, exits),
            **_extent(event, begun),
            "text": _within(doc, timeline.text(event)),
            "turn_at": turns[n].get("at", 0),
            "turn_end": turns[n].get("end", 0) or doc["at"],
            "action": event.get("action", ""),
            "verdict": event.get("verdict", ""),
            "of_kind": event.get("of_kind", ""),
            "told": sum(c.get("tokens", 0) for c in event.get("contexts", ())),
        }
        for event, n in zip(page, numbers, strict=True)
    ]


def _within(doc: Doc, text: str) -> str:
    """A path of the project without what all of them begin with."""
    for folder in (doc["project"], doc["cwd"]):
        if folder and text.startswith(f"{folder}/"):
            return text[len(folder) + 1 :]
    return text


def _extent(event: Event, begun: dict[str, int]) -> dict[str, int]:
    """When it began and how long it took: as the agent measured, else as we saw it."""
    ms = event.get("ms")
    if event.kind not in timeline.ENDS:
        return {"began": event.at, "ms": 0}
    if not isinstance(ms, int | float):
        ms = max(0, event.at - begun.get(event.get("call", ""), event.at))
    return {"began": event.at - int(ms), "ms": int(ms)}


def _begun(doc: Doc, page: Sequence[Event], reader: Reader) -> dict[str, int]:
    if not any(e.kind in timeline.ENDS and "ms" not in e.data for e in page):
        return {}
    query = EventQuery(session=doc["id"], kinds=("tool.started",), before=page[-1].seq, newest=True, limit=LOOK_BACK)
    return {e.get("call", ""): e.at for e in reader.events(query)}


def marks(call: Call) -> dict[str, Any]:
    """The number of every two-hundredth row, and how many rows there are: what a scroll bar needs."""
    doc = lookup.wanted(call)
    query = EventQuery(session=doc["id"], kinds=ONLY.get(str(call.args.get("only") or ""), SHOWN))
    found = call.reader.marks(query, EVERY)
    last = msgspec.structs.replace(query, after=found[-1] - 1, limit=EVERY) if found else None
    rest = call.reader.events(last) if last else []
    total = max(0, len(found) - 1) * EVERY + len(rest)
    return {"marks": found, "every": EVERY, "total": total, "last": rest[-1].seq if rest else 0}


def overview(call: Call) -> dict[str, Any]:
    """The whole session at a glance: its latest turns and lanes, and where something was refused or told."""
    doc = lookup.wanted(call)
    query = EventQuery(session=doc["id"], kinds=("decision.made",), newest=True, limit=MOST_MARKS)
    turns = views.turns(doc, call.reader, limit=MOST_TURNS)
    fields = ("n", "at", "end", "how", "tools", "failed", "prompt", "first")
    return {
        "turns": [{name: turn.get(name) for name in fields} | {"tokens": turn.get("tokens")} for turn in turns],
        "lanes": [{"id": lane, **entry} for lane, entry in doc["lanes"].items()],
        "decisions": [
            {"seq": e.seq, "at": e.at, "deny": e.get("verdict") == "deny"} for e in call.reader.events(query)
        ],
        "running": list(doc["running"].values()),
        "from": turns[0]["at"] if turns else doc["started_at"],
        "to": doc["ended_at"] or doc["at"],
    }
