"""Views of memory in three layers: search results, surroundings, full text."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.memory_events import RememberedPayload
from holdfast.core.ports import EventQuery
from holdfast.core.text import estimate_tokens
from holdfast.features.memory.index.catalogue import Entry, Hit, open_catalogue
from holdfast.features.memory.policy import has_expired
from holdfast.features.memory.policy.compaction import recall_text
from holdfast.features.memory.policy.handoff import gate_names
from holdfast.features.memory.settings import settings_or_default
from holdfast.features.memory.state import documents, lookup
from holdfast.features.memory.state.lookup import text_of
from holdfast.features.memory.state.quirk_book import QUIRKS, as_row, quirks_ref
from holdfast.features.memory.state.session_state import memory_contexts

# Characters of a text in a list.
SHORT = 240
MOST = 100
FARTHEST = 1000
AROUND = 6
SPARE = 20
"""More are fetched than shown, because some may be forgotten or superseded."""
LOOKED_THROUGH = 2_000
HIDDEN = (documents.FORGOTTEN, documents.CANDIDATE, documents.DROPPED)
EXPIRED = "expired"
"""Replaces `active` once the end that the words named has passed."""
FEW_WORDS = 2
NO_MEMORY = {"type": "", "memory": "", "status": ""}


def _bounded_number(call: Call, name: str, default: int, least: int, most: int) -> int:
    return max(least, min(int(call.args.get(name) or default), most))


def search(call: Call) -> dict[str, Any]:
    question = str(call.args.get("query") or "").strip()
    if not question:
        raise CommandRefused("a search needs words")
    type_ = str(call.args.get("type") or "")
    if type_ and type_ not in documents.TYPES:
        raise CommandRefused(f"there is no type {type_!r}", fix=f"One of: {', '.join(documents.TYPES)}")
    limit, offset = _bounded_number(call, "limit", 10, 1, MOST), _bounded_number(call, "offset", 0, 0, FARTHEST)
    index, since = open_catalogue(call.state_dir), int(call.args.get("since") or 0)
    found = index.find(
        call.reader, question, places=lookup.memory_places(call), since=since, limit=offset + limit + SPARE
    )
    rows = (row for hit in found.hits if (row := _hit_row(call, hit, type_)) and not _is_empty_talk(row, question))
    page = list(itertools.islice(rows, offset, offset + limit))
    return {"hits": page, "texts": len(index), "left": found.left}


def _hit_row(call: Call, hit: Hit, type_: str) -> dict[str, Any] | None:
    entry = hit.entry
    docs = [d for d in _hit_observations(call, hit) if d.status not in HIDDEN and type_ in ("", d.type)]
    # Of several memories of one moment the valid one: a moment counts as replaced once all are.
    doc = min(docs, key=lambda d: _status_now(call, d) != documents.ACTIVE, default=None)
    # With a type only memories match; a moment of the conversation has none.
    if (type_ or entry.id) and not doc:
        return None
    said = {"type": doc.type, "memory": doc.id, "status": _status_now(call, doc)} if doc else NO_MEMORY
    row = {"kind": entry.kind, **said, "session": entry.session, "at": entry.at, "seq": entry.seq}
    return {**row, **_hit_text(call, entry, doc), "score": round(hit.score, 3)}


def _hit_text(call: Call, entry: Entry, doc: documents.Observation | None) -> dict[str, Any]:
    if entry.id and doc:
        return {
            "id": entry.id, "text": documents.one_line(doc.text, SHORT), "project": doc.project, "evidence": doc.evidence,
        }  # fmt: skip
    event = call.reader.event(entry.seq)
    text, project = (text_of(event), event.project) if event else ("", doc.project if doc else entry.project)
    return {"id": f"e{entry.seq}", "text": documents.one_line(text, SHORT), "project": project, "evidence": [entry.seq]}


def _status_now(call: Call, doc: documents.Observation) -> str:
    return EXPIRED if doc.status == documents.ACTIVE and has_expired(doc, documents.day_of(call.now)) else doc.status


def _is_empty_talk(row: dict[str, Any], question: str) -> bool:
    """An "ok" among the results says nothing, unless it is what was asked for."""
    words = set(row["text"].lower().split())
    return (
        not row["memory"]
        and len(words) <= FEW_WORDS
        and words.isdisjoint(question.lower().split())
        and row["text"].isascii()
    )


def _hit_observations(call: Call, hit: Hit) -> Iterator[documents.Observation]:
    for identity in (hit.entry.id, *hit.observations):
        if identity and (doc := documents.OBSERVATION.load(call.reader, documents.observation_ref(identity).key)):
            yield doc


def around(call: Call) -> dict[str, Any]:
    """What was said before and after, in the same session."""
    item = lookup.find_memory_or_event(call)
    _refuse_candidate(call, item)
    if isinstance(item, Event):
        session, seq = item.session, item.seq
    else:
        # Around its source, not around the event that recorded it.
        session, seq = item.session, (item.evidence or [item.seq])[0]
    if not session:
        return {"session": "", "said": []}
    most = _bounded_number(call, "limit", AROUND, 1, 50)
    kinds = (*lookup.SAID, "memory.observed", "memory.kept")
    # One more than requested: the moment itself is among them.
    before = call.reader.events(EventQuery(session=session, kinds=kinds, before=seq + 1, limit=most + 1, newest=True))
    after = call.reader.events(EventQuery(session=session, kinds=kinds, after=seq, limit=most))
    said = (event for event in (*before, *after) if not _is_waiting(call, event))
    return {"session": session, "said": [_said_fields(event) for event in said]}


def _refuse_candidate(call: Call, item: Event | documents.Observation) -> None:
    """What waits for a person reaches no agent."""
    if isinstance(item, documents.Observation) and item.status in HIDDEN and lookup.is_agent(call):
        raise CommandRefused(f"{item.id} waits for a person", fix=lookup.FIX)


def _is_waiting(call: Call, event: Event) -> bool:
    if not isinstance(event.data, RememberedPayload):
        return False
    doc = documents.OBSERVATION.load(call.reader, documents.observation_ref(event.data.id).key)
    return doc is not None and doc.status in HIDDEN


def _said_fields(event: Event) -> dict[str, Any]:
    identity = event.data.id if isinstance(event.data, RememberedPayload) else f"e{event.seq}"
    text = documents.one_line(text_of(event), SHORT)
    return {"id": identity, "kind": event.kind, "at": event.at, "seq": event.seq, "text": text}


def show(call: Call) -> dict[str, Any]:
    item = lookup.find_memory_or_event(call)
    _refuse_candidate(call, item)
    if isinstance(item, Event):
        return {
            "id": f"e{item.seq}", "kind": item.kind, "text": text_of(item), "session": item.session,
            "project": item.project, "at": item.at, "seq": item.seq, "evidence": [],
        }  # fmt: skip
    evidence = [event for seq in item.evidence if (event := call.reader.event(seq))]
    return {
        **msgspec.to_builtins(item),
        "status": _status_now(call, item),
        "kind": "observation",
        "evidence": [_evidence_fields(event) for event in evidence],
    }


def _evidence_fields(event: Event) -> dict[str, Any]:
    data = event.data
    command, paths = getattr(data, "command", ""), getattr(data, "paths", ())
    what = text_of(event) or command or ", ".join(paths)
    return {
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "tool": event.tool,
        "text": documents.one_line(what, SHORT),
    }


def listed(call: Call) -> dict[str, Any]:
    """Newest first."""
    limit, status = _bounded_number(call, "limit", 20, 1, MOST), str(call.args.get("status") or documents.ACTIVE)
    if status in HIDDEN and lookup.is_agent(call):
        raise CommandRefused("candidates are for a person to see", fix="Your person runs: holdfast memory review")
    observations = [
        doc
        for project in lookup.memory_places(call) or [""]
        for _, doc in documents.OBSERVATION.list(call.reader, project=project, status=status, limit=limit)
    ]
    newest = sorted(observations, key=lambda doc: -doc.at)[:limit]
    return {
        "observations": [{**msgspec.to_builtins(doc), "expired": _status_now(call, doc) == EXPIRED} for doc in newest]
    }


def injected(call: Call) -> dict[str, Any]:
    """What was injected from memory, newest first, verbatim."""
    limit = _bounded_number(call, "limit", 10, 1, MOST)
    query = EventQuery(
        session=str(call.args.get("session") or ""), project="" if call.args.get("everywhere") else call.project,
        kinds=("decision.made",), limit=LOOKED_THROUGH, newest=True,
    )  # fmt: skip
    rows = (row for event in reversed(call.reader.events(query)) for row in _injection_rows(event))
    return {"injected": list(itertools.islice(rows, limit))}


def _injection_rows(event: Event) -> Iterator[dict[str, Any]]:
    data: DecisionMade = event.data
    for context in memory_contexts(event):
        yield {
            "seq": event.seq, "at": event.at, "session": event.session, "moment": data.of_kind,
            "source": context.source, "text": context.text, "tokens": context.tokens,
        }  # fmt: skip


def recall(call: Call) -> dict[str, Any]:
    """Request, limits and exact commands of one session, as a compaction would put them back."""
    session = str(call.args.get("session") or call.session or lookup.newest_session(call))
    doc = documents.SESSION.load(call.reader, documents.session_ref(session).key) if session else None
    if doc is None:
        raise CommandRefused("no session of this project is known to memory", fix="See: holdfast session list")
    gates = gate_names(documents.SESSION_GATES.load(call.reader, session))
    text = recall_text(
        msgspec.structs.replace(doc, summary=""), gates, settings_or_default(call.settings), compacted=False
    )
    return {"session": session, "project": doc.project, "text": text, "tokens": estimate_tokens(text)}


def quirks(call: Call) -> dict[str, Any]:
    """Of this project's repository, the most frequent first."""
    books = (QUIRKS.load(call.reader, quirks_ref(place).key) for place in lookup.memory_places(call))
    every = [quirk for book in books if book for quirk in book.quirks.values()]
    rows = [as_row(quirk) for quirk in sorted(every, key=lambda one: (-len(one.sessions), -one.at))]
    return {"quirks": [row for row in rows if row["known"] or call.args.get("all")]}
