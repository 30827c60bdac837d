"""A run to hand on: HTML with everything in it, Markdown, JUnit XML."""

from collections.abc import Callable

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import html, junit, markdown

FORMATS: dict[str, Callable[[Record], bytes]] = {
    "html": html.render_html_report,
    "markdown": markdown.render_markdown_report,
    "junit": junit.render_junit_report,
}
ENDINGS = {"html": ".html", "markdown": ".md", "junit": ".xml"}


def render_report(record: Record, name: str) -> bytes:
    if name not in FORMATS:
        raise CommandRefused(f"there is no report format {name!r}", fix=f"Known: {', '.join(FORMATS)}.")
    return FORMATS[name](record)
