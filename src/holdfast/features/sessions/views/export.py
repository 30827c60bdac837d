"""A session to keep or to send: Markdown, JSONL, or one HTML file that needs nothing else."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.look import document_style
from holdfast.core.ports import EventQuery
from holdfast.core.times import format_duration
from holdfast.features.sessions.jobs.summarise import summary_of
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.state.reducer import wanted_session
from holdfast.features.sessions.views import row_of, summary_view
from holdfast.features.sessions.views.figures import (
    UNKNOWN,
    Figures,
    describe_end,
    figures_of,
    format_cost,
    format_tokens,
    format_work,
)
from holdfast.features.sessions.views.timeline import SHOWN_KINDS, Row, rows_of

# What the readable formats say the same way.


def format_moment(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    # An agent's clock may say anything.
    except (OverflowError, OSError, ValueError):
        return str(at_ms)


def is_call(row: Row) -> bool:
    return row.kind in ("tool.started", "tool.finished", "tool.failed")


def format_outcome(row: Row) -> str:
    """How a call ended, with its exit code or the reason of a denial."""
    if row.outcome == "failed" and row.exit_code is not None:
        return f"failed ({row.exit_code})"
    if row.outcome == "denied" and row.reason:
        return f"denied: {row.reason}"
    return row.outcome or UNKNOWN


def session_facts(session: Session, figures: Figures) -> list[tuple[str, str]]:
    why = describe_end(session)
    ended = f" {format_moment(session.ended_at)} ({why})" if session.ended_at else ""
    facts: list[tuple[str, Any]] = [
        ("session", session.id),
        ("agent", session.agent),
        ("project", session.project),
        ("state", f"{figures.state}{ended}"),
        ("started", format_moment(session.started_at)),
        ("duration", format_duration(figures.duration_ms)),
        ("work", format_work(figures)),
        ("tokens", format_tokens(figures.spent)),
        ("cost", format_cost(figures.spent)),
    ]
    if session.pull_requests:
        facts.append(("pull requests", ", ".join(session.pull_requests)))
    if session.parent:
        facts.append(("continues", f"{session.parent} ({session.parent_reason})"))
    return facts


# Markdown. Text of agents and users is quoted or fenced, so that it cannot become the document's own structure.

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def begin_markdown(session: Session, figures: Figures, summary: str) -> str:
    lines = [f"# {_one_line(session.title or session.id)}", ""]
    lines += [f"- **{name}**: {_one_line(value)}" for name, value in session_facts(session, figures)]
    lines += ["", "## Summary", "", *(f"{_one_line(line)}  " for line in summary.splitlines()), "", "## Timeline"]
    return "\n".join(lines) + "\n"


def markdown_rows(rows: Iterable[Row]) -> str:
    return "".join(_markdown_row(row) for row in rows)


def _markdown_row(row: Row) -> str:
    at = format_moment(row.at)
    lane = f" [{_one_line(row.lane_type or row.lane)}]" if row.lane else ""
    if row.synthetic:
        return f"\n### Turn {row.turn} · {at}{lane}\n\n{row.label}: {_one_line(row.text)}\n\n"
    if row.kind == "prompt.submitted":
        return f"\n### Turn {row.turn} · {at}{lane}\n\n{_quote_block(row.text)}\n\n"
    if is_call(row):
        line = f"- {at}{lane} **{_one_line(row.tool)}** {_one_line(row.text)} — {_one_line(format_outcome(row))}\n"
        return line + (f"\n{_code_fence(row.output)}\n\n" if row.output else "")
    if row.kind == "turn.ended" and row.text:
        return f"\n{at}{lane}\n\n{_quote_block(row.text)}\n\n"
    return f"- {at}{lane} {row.label} {_one_line(row.text)}".rstrip() + "\n"


def escape_markdown(text: str) -> str:
    """Every character that Markdown could take for its own, with a backslash before it."""
    return _SPECIAL.sub(r"\\\1", text)


def _one_line(text: str) -> str:
    return escape_markdown(" ".join(str(text).split()))


def _quote_block(text: str) -> str:
    return "\n".join(f"> {escape_markdown(line)}" for line in text.splitlines() or [""])


def _code_fence(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    # Longer than any run of backticks in the text, so that it cannot end the block.
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


# One self-contained HTML file: no script, no address, everything that came from outside is escaped.

# Even if something got past the escaping, no script runs and nothing is loaded.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def begin_html(session: Session, figures: Figures, summary: str) -> str:
    title = escape(session.title or session.id)
    facts = session_facts(session, figures)
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{document_style()}</style></head>\n<body><main><h1>{title}</h1>\n'
        f'<dl class="card">{listed}</dl>\n<h2>Summary</h2>\n<pre>{escape(summary)}</pre>\n<h2>Timeline</h2>\n'
    )


def html_rows(rows: Iterable[Row]) -> str:
    return "".join(_html_row(row) for row in rows)


def end_html() -> str:
    return "</main></body></html>\n"


def _html_row(row: Row) -> str:
    at, text = f"<time>{format_moment(row.at)}</time>", escape(row.text)
    lane = f'<span class="dim">[{escape(row.lane_type or row.lane)}]</span> ' if row.lane else ""
    if row.synthetic:
        return f"<h3>Turn {row.turn}</h3>\n<div>{at}{lane}{escape(row.label)}: {text}</div>\n"
    if row.kind == "prompt.submitted":
        return f'<h3>Turn {row.turn}</h3>\n<div class="card">{at}{lane}<pre>{text}</pre></div>\n'
    if is_call(row):
        return _html_call(row, f"{at}{lane}<b>{escape(row.tool)}</b> <code>{text}</code>")
    if row.kind == "turn.ended" and row.text:
        return f'<div class="card">{at}{lane}<pre>{text}</pre></div>\n'
    return f"<div>{at}{lane}{f'{escape(row.label)} {text}'.rstrip()}</div>\n"


def _html_call(row: Row, line: str) -> str:
    look = "failed" if row.outcome in ("failed", "denied", "interrupted") else "ok" if row.outcome == "ok" else ""
    line += f' <span class="{look}">{escape(format_outcome(row))}</span>'
    if not row.output:
        return f"<div>{line}</div>\n"
    return f"<details><summary>{line}</summary><pre>{escape(row.output)}</pre></details>\n"


# One event a line, as it is in the log; the first line is the session itself.

FIELDS = ("seq", "at", "kind", "session", "project", "agent", "tool", "data", "key")
_encode_json = msgspec.json.Encoder(enc_hook=str).encode


def begin_jsonl(facts: dict[str, Any]) -> str:
    return _encode_line({"type": "session", **facts})


def jsonl_events(events: Iterable[Event]) -> str:
    return "".join(
        _encode_line({"type": "event", **{name: getattr(event, name) for name in FIELDS}}) for event in events
    )


def _encode_line(value: dict[str, Any]) -> str:
    return _encode_json(value).decode() + "\n"


MARKDOWN = (begin_markdown, markdown_rows)
READABLE = {"md": MARKDOWN, "markdown": MARKDOWN, "html": (begin_html, html_rows)}
"""How each begins, and how it shows rows of the timeline."""
# Events in one piece.
PAGE = 500


def export(call: Call) -> dict[str, Any]:
    """In pieces, so that a long session needs no memory: ask again with `after` until `next` is empty."""
    name = str(call.args.get("format") or "md")
    if name not in (*READABLE, "jsonl"):
        raise CommandRefused(f"unknown export format {name!r}", fix="Use one of: md, jsonl, html.")
    session = wanted_session(call)
    after = int(call.args.get("after") or 0)
    # JSONL is the log itself; readable formats show what the timeline shows.
    kinds = () if name == "jsonl" else SHOWN_KINDS
    page = call.reader.events(EventQuery(session=session.id, kinds=kinds, after=after, limit=PAGE))
    last = len(page) < PAGE
    begin = "" if after else _export_header(name, session, call)
    body = jsonl_events(page) if name == "jsonl" else READABLE[name][1](rows_of(session, page, call.reader))
    end = end_html() if last and name == "html" else ""
    return {"id": session.id, "text": f"{begin}{body}{end}", "next": None if last else page[-1].seq}


def _export_header(name: str, session: Session, call: Call) -> str:
    figures = figures_of(session, call.reader, call.now, call.settings)
    if name == "jsonl":
        return begin_jsonl({**row_of(session, call), "summary": summary_view(session, call.reader, figures)})
    text = summary_of(session, call.reader, figures).text
    return READABLE[name][0](session, figures, text)
