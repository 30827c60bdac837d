"""The same in Markdown, for a pull request or a ticket. Pictures are links beside the report."""

import os
import re
from collections.abc import Iterable
from html import escape
from typing import Any

from holdfast.features.uat import files
from holdfast.features.uat.files import Record
from holdfast.features.uat.report import labels

_SPECIAL = re.compile(r"([\\`*_{}\[\]|#])")
MOST = 200


def rendered(record: Record) -> bytes:
    return ("\n".join(_lines(record)) + "\n").encode("utf-8", "replace")


def plain(text: Any) -> str:
    """On one line, and without a meaning of its own."""
    return _SPECIAL.sub(r"\\\1", escape(" ".join(str(text).split()), quote=False))


def _lines(record: Record) -> Iterable[str]:
    outcome = labels.outcome(record)
    yield f"# UAT: {plain(record.doc.scenario)}: {outcome}"
    yield ""
    yield from (f"- **{name}**: {plain(value)}" for name, value in labels.facts(record))
    yield from _failures(record)
    yield from ("", "## Steps", "", "| | step | action | took | expected |", "|---|---|---|---|---|")
    for step in labels.steps(record):
        name = f"{step['stepNumber']}. {plain(step['description'] or step['action'])}"
        took = labels.took(step["duration"]) if step["duration"] is not None else labels.verdict_words(step["verdict"])
        slow = " (slow)" if step["slow"] else ""
        slow += f" (flaky, attempt {len(step['attempts'])} passed)" if step["flaky"] else ""
        cells = (labels.mark(step["verdict"]), name, plain(step["action"]), took + slow, labels.took(step["expected"]))
        yield f"| {' | '.join(cells)} |"
    yield from _assertions(record)
    yield from _checks(record)
    yield from _problems("Errors", record.errors())
    yield from _problems("Warnings", record.warnings())
    yield from _pictures(record)


def _failures(record: Record) -> Iterable[str]:
    failures = labels.failures(record)
    if failures:
        yield from ("", f"## What failed ({len(failures)})", "")
    for one in failures:
        yield f"- {labels.mark(one.verdict)} **{labels.verdict_words(one.verdict)}** {plain(one.title)}"
        details = (("expected", one.expected), ("received", one.received), ("error", one.error), ("call", one.call))
        yield from (f"  - {name}: {plain(value)}" for name, value in details if value)


def _assertions(record: Record) -> Iterable[str]:
    judged = files.assertions(record)
    if judged:
        yield from ("", "## Assertions", "")
    for one in judged:
        step = f" (step {one['stepNumber']})" if one["stepNumber"] else ""
        yield f"- {labels.mark(one['result'])} **{one['result']}** {plain(one['description'])}{step}"
        if one["result"] != "passed" and one["actual"]:
            yield f"  - actual: {plain(one['actual'])}"


def _checks(record: Record) -> Iterable[str]:
    if record.checks:
        yield from ("", "## Health checks", "")
    for event, check in record.checks[:MOST]:
        check_row = files.health_check(event, check)
        facts = ", ".join(f"{plain(k)} {plain(v)}" for k, v in check_row["data"].items())
        yield f"- {labels.mark(check_row['result'])} {plain(check_row['type'])}: {facts}"


def _problems(title: str, listed: list[dict[str, Any]]) -> Iterable[str]:
    if listed:
        yield from ("", f"## {title} ({len(listed)})", "")
    yield from (
        f"- {labels.clock(p['at'])} step {p['step']}, {plain(p['type'])}: {plain(p['message'])}" for p in listed[:MOST]
    )


def _pictures(record: Record) -> Iterable[str]:
    if record.shots:
        yield from ("", "## Screenshots", "")
    paths = files.places_of(record.doc)
    for shot in record.shots:
        path = os.path.relpath(shot.data.path, paths.reports) if paths else shot.data.path
        yield f"![{plain(shot.get('name'))}](<{path}>)"
