"""Memory for people and tools, in three layers: find (short), around (what was said near it), whole."""

import itertools
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery, StateQuery
from holdfast.features.memory import lookup
from holdfast.features.memory.index.catalogue import Hit, catalogue, text_of
from holdfast.features.memory.model import ACTIVE, CANDIDATE, DROPPED, FORGOTTEN, OBSERVATION, line, observation_ref
from holdfast.features.memory.session import told

SHORT = 240
MOST = 100
FARTHEST = 1000
AROUND = 6
SPARE = 20
"""More are fetched than shown: some may be forgotten or superseded."""
LOOKED_THROUGH = 2_000


def search(call: Call) -> dict[str, Any]:
    question = str(call.args.get("query") or "").strip()
    if not question:
        raise CommandRefused("a search needs words")
    limit = max(1, min(int(call.args.get("limit") or 10), MOST))
    offset = max(0, min(int(call.args.get("offset") or 0), FARTHEST))
    found, since = catalogue(call.state_dir), int(call.args.get("since") or 0)
    hits = found.find(call.reader, question, places=lookup.places(call), since=since, limit=offset + limit + SPARE)
    rows = (row for hit in hits if (row := _row(call, hit, str(call.args.get("type") or ""))))
    return {"hits": list(itertools.islice(rows, offset, offset + limit)), "texts": len(found)}


def _row(call: Call, hit: Hit, type_: str) -> dict[str, Any] | None:
    entry = hit.entry
    about = [doc for one in (entry.id, *hit.observations) if one and (doc := call.reader.state(observation_ref(one)))]
    doc = next(
        (d for d in about if d["status"] not in (FORGOTTEN, CANDIDATE, DROPPED) and (not type_ or d["type"] == type_)),
        None,
    )
    if (type_ and not doc) or (entry.id and not doc):
        return None
    event = None if entry.id else call.reader.event(entry.seq)
    text = doc["text"] if entry.id and doc else text_of(event) if event else ""
    return {
        "id": entry.id or f"e{entry.seq}", "kind": entry.kind, "type": doc["type"] if doc else "",
        "memory": doc["id"] if doc else "", "status": doc["status"] if doc else "",
        "text": line(text, SHORT), "session": entry.session, "at": entry.at,
        "project": event.project if event else doc["project"] if doc else entry.project,
        "seq": entry.seq, "evidence": doc["evidence"] if entry.id and doc else [entry.seq],
        "score": round(hit.score, 3),
    }  # fmt: skip


def around(call: Call) -> dict[str, Any]:
    """What was said before and after it, in the same session."""
    wanted = lookup.anything(call)
    session, seq = (wanted.session, wanted.seq) if isinstance(wanted, Event) else _place(wanted)
    if not session:
        return {"session": "", "said": []}
    most = max(1, min(int(call.args.get("limit") or AROUND), 50))
    kinds = (*lookup.SAID, "memory.observed")
    before = call.reader.events(EventQuery(session=session, kinds=kinds, before=seq + 1, limit=most + 1, newest=True))
    after = call.reader.events(EventQuery(session=session, kinds=kinds, after=seq, limit=most))
    return {"session": session, "said": [_said(event) for event in (*before, *after)]}


def _place(doc: Doc) -> tuple[str, int]:
    return doc["session"], (doc["evidence"] or [doc["seq"]])[0]


def _said(event: Event) -> dict[str, Any]:
    identity = event.get("id") if event.kind == "memory.observed" else f"e{event.seq}"
    return {"id": identity, "kind": event.kind, "at": event.at, "seq": event.seq, "text": line(text_of(event), SHORT)}


def show(call: Call) -> dict[str, Any]:
    wanted = lookup.anything(call)
    if isinstance(wanted, Event):
        return {
            "id": f"e{wanted.seq}", "kind": wanted.kind, "text": text_of(wanted), "session": wanted.session,
            "project": wanted.project, "at": wanted.at, "seq": wanted.seq, "evidence": [],
        }  # fmt: skip
    evidence = [event for seq in wanted["evidence"] if (event := call.reader.event(seq))]
    return {**wanted, "kind": "observation", "evidence": [_evidence(event) for event in evidence]}


def _evidence(event: Event) -> dict[str, Any]:
    what = event.get("prompt") or event.get("message") or event.get("command") or ", ".join(event.get("paths") or ())
    return {"seq": event.seq, "kind": event.kind, "at": event.at, "tool": event.tool, "text": line(what, SHORT)}


def listed(call: Call) -> dict[str, Any]:
    """Newest first."""
    limit, status = max(1, min(int(call.args.get("limit") or 20), MOST)), str(call.args.get("status") or ACTIVE)
    found = [
        doc
        for place in lookup.places(call) or [""]
        for _, doc in call.reader.states(StateQuery(kind=OBSERVATION, project=place, status=status, limit=limit))
    ]
    return {"observations": sorted(found, key=lambda doc: -doc["at"])[:limit]}


def injected(call: Call) -> dict[str, Any]:
    """What agents were told from memory, newest first, as it was told."""
    limit = max(1, min(int(call.args.get("limit") or 10), MOST))
    query = EventQuery(
        session=str(call.args.get("session") or ""), project="" if call.args.get("everywhere") else call.project,
        kinds=("decision.made",), limit=LOOKED_THROUGH, newest=True,
    )  # fmt: skip
    rows = [
        {"seq": e.seq, "at": e.at, "session": e.session, "moment": e.get("of_kind"), **context}
        for e in reversed(call.reader.events(query))
        for context in told(e)
    ]
    return {"injected": rows[:limit]}
