"""A session to keep or to send: Markdown, JSONL, or one HTML file that needs nothing else."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery
from holdfast.features.sessions.export import html, jsonl, markdown
from holdfast.features.sessions.figures import figures_of
from holdfast.features.sessions.jobs.summarise import summary_of
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.state.reducer import wanted_session
from holdfast.features.sessions.timeline import SHOWN_KINDS, rows_of
from holdfast.features.sessions.views import row_of, summary_view

READABLE = {"md": markdown, "markdown": markdown, "html": html}
# Events in one piece.
PAGE = 500


def export(call: Call) -> dict[str, Any]:
    """In pieces, so that a long session needs no memory: ask again with `after` until `next` is empty."""
    name = str(call.args.get("format") or "md")
    if name not in (*READABLE, "jsonl"):
        raise CommandRefused(f"there is no format {name!r}", fix="There are: md, jsonl, html.")
    session = wanted_session(call)
    after = int(call.args.get("after") or 0)
    # JSONL is the log itself; readable formats show what the timeline shows.
    kinds = () if name == "jsonl" else SHOWN_KINDS
    page = call.reader.events(EventQuery(session=session.id, kinds=kinds, after=after, limit=PAGE))
    last = len(page) < PAGE
    begin = "" if after else _export_header(name, session, call)
    body = jsonl.body(page) if name == "jsonl" else READABLE[name].body(rows_of(session, page, call.reader))
    end = html.end() if last and name == "html" else ""
    return {"id": session.id, "text": f"{begin}{body}{end}", "next": None if last else page[-1].seq}


def _export_header(name: str, session: Session, call: Call) -> str:
    figures = figures_of(session, call.reader, call.now, call.settings)
    if name == "jsonl":
        return jsonl.begin({**row_of(session, call), "summary": summary_view(session, call.reader, figures)})
    text = summary_of(session, call.reader, figures).text
    return str(READABLE[name].begin(session, figures, text))
