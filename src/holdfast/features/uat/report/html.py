"""Renders self-contained HTML reports."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from holdfast.features.uat.record import Record
from holdfast.features.uat.report import figures
from holdfast.features.uat.report.page import ReportPage, build_page, picture_data, picture_folder
from holdfast.features.uat.report.timeline_svg import render_timeline_svg

# The page may be opened anywhere: nothing is loaded, no script runs.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TEMPLATES = Path(__file__).parent / "templates"
GOOD = ("passed", "completed", "success")
BAD = ("failed", "failure")


def render_html_report(record: Record) -> bytes:
    return render_page("report.html", page=build_page(record), timeline=Markup(render_timeline_svg(record)))  # noqa: S704 - made here


def render_comparison(comparison: dict[str, Any], records: tuple[Record, Record]) -> bytes:
    """Two runs side by side; of each pair of pictures what was before, what is now, and what differs."""
    folders = tuple(folder for record in records if (folder := picture_folder(record)))
    pairs = [
        {
            **pair,
            **{name: picture_data(str(pair.get(name) or ""), folders) for name in ("before", "after", "difference")},
        }
        for pair in comparison["screenshots"]
    ]
    return render_page("compare.html", told={**comparison, "screenshots": pairs})


def render_page(template: str, **values: Any) -> bytes:
    return _template_environment().get_template(template).render(**values).encode("utf-8", "replace")


@lru_cache(1)
def _template_environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    style = (TEMPLATES / "style.css").read_text("utf-8")
    made.globals |= {
        "policy": Markup(POLICY), "style": Markup(style), "sign": figures.verdict_mark, "words": figures.verdict_words,  # noqa: S704
        "clock": figures.format_clock, "took": figures.format_milliseconds, "when": figures.format_utc_time, "css": css_class,
        "compact": _html_compact_json, "step_verdict": _step_verdict,
    }  # fmt: skip
    return made


def css_class(verdict: str) -> str:
    if verdict in GOOD:
        return "ok"
    return "bad" if verdict in BAD else "wait" if verdict in ("interrupted", "incomplete") else "dim"


def _step_verdict(page: ReportPage, number: int) -> str:
    return next((step.verdict for step in page.steps if step.number == number), "")


def _html_compact_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")[:3000]
