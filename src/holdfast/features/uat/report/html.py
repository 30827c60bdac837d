"""Renders self-contained HTML reports."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from holdfast.core.look import document_style
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import figures
from holdfast.features.uat.report.page import build_page, data_url, picture_reader

# The page may be opened anywhere: nothing is loaded, no script runs.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TEMPLATES = Path(__file__).parent / "templates"
LONGEST_VALUE = 3_000
GOOD = ("passed", "completed", "success")
BAD = ("failed", "failure")


def render_html_report(record: Record) -> bytes:
    page = build_page(record)
    return render_page("report.html", record=record, doc=record.doc, plan=record.plan, chart=Chart(record), **page)


class Chart:
    """Places on the timeline: sizes of the picture and its rows, and room for names and times."""

    width, row, left, right = 960, 26, 240, 90

    def __init__(self, record: Record) -> None:
        doc = record.doc
        started = [step.start for step in doc.steps if step.start is not None]
        ended = [step.end for step in doc.steps if step.end is not None]
        self.begin = min([doc.start, *started, *(call.data.began for call in record.calls)])
        # One millisecond at least: the axis divides by the length.
        self.end = max([doc.touched, *ended, self.begin + 1])

    def x(self, at: int) -> float:
        share: float = (at - self.begin) / (self.end - self.begin)
        return self.left + (self.width - self.left - self.right) * min(max(share, 0.0), 1.0)


def render_comparison(comparison: dict[str, Any], records: tuple[Record, Record]) -> bytes:
    """Two runs side by side, with the pictures of both and their difference."""
    readers = [picture_reader(record) for record in records]

    def shown(pair: dict[str, Any], name: str) -> str:
        path = str(pair.get(name) or "")
        return data_url(path, next((image for read in readers if path and (image := read(path))), b""))

    names = ("before", "after", "difference")
    pairs = [{**pair, **{name: shown(pair, name) for name in names}} for pair in comparison["screenshots"]]
    return render_page("compare.html", compared={**comparison, "screenshots": pairs})


def render_page(template: str, **values: Any) -> bytes:
    return _template_environment().get_template(template).render(**values).encode("utf-8", "replace")


@lru_cache(1)
def _template_environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    style = document_style() + (TEMPLATES / "style.css").read_text("utf-8")
    made.globals |= {
        "policy": Markup(POLICY), "style": Markup(style), "sign": figures.verdict_mark, "words": figures.verdict_words,  # noqa: S704
        "clock": figures.format_clock, "took": figures.format_milliseconds, "when": figures.format_utc_time, "css": css_class,
        "compact": _compact_json,
    }  # fmt: skip
    return made


def css_class(verdict: str) -> str:
    if verdict in GOOD:
        return "ok"
    return "bad" if verdict in BAD else "wait" if verdict in ("interrupted", "incomplete") else "dim"


def _compact_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")[:LONGEST_VALUE]
