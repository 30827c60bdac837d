"""What all views and reports of a run share: its figures, steps and failures, and how times are written."""

from typing import Any

import msgspec

from holdfast.core.kinds.uat_events import CallEnded
from holdfast.features.uat import files
from holdfast.features.uat.drivers.assertions import LISTING, SILENT
from holdfast.features.uat.record import Record
from holdfast.features.uat.settings import FAILED, INTERRUPTED, PASSED, REASONS, utc_datetime
from holdfast.features.uat.state import Run
from holdfast.features.uat.state.steps import is_flaky, step_verdict

MARKS = {
    "passed": "✓",
    "completed": "✓",
    "success": "✓",
    "failed": "✗",
    "failure": "✗",
    "in_progress": "…",
    "skipped": "–",
    "interrupted": "!",
}
_SAME_NAME = (
    *("id", "scenario", "session", "project", "status", "outcome", "reason", "start", "end", "at", "interrupted"),
    *("source", "calls", "failed", "errors", "warnings", "confidence", "auto"),
)


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


def format_run_time(doc: Run) -> str:
    return format_milliseconds(None if doc.end is None else doc.end - doc.start)


def verdict_mark(status: str) -> str:
    return MARKS.get(status, "·")


def verdict_words(name: str) -> str:
    return name.replace("_", " ")


def run_outcome(record: Record) -> str:
    return record.doc.outcome or "running"


def run_summary(doc: Run | None) -> dict[str, Any]:
    """Every figure of a run that a list, a view or a report shows."""
    if doc is None:
        return {}
    judged = [one.result for one in doc.assertions] + doc.asserted
    verdicts = [step_verdict(doc, step) for step in doc.steps]
    return {
        **{name: getattr(doc, name) for name in _SAME_NAME},
        "step": doc.current,
        "steps": len(doc.steps),
        "completed": verdicts.count(PASSED),
        "verdicts": {name: verdicts.count(name) for name in dict.fromkeys(verdicts)},
        "flaky": sum(is_flaky(step) for step in doc.steps),
        "screenshots": doc.shots,
        "assertions": {"passed": judged.count(PASSED), "failed": judged.count(FAILED), "all": len(judged)},
        "archived": bool(doc.archived),
    }


def run_facts(record: Record) -> list[tuple[str, str]]:
    doc = record.doc
    end = REASONS.get(doc.reason, doc.reason)
    rows = [
        ("Steps", _steps_line(doc)),
        ("Assertions", _assertions_line(doc)),
        ("Tool calls", _calls_line(doc)),
        ("Scenario", doc.scenario),
        ("Run", doc.id),
        ("Began", format_utc_time(doc.start)),
        ("Ended", f"{format_utc_time(doc.end)}: {end}" if doc.end is not None else "not yet"),
        ("Took", format_run_time(doc)),
        ("Address", doc.base_url),
        ("Imported from", doc.source),
        ("Asked for", doc.message),
        ("Session", doc.session),
    ]
    return [(name, value) for name, value in rows if value]


def _steps_line(doc: Run) -> str:
    figures = run_summary(doc)
    # The first attempt is no further one.
    attempts = sum(max(0, step.tries - 1) for step in doc.steps)
    counts = {**figures["verdicts"], "flaky": figures["flaky"], "further attempts": attempts}
    parts = [f"{count} {verdict_words(name)}" for name, count in counts.items() if count]
    return f"{len(doc.steps)}: {', '.join(parts)}" if doc.steps else ""


def _assertions_line(doc: Run) -> str:
    counts = run_summary(doc)["assertions"]
    left = counts["all"] - counts["passed"] - counts["failed"]
    line = f"{counts['all']}: {counts['passed']} passed, {counts['failed']} failed"
    return line + (f", {left} not judged" if left else "") if counts["all"] else ""


def _calls_line(doc: Run) -> str:
    cut = f", {doc.interrupted} interrupted" if doc.interrupted else ""
    return f"{doc.calls}, {doc.failed} returned an error{cut}"


# ── steps and failures ───────────────────────────────────────────────────────────────────────────────────────────────


class Failure(msgspec.Struct, frozen=True):
    """One thing that went wrong, as a person asks about it first."""

    step: int
    title: str
    verdict: str
    expected: str = ""
    received: str = ""
    error: str = ""
    call: str = ""


def report_steps(record: Record) -> list[dict[str, Any]]:
    """The seed's steps with verdict, attempts and expected time."""
    return [
        {**step, "expected": limit, "slow": bool(limit and (step["duration"] or 0) > limit)}
        for step, planned in zip(files.judged_steps(record), record.plan.steps, strict=False)
        for limit in (planned.expected_ms,)
    ]


def failed_assertions(record: Record, step: int | None) -> list[dict[str, Any]]:
    """Of one step; None: of the whole run."""
    entries = files.assertion_entries(record)
    return [one for one in entries if one["result"] == FAILED and one["stepNumber"] == step]


def list_failures(record: Record) -> list[Failure]:
    """Failed and interrupted steps in their order, then failed assertions of the whole run."""
    steps = [step for step in report_steps(record) if step["verdict"] in (FAILED, INTERRUPTED)]
    return [_failure_of_step(record, step) for step in steps] + [
        Failure(0, one["description"], FAILED, one["expected"] or "", one["actual"] or "")
        for one in failed_assertions(record, None)
    ]


_NO_ATTEMPT = {"expected": "", "received": "", "error": ""}


def _failure_of_step(record: Record, step: dict[str, Any]) -> Failure:
    number = step["stepNumber"]
    last = step["attempts"][-1] if step["attempts"] else _NO_ATTEMPT
    missed = failed_assertions(record, number)
    call = telling_call([call.data for call in record.calls if call.data.step == number])
    return Failure(
        step=number,
        title=f"{number}. {step['description'] or step['action']}",
        verdict=step["verdict"],
        expected="; ".join(one["expected"] or one["description"] for one in missed) or last["expected"],
        received="; ".join(filter(None, (one["actual"] for one in missed))) or last["received"],
        error=last["error"],
        call=f"{files.call_id(call.n)} {call.tool}" if call else "",
    )


def telling_call(calls: list[CallEnded]) -> CallEnded | None:
    """The last that failed, else the last whose answer said something about the page, else the last."""
    failed = [call for call in calls if not call.ok]
    about_page = [call for call in calls if not _is_beside_page(call)]
    return next((listed[-1] for listed in (failed, about_page, calls) if listed), None)


def _is_beside_page(call: CallEnded) -> bool:
    # Runs recorded before meanings were kept have only the tool's name.
    return call.meaning in (*SILENT, *LISTING) or (not call.meaning and "screenshot" in call.tool.lower())
