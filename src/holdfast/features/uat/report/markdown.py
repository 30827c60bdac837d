"""A run as Markdown, for a pull request or ticket."""

import os
import re
from collections.abc import Iterable
from html import escape
from typing import Any

from holdfast.features.uat import files
from holdfast.features.uat.record import Record
from holdfast.features.uat.report.figures import (
    format_clock,
    format_milliseconds,
    list_failures,
    report_steps,
    run_facts,
    run_outcome,
    verdict_mark,
    verdict_words,
)

# Characters with a meaning in Markdown.
_SPECIAL = re.compile(r"([\\`*_{}\[\]|#])")
MOST = 200


def render_markdown_report(record: Record) -> bytes:
    return ("\n".join(_report_lines(record)) + "\n").encode("utf-8", "replace")


def escape_line(text: Any) -> str:
    """On one line, and without a meaning of its own."""
    return _SPECIAL.sub(r"\\\1", escape(" ".join(str(text).split()), quote=False))


def _report_lines(record: Record) -> Iterable[str]:
    outcome = run_outcome(record)
    yield f"# UAT: {escape_line(record.doc.scenario)}: {outcome}"
    yield ""
    yield from (f"- **{name}**: {escape_line(value)}" for name, value in run_facts(record))
    yield from (f"- **{escape_line(remark)}**" for remark in files.run_remarks(record))
    yield from _failure_lines(record)
    yield from ("", "## Steps", "", "| | step | action | took | expected |", "|---|---|---|---|---|")
    for step in report_steps(record):
        name = f"{step['stepNumber']}. {escape_line(step['description'] or step['action'])}"
        took = format_milliseconds(step["duration"]) if step["duration"] is not None else verdict_words(step["verdict"])
        slow = " (slow)" if step["slow"] else ""
        slow += f" (flaky, attempt {len(step['attempts'])} passed)" if step["flaky"] else ""
        cells = (
            verdict_mark(step["verdict"]),
            name,
            escape_line(step["action"]),
            took + slow,
            format_milliseconds(step["expected"]),
        )
        yield f"| {' | '.join(cells)} |"
    yield from _assertion_lines(record)
    yield from _health_check_lines(record)
    yield from _problem_lines("Errors", record.errors())
    yield from _problem_lines("Warnings", record.warnings())
    yield from _picture_lines(record)


def _failure_lines(record: Record) -> Iterable[str]:
    failures = list_failures(record)
    if failures:
        yield from ("", f"## What failed ({len(failures)})", "")
    for one in failures:
        yield f"- {verdict_mark(one.verdict)} **{verdict_words(one.verdict)}** {escape_line(one.title)}"
        details = (("expected", one.expected), ("received", one.received), ("error", one.error), ("call", one.call))
        yield from (f"  - {name}: {escape_line(value)}" for name, value in details if value)


def _assertion_lines(record: Record) -> Iterable[str]:
    judged = files.assertion_entries(record)
    if judged:
        yield from ("", "## Assertions", "")
    for one in judged:
        step = f" (step {one['stepNumber']})" if one["stepNumber"] else ""
        yield f"- {verdict_mark(one['result'])} **{one['result']}** {escape_line(one['description'])}{step}"
        if one["result"] != "passed" and one["actual"]:
            yield f"  - actual: {escape_line(one['actual'])}"


def _health_check_lines(record: Record) -> Iterable[str]:
    if record.checks:
        yield from ("", "## Health checks", "")
    for event, check in record.checks[:MOST]:
        check_row = files.health_check(event, check)
        facts = ", ".join(f"{escape_line(k)} {escape_line(v)}" for k, v in check_row["data"].items())
        yield f"- {verdict_mark(check_row['result'])} {escape_line(check_row['type'])}: {facts}"


def _problem_lines(title: str, listed: list[dict[str, Any]]) -> Iterable[str]:
    if listed:
        yield from ("", f"## {title} ({len(listed)})", "")
    yield from (
        f"- {format_clock(p['at'])} step {p['step']}, {escape_line(p['type'])}: {escape_line(p['message'])}"
        for p in listed[:MOST]
    )


def _picture_lines(record: Record) -> Iterable[str]:
    if record.shots:
        yield from ("", "## Screenshots", "")
    paths = files.places_of(record.doc)
    for shot in record.shots:
        # Relative to the report, so that both can be moved together.
        path = os.path.relpath(shot.data.path, paths.reports) if paths else shot.data.path
        yield f"![{escape_line(shot.get('name'))}](<{path}>)"
