"""One self-contained HTML file: no script, no address, everything that came from outside is escaped."""

from collections.abc import Iterable
from html import escape
from typing import Any

from holdfast.features.sessions.export import words

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
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def begin(session: dict[str, Any]) -> str:
    title = escape(session["title"] or session["id"])
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in words.facts(session))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n'
        f"<dl>{facts}</dl>\n<h2>Summary</h2>\n<pre>{escape(session['summary']['text'])}</pre>\n<h2>Timeline</h2>\n"
    )


def body(entries: Iterable[dict[str, Any]]) -> str:
    return "".join(_entry(entry) for entry in entries)


def end() -> str:
    return "</body></html>\n"


def _entry(entry: dict[str, Any]) -> str:
    at = f"<time>{words.moment(entry['at'])}</time>"
    text = escape(entry["text"])
    lane = f'<span class="lane">[{escape(entry["lane_type"] or entry["lane"])}]</span> ' if entry["lane"] else ""
    if words.is_prompt(entry):
        return f'<h3>Turn {entry["turn"]}</h3>\n<div class="prompt">{at}<pre>{text}</pre></div>\n'
    if words.is_tool(entry):
        return _tool(entry, f"{at}{lane}<b>{escape(entry['tool'])}</b> <code>{text}</code>")
    if entry["kind"] == "turn.ended":
        return f'<div class="answer">{at}{lane}<pre>{text}</pre></div>\n'
    return f"<div>{at}{lane}{escape(words.label(entry))} {text}</div>\n"


def _tool(entry: dict[str, Any], line: str) -> str:
    outcome = words.outcome(entry)
    line += f' <span class="{"ok" if outcome == "ok" else "failed"}">{escape(outcome)}</span>'
    if not entry.get("output"):
        return f"<div>{line}</div>\n"
    return f"<details><summary>{line}</summary><pre>{escape(entry['output'])}</pre></details>\n"
