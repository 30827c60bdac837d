"""Markdown. Text of agents and users is quoted or fenced, so that it cannot become the document's own structure."""

import re
from collections.abc import Iterable

from holdfast.features.sessions.export.labels import format_moment, format_outcome, is_call, session_facts
from holdfast.features.sessions.figures import Figures
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.timeline import Row

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def begin(session: Session, figures: Figures, summary: str) -> str:
    lines = [f"# {_one_line(session.title or session.id)}", ""]
    lines += [f"- **{name}**: {_one_line(value)}" for name, value in session_facts(session, figures)]
    lines += ["", "## Summary", "", *(f"{_one_line(line)}  " for line in summary.splitlines()), "", "## Timeline"]
    return "\n".join(lines) + "\n"


def body(rows: Iterable[Row]) -> str:
    return "".join(_render_row(row) for row in rows)


def _render_row(row: Row) -> str:
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
