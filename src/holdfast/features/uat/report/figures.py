"""Labels and figures that all reports share."""

from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import CallEnded, PlannedStep
from holdfast.features.uat import files
from holdfast.features.uat.drivers.assertions import LISTING, SILENT
from holdfast.features.uat.record import Record
from holdfast.features.uat.settings import (
    FAILED,
    INTERRUPTED,
    NOT_REACHED,
    PASSED,
    REASONS,
    SKIPPED,
    utc_datetime,
)
from holdfast.features.uat.state.steps import is_flaky, step_verdict

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
