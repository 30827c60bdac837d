"""The same in Markdown, for a pull request or a ticket. Pictures are links beside the report."""

import os
import re
from collections.abc import Iterable
from html import escape
from typing import Any
from xml.etree import ElementTree as Xml

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import CallEnded, PlannedStep
from holdfast.features.uat import files
from holdfast.features.uat.drivers.results import LISTING, SILENT
from holdfast.features.uat.files import Record
from holdfast.features.uat.settings import (
    FAILED,
    INTERRUPTED,
    NOT_REACHED,
    PASSED,
    REASONS,
    SKIPPED,
    format_iso,
    utc_datetime,
)
from holdfast.features.uat.state.steps import is_flaky, step_verdict

# What all reports say in the same labels.

VERDICTS = (PASSED, FAILED, INTERRUPTED, SKIPPED, NOT_REACHED, "in_progress")

MARKS = {
    "passed": "✓",
    "completed": "✓",
    "success": "✓",
    "failed": "✗",
    "failure": "✗",
    "in_progress": "…",
    "skipped": "–",
    "interrupted": "!",
    "not_reached": "·",
    "pending": "·",
}


def format_milliseconds(ms: int | None) -> str:
    if ms is None:
        return "–"
    if ms < 1000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms // 60_000} min {ms // 1000 % 60} s"


def format_clock(at: int | None) -> str:
    return "–" if at is None else f"{utc_datetime(at):%H:%M:%S}.{at % 1000:03}"


def format_utc_time(at: int) -> str:
    return f"{utc_datetime(at):%Y-%m-%d %H:%M:%S} UTC"


def verdict_mark(status: str) -> str:
    return MARKS.get(status, "·")


def run_outcome(record: Record) -> str:
    return record.doc.outcome or "running"


class Figures(msgspec.Struct, frozen=True):
    """Every count that a report shows, made once for all of its formats."""

    steps: int
    verdicts: dict[str, int]
    flaky: int
    attempts: int
    assertions: int
    assertions_failed: int
    assertions_passed: int
    calls: int
    calls_failed: int
    calls_interrupted: int

    @property
    def failed(self) -> int:
        return self.verdicts.get(FAILED, 0)


def count_figures(record: Record) -> Figures:
    doc = record.doc
    verdicts = [step_verdict(doc, step) for step in doc.steps]
    results = [one["result"] for one in files.assertion_entries(record)]
    return Figures(
        steps=len(verdicts),
        verdicts={name: verdicts.count(name) for name in VERDICTS if name in verdicts},
        flaky=sum(is_flaky(step) for step in doc.steps),
        # The first attempt is no further one.
        attempts=sum(max(0, step.tries - 1) for step in doc.steps),
        assertions=len(results),
        assertions_failed=results.count(FAILED),
        assertions_passed=results.count(PASSED),
        calls=doc.calls,
        calls_failed=doc.failed,
        calls_interrupted=doc.interrupted,
    )


def verdict_words(name: str) -> str:
    return name.replace("_", " ")


def run_facts(record: Record) -> list[tuple[str, str]]:
    doc, counted = record.doc, count_figures(record)
    end = REASONS.get(doc.reason, doc.reason)
    rows = [
        ("Steps", _steps_line(counted)),
        ("Assertions", _assertions_line(counted)),
        ("Tool calls", _calls_line(counted)),
        ("Scenario", doc.scenario),
        ("Run", doc.id),
        ("Began", format_utc_time(doc.start)),
        ("Ended", f"{format_utc_time(doc.end)}: {end}" if doc.end is not None else "not yet"),
        ("Took", format_milliseconds(None if doc.end is None else doc.end - doc.start)),
        ("Address", doc.base_url),
        ("Imported from", doc.source),
        ("Asked for", doc.message),
        ("Session", doc.session),
    ]
    return [(name, value) for name, value in rows if value]


def _steps_line(counted: Figures) -> str:
    parts = [f"{count} {verdict_words(name)}" for name, count in counted.verdicts.items()]
    parts += [f"{counted.flaky} flaky"] if counted.flaky else []
    parts += [f"{counted.attempts} further attempts"] if counted.attempts else []
    return f"{counted.steps}: {', '.join(parts)}" if counted.steps else ""


def _assertions_line(counted: Figures) -> str:
    open_ = counted.assertions - counted.assertions_failed - counted.assertions_passed
    parts = [f"{counted.assertions_passed} passed", f"{counted.assertions_failed} failed"]
    parts += [f"{open_} not judged"] if open_ else []
    return f"{counted.assertions}: {', '.join(parts)}" if counted.assertions else ""


def _calls_line(counted: Figures) -> str:
    cut = f", {counted.calls_interrupted} interrupted" if counted.calls_interrupted else ""
    return f"{counted.calls}, {counted.calls_failed} returned an error{cut}"


