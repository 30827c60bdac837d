"""A run as JUnit XML."""

import re
from typing import Any

import msgspec

from holdfast.features.uat import files
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import figures
from holdfast.features.uat.report.html import render_page
from holdfast.features.uat.settings import FAILED, INTERRUPTED, PASSED, format_iso

# What XML 1.0 cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(msgspec.Struct, frozen=True):
    """A step or an assertion; `tag` is failure, error, skipped, flaky, or empty where it passed."""

    name: str
    ms: int | None = 0
    tag: str = ""
    message: str = ""
    type: str = ""
    text: str = ""


def render_junit_report(record: Record) -> bytes:
    doc = record.doc
    failures = {failure.step: failure for failure in figures.list_failures(record)}
    cases = [_step_case(step, failures.get(step["stepNumber"])) for step in figures.report_steps(record)]
    cases += [_assertion_case(one) for one in files.assertion_entries(record)]
    tags = [case.tag for case in cases]
    return render_page(
        "report.xml",
        doc=doc,
        cases=cases,
        counts={tag: tags.count(tag) for tag in ("failure", "error", "skipped")},
        properties=(
            *(("uatSessionId", doc.id), ("claudeSessionId", doc.session), ("baseUrl", doc.base_url)),
            *(("outcome", figures.run_outcome(record)), ("reason", doc.reason), ("toolCalls", doc.calls)),
        ),
        took=None if doc.end is None else doc.end - doc.start,
        began=(format_iso(doc.start) or "").rstrip("Z"),
        text=lambda value: _UNWRITABLE.sub("\ufffd", str(value)),
        seconds=lambda ms: f"{(ms or 0) / 1000:.3f}",
    )


def _step_case(step: dict[str, Any], failure: figures.Failure | None) -> Case:
    case = Case(f"step {step['stepNumber']}: {step['description'] or step['action']}", step["duration"])
    if step["verdict"] == FAILED and failure:
        message = failure.error or (f"expected {failure.expected}" if failure.expected else "failed")
        text = f"expected: {failure.expected}\nreceived: {failure.received}\ncall: {failure.call}"
        return _with(case, tag="failure", message=message, type="step", text=text)
    if step["verdict"] == INTERRUPTED:
        return _with(case, tag="error", message="interrupted", type="interrupted")
    if step["verdict"] != PASSED:
        return _with(case, tag="skipped", message=figures.verdict_words(step["verdict"]))
    return _with(case, tag="flaky", message=f"attempt {len(step['attempts'])} passed") if step["flaky"] else case


_with = msgspec.structs.replace


def _assertion_case(one: dict[str, Any]) -> Case:
    case = Case(f"assertion: {one['description']}")
    if one["result"] == FAILED:
        text = f"expected: {one['expected']}\nactual: {one['actual']}"
        return _with(case, tag="failure", message=one["description"], type="assertion", text=text)
    return case if one["result"] == PASSED else _with(case, tag="skipped", message="not reached")
