"""A run to hand on: HTML with everything in it, Markdown, JUnit XML."""

from collections.abc import Callable

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.files import Record
from holdfast.features.uat.report import markdown, page

FORMATS: dict[str, Callable[[Record], bytes]] = {
    "html": page.render_html_report,
    "markdown": markdown.render_markdown_report,
    "junit": markdown.render_junit_report,
}
ENDINGS = {"html": ".html", "markdown": ".md", "junit": ".xml"}


def render_report(record: Record, name: str) -> bytes:
    if name not in FORMATS:
        raise CommandRefused(f"there is no report format {name!r}", fix=f"Known: {', '.join(FORMATS)}.")
    return FORMATS[name](record)
