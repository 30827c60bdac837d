"""One self-contained HTML file: no script, no address, everything that came from outside is escaped."""

from collections.abc import Iterable
from html import escape

from holdfast.features.sessions.export.labels import format_moment, format_outcome, is_call, session_facts
from holdfast.features.sessions.figures import Figures
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.timeline import Row

STYLE = """
:root{color-scheme:light dark;--line:#8884;--dim:#888;--bad:#c33;--ok:#283}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
h2{border-bottom:1px solid var(--line);margin-top:2rem}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0}
time{color:var(--dim);font-variant-numeric:tabular-nums;margin-right:.6rem}
.prompt{border-left:3px solid #48c;padding-left:.8rem}
.answer{border-left:3px solid #2a6;padding-left:.8rem}
.failed{color:var(--bad)}.ok{color:var(--ok)}.lane{color:var(--dim)}
details{margin:.1rem 0}summary{cursor:pointer}ul{padding-left:1.2rem}
"""
# Even if something got past the escaping, no script runs and nothing is loaded.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def begin(session: Session, figures: Figures, summary: str) -> str:
    title = escape(session.title or session.id)
    facts = session_facts(session, figures)
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n'
        f"<dl>{listed}</dl>\n<h2>Summary</h2>\n<pre>{escape(summary)}</pre>\n<h2>Timeline</h2>\n"
    )


def body(rows: Iterable[Row]) -> str:
    return "".join(_render_row(row) for row in rows)


def end() -> str:
    return "</body></html>\n"


def _render_row(row: Row) -> str:
    at, text = f"<time>{format_moment(row.at)}</time>", escape(row.text)
    lane = f'<span class="lane">[{escape(row.lane_type or row.lane)}]</span> ' if row.lane else ""
    if row.synthetic:
        return f"<h3>Turn {row.turn}</h3>\n<div>{at}{lane}{escape(row.label)}: {text}</div>\n"
    if row.kind == "prompt.submitted":
        return f'<h3>Turn {row.turn}</h3>\n<div class="prompt">{at}{lane}<pre>{text}</pre></div>\n'
    if is_call(row):
        return _render_call(row, f"{at}{lane}<b>{escape(row.tool)}</b> <code>{text}</code>")
    if row.kind == "turn.ended" and row.text:
        return f'<div class="answer">{at}{lane}<pre>{text}</pre></div>\n'
    return f"<div>{at}{lane}{f'{escape(row.label)} {text}'.rstrip()}</div>\n"


def _render_call(row: Row, line: str) -> str:
    look = "failed" if row.outcome in ("failed", "denied", "interrupted") else "ok" if row.outcome == "ok" else ""
    line += f' <span class="{look}">{escape(format_outcome(row))}</span>'
    if not row.output:
        return f"<div>{line}</div>\n"
    return f"<details><summary>{line}</summary><pre>{escape(row.output)}</pre></details>\n"
