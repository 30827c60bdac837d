"""A run as Markdown, for a pull request or ticket."""

import os
import re
from html import escape
from typing import Any

from markupsafe import Markup

from holdfast.features.uat import files
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import figures
from holdfast.features.uat.report.html import render_page

# Characters with a meaning in Markdown.
_SPECIAL = re.compile(r"([\\`*_{}\[\]|#])")


def render_markdown_report(record: Record) -> bytes:
    paths = files.places_of(record.doc)

    def relative(path: str) -> Markup:
        # Relative to the report, so that both can be moved together.
        return Markup(os.path.relpath(path, paths.reports) if paths else path)  # noqa: S704 - no HTML

    return render_page(
        "report.markdown",
        record=record,
        doc=record.doc,
        outcome=figures.run_outcome(record),
        facts=figures.run_facts(record),
        remarks=files.run_remarks(record),
        failures=figures.list_failures(record),
        steps=figures.report_steps(record),
        assertions=files.assertion_entries(record),
        checks=[files.health_check(*check) for check in record.checks],
        line=escape_line,
        relative=relative,
    )


def escape_line(text: Any) -> Markup:
    """On one line, with Markdown's special characters escaped."""
    return Markup(_SPECIAL.sub(r"\\\1", escape(" ".join(str(text).split()), quote=False)))  # noqa: S704 - escaped here