class Failure(msgspec.Struct, frozen=True):
    """One thing that went wrong, as a person asks about it first."""

    step: int
    title: str
    verdict: str
    expected: str = ""
    received: str = ""
    error: str = ""
    call: str = ""


def list_failures(record: Record) -> list[Failure]:
    """Failed and interrupted steps in their order, then failed assertions of the whole run."""
    failed_steps = [
        _failure_of_step(record, step) for step in report_steps(record) if step["verdict"] in (FAILED, INTERRUPTED)
    ]
    whole = [one for one in files.assertion_entries(record) if one["result"] == FAILED and not one["stepNumber"]]
    return failed_steps + [
        Failure(0, str(one["description"]), FAILED, str(one["expected"] or ""), str(one["actual"] or ""))
        for one in whole
    ]


def _failure_of_step(record: Record, step: dict[str, Any]) -> Failure:
    number = step["stepNumber"]
    last = step["attempts"][-1] if step["attempts"] else {}
    mine = [one for one in files.assertion_entries(record) if one["stepNumber"] == number and one["result"] == FAILED]
    calls = [call for call in record.calls if call.data.step == number]
    bad = [call for call in calls if not call.data.ok] or calls_about_page(calls)
    expected = "; ".join(str(one["expected"] or one["description"]) for one in mine) or last.get("expected", "")
    received = "; ".join(str(one["actual"]) for one in mine if one["actual"]) or last.get("received", "")
    title = f"{number}. {step['description'] or step['action']}"
    call = f"{files.call_id(bad[-1].get('n'))} {bad[-1].get('tool')}" if bad else ""
    return Failure(number, title, step["verdict"], expected, received, last.get("error", ""), call)


def calls_about_page(calls: list[Event]) -> list[Event]:
    """Those whose answer told something of the page, where there are any: an assertion failed on the last of them."""
    return [call for call in calls if not _is_beside_page(call.data)] or calls


def _is_beside_page(call: CallEnded) -> bool:
    # Runs recorded before meanings were kept have only the tool's name.
    return call.meaning in (*SILENT, *LISTING) or (not call.meaning and "screenshot" in call.tool.lower())


def report_steps(record: Record) -> list[dict[str, Any]]:
    """The seed's steps, with what was expected of each."""
    planned = record.plan.steps
    listed = files.judged_steps(record)
    return [
        {**step, "expected": planned[n].expected_ms, "slow": _is_slow_step(step, planned[n])}
        for n, step in enumerate(listed)
    ]


def _is_slow_step(step: dict[str, Any], planned: PlannedStep) -> bool:
    expected = planned.expected_ms
    return bool(expected and step["duration"] is not None and step["duration"] > expected)


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


# JUnit XML, as build servers read it: a case for each step and each assertion.

# What XML 1.0 cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit_report(record: Record) -> bytes:
    doc = record.doc
    suite = Xml.Element(
        "testsuite", name=_xml_safe_text(doc.scenario), timestamp=(format_iso(doc.start) or "").rstrip("Z")
    )
    _add_suite_properties(suite, record)
    for step in report_steps(record):
        _add_step_case(suite, step, record)
    for one in files.assertion_entries(record):
        _add_assertion_case(suite, one, doc.scenario)
    cases = suite.findall("testcase")
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", _format_seconds(None if doc.end is None else doc.end - doc.start))
    # The same sums on the outer element, as build servers expect.
    root = Xml.Element("testsuites", {k: v for k, v in suite.attrib.items() if k != "timestamp"})
    root.append(suite)
    Xml.indent(root)
    text: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_suite_properties(suite: Xml.Element, record: Record) -> None:
    doc = record.doc
    property_values = {"uatSessionId": doc.id, "claudeSessionId": doc.session, "baseUrl": doc.base_url}
    property_values |= {"outcome": doc.outcome or "running", "reason": doc.reason, "toolCalls": str(doc.calls)}
    properties = Xml.SubElement(suite, "properties")
    for name, value in property_values.items():
        Xml.SubElement(properties, "property", name=name, value=_xml_safe_text(value))


def _add_step_case(suite: Xml.Element, step: dict[str, Any], record: Record) -> None:
    name = f"step {step['stepNumber']}: {step['description'] or step['action']}"
    case = _add_test_case(suite, name, record.doc.scenario, _format_seconds(step["duration"]))
    if step["verdict"] == FAILED:
        one = next(f for f in list_failures(record) if f.step == step["stepNumber"])
        message = one.error or (f"expected {one.expected}" if one.expected else "failed")
        failure = Xml.SubElement(case, "failure", message=_xml_safe_text(message), type="step")
        failure.text = _xml_safe_text(f"expected: {one.expected}\nreceived: {one.received}\ncall: {one.call}")
    elif step["verdict"] == INTERRUPTED:
        Xml.SubElement(case, "error", message="interrupted", type="interrupted")
    elif step["verdict"] != PASSED:
        Xml.SubElement(case, "skipped", message=verdict_words(step["verdict"]))
    elif step["flaky"]:
        _add_case_property(case, "flaky", f"attempt {len(step['attempts'])} passed")


