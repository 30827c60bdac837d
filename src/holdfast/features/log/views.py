"""Events for people and tools: pages, one whole, and the proof that none is missing."""

from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery

SHOWN = ("seq", "at", "kind", "session", "project", "agent", "tool", "data", "key")
LONGEST_PAGE = 1000
GAPS_NAMED = 20


def shown_fields(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in SHOWN}


def list_events(call: Call) -> dict[str, Any]:
    """A page. `next` is the `before` (or `after`) of the following one."""
    args = {name: call.args[name] for name in EventQuery.__struct_fields__ if call.args.get(name)}
    query = msgspec.convert({"limit": 100, "newest": not args.get("after"), **args}, EventQuery, strict=False)
    if query.limit > LONGEST_PAGE:
        raise CommandRefused(f"a page has at most {LONGEST_PAGE} events")
    page = call.reader.events(query)
    return {"events": [shown_fields(e) for e in page], "next": _next_page(page, query)}


def _next_page(page: list[Event], query: EventQuery) -> dict[str, int] | None:
    if len(page) < query.limit:
        return None
    return {"before": page[0].seq} if query.newest else {"after": page[-1].seq}


def show_event(call: Call) -> dict[str, Any]:
    stored = call.reader.event(int(call.args["seq"]))
    if not stored:
        raise CommandRefused(f"there is no event {call.args['seq']}")
    body = stored.body.decode("utf-8", "replace")
    return {**shown_fields(stored), "body": body, "body_size": stored.body_size, "body_hash": stored.body_hash}


def verify_log(call: Call) -> dict[str, Any]:
    """Every number from 1 to the head is there once; gaps are named. With `keys`, each of them is in the log."""
    gaps: list[list[int]] = []
    seen = last = 0
    for stored in call.reader.replay():
        if stored.seq != last + 1:
            gaps.append([last + 1, stored.seq - 1])
        last = stored.seq
        seen += 1
    keys = [str(k) for k in call.args.get("keys") or ()]
    missing = sorted(set(keys) - set(call.reader.known(keys)))
    return {"events": seen, "head": last, "gaps": gaps[:GAPS_NAMED], "missing": missing}
