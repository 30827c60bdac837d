"""A session to keep or to send: Markdown, JSONL, or one HTML file that needs nothing else."""

from collections.abc import Iterable
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, EventQuery
from holdfast.features.sessions import lookup, timeline, views
from holdfast.features.sessions.export import html, jsonl, markdown

FORMATS = {"md": markdown, "markdown": markdown, "jsonl": jsonl, "html": html}
PAGE = 500


def export(call: Call) -> dict[str, Any]:
    """In pieces, so that a long session needs no memory: ask again with `after` until `next` is empty."""
    named = str(call.args.get("format") or "md")
    style = FORMATS.get(named)
    if not style:
        raise CommandRefused(f"there is no format {named!r}", fix="There are: md, jsonl, html.")
    doc = lookup.wanted(call)
    after = int(call.args.get("after") or 0)
    kinds = () if style is jsonl else timeline.SHOWN_KINDS
    page = call.reader.events(EventQuery(session=doc["id"], kinds=kinds, after=after, limit=PAGE))
    last = len(page) < PAGE
    parts = [
        "" if after else style.begin(_facts(doc, call)),
        style.body(_paired(doc, page, call)) if style is not jsonl else jsonl.body(page),
        style.end() if last else "",
    ]
    return {"id": doc["id"], "text": "".join(parts), "next": None if last else page[-1].seq}


def _facts(doc: Doc, call: Call) -> dict[str, Any]:
    return {**views.row(doc, call), "summary": views.summary_of(doc, call.reader)}


def _paired(doc: Doc, page: list[Event], call: Call) -> Iterable[dict[str, Any]]:
    entries = timeline.entries(doc, page, call.reader)
    outputs = {e.seq: e.get("output") or e.get("error") or "" for e in page if e.kind in timeline.ENDS}
    return [{**entry, "output": outputs.get(entry["seq"], "")} for entry in entries]