def _add_case_property(case: Xml.Element, name: str, value: str) -> None:
    Xml.SubElement(Xml.SubElement(case, "properties"), "property", name=name, value=_xml_safe_text(value))


def _add_assertion_case(suite: Xml.Element, one: dict[str, Any], scenario: str) -> None:
    case = _add_test_case(suite, f"assertion: {one['description']}", scenario, "0")
    if one["result"] == "failed":
        failure = Xml.SubElement(case, "failure", message=_xml_safe_text(one["description"]), type="assertion")
        failure.text = _xml_safe_text(f"expected: {one['expected']}\nactual: {one['actual']}")
    elif one["result"] != "passed":
        Xml.SubElement(case, "skipped", message="not reached")


def _add_test_case(suite: Xml.Element, name: str, scenario: str, time: str) -> Xml.Element:
    return Xml.SubElement(
        suite, "testcase", name=_xml_safe_text(name), classname=f"uat.{_xml_safe_text(scenario)}", time=time
    )


def _format_seconds(ms: int | None) -> str:
    return f"{(ms or 0) / 1000:.3f}"


def _xml_safe_text(value: Any) -> str:
    return _UNWRITABLE.sub("\ufffd", str(value))


# The steps as bars over time, in SVG: what took long is long.

# Width of the picture, height of a row, and room for names and times.
WIDTH, ROW, LEFT, RIGHT = 960, 26, 240, 90
MOST_MARKS = 600


def render_timeline_svg(record: Record) -> str:
    listed = report_steps(record)
    begin, end = _time_span(record)
    height = ROW * len(listed) + 24
    rows = "".join(_step_row_svg(n, step, record, begin, end) for n, step in enumerate(listed))
    marks = "".join(_call_mark_svg(call, begin, end) for call in record.calls[:MOST_MARKS])
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Timeline of the steps">'
        f"{rows}{marks}{_time_axis_svg(begin, end, height)}</svg>"
    )


def _time_span(record: Record) -> tuple[int, int]:
    doc = record.doc
    started = [s.start for s in doc.steps if s.start is not None]
    ended = [s.end for s in doc.steps if s.end is not None]
    begin = min([doc.start, *started, *(c.data.began for c in record.calls)])
    # One millisecond at least: the axis divides by the length.
    return begin, max([doc.touched, *ended, begin + 1])


def _x_position(at: int, begin: int, end: int) -> float:
    share = (at - begin) / (end - begin)
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0)


def _step_row_svg(number: int, step: dict[str, Any], record: Record, begin: int, end: int) -> str:
    y = ROW * number
    stood = record.doc.steps[number]
    words = escape(f"{step['stepNumber']}. {step['description'] or step['action']}"[:36])
    label = f'<text x="0" y="{y + 17}">{words}</text>'
    if stood.start is None:
        return f'<g class="{step["status"]}">{label}<text x="{LEFT}" y="{y + 17}">{step["status"]}</text></g>'
    x = _x_position(stood.start, begin, end)
    width = max(3.0, _x_position(stood.end if stood.end is not None else end, begin, end) - x)
    time = format_milliseconds(step["duration"]) if step["duration"] is not None else step["status"].replace("_", " ")
    bar = f'<rect x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="16" rx="3"><title>{words}: {time}</title></rect>'
    slow = " slow" if step["slow"] else ""
    return f'<g class="{step["status"]}{slow}">{label}{bar}<text x="{x + width + 6:.1f}" y="{y + 17}">{time}</text></g>'


def _call_mark_svg(call: Event, begin: int, end: int) -> str:
    """One tool call, on its step's line."""
    step = call.data.step
    if step < 1:
        return ""
    x, y = _x_position(call.data.began, begin, end), ROW * (step - 1) + 5
    title = escape(f"{call.get('tool')} {format_milliseconds(call.get('ms'))}")
    kind = "call" if call.data.ok else "call bad"
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 16}"><title>{title}</title></line>'


def _time_axis_svg(begin: int, end: int, height: int) -> str:
    y = height - 6
    parts = [
        f'<text class="axis" x="{_x_position(begin + (end - begin) * n // 4, begin, end):.0f}" y="{y}">'
        f"{format_milliseconds((end - begin) * n // 4)}</text>"
        for n in range(5)
    ]
    return "".join(parts)
