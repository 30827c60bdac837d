"""The seed's document, field by field (S3-3 to S3-10), made from a record."""

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import HealthChecked, JudgedCheck, PlannedStep
from holdfast.features.uat.drivers.assertions import expected_conditions
from holdfast.features.uat.folders import RunFolders
from holdfast.features.uat.record import Record
from holdfast.features.uat.settings import COMPLETED, FORMAT, IN_PROGRESS, INTERRUPTED, VERSION, format_iso
from holdfast.features.uat.state import Run, Step
from holdfast.features.uat.state.merge import merge_objects
from holdfast.features.uat.state.steps import duration_ms, is_flaky, step_verdict

REQUIRED = (
    ("meta", "version"),
    ("session", "claudeSessionId"),
    ("session", "uatSessionId"),
    ("session", "scenarioName"),
    ("scenario", "name"),
    ("execution",),
    ("performance",),
)
"""S3-23."""


def render_run_file(record: Record) -> bytes:
    return msgspec.json.format(msgspec.json.encode(build_run_document(record), enc_hook=str), indent=2) + b"\n"


def build_run_document(record: Record) -> dict[str, Any]:
    doc = record.doc
    made = {
        "meta": {"version": VERSION, "created": format_iso(doc.start), "updated": format_iso(doc.at), "format": FORMAT},
        "session": session_section(doc),
        "scenario": scenario_section(record),
        "execution": {
            "toolCalls": [tool_call(call) for call in record.calls],
            "errors": [problem_entry(one) for one in record.errors()],
            "warnings": [problem_entry(one) for one in record.warnings()],
        },
        "validation": {
            "frameworkInjected": doc.framework,
            "healthChecks": [health_check(event, check) for event, check in record.checks],
            "assertions": assertion_entries(record),
        },
        "artifacts": {
            "screenshots": [screenshot_entry(shot) for shot in record.shots],
            "logs": [],
            "reports": [report.as_dict() for report in doc.reports],
        },
        "performance": performance_section(record),
        "context": context_section(doc),
    }
    # Patches from outside come last; `split_patch` kept derived fields out of them.
    return merge_objects(made, doc.overlay)


def session_section(doc: Run) -> dict[str, Any]:
    ended = {"endTime": format_iso(doc.end)} if doc.end is not None else {}
    return {
        "claudeSessionId": doc.session,
        "uatSessionId": doc.id,
        "scenarioName": doc.scenario,
        "mode": doc.mode,
        "status": doc.status,
        "startTime": format_iso(doc.start),
        "lastActivity": format_iso(doc.at),
        **ended,
    }


def scenario_section(record: Record) -> dict[str, Any]:
    doc, plan = record.doc, record.plan
    return {
        "name": doc.scenario,
        "description": plan.description,
        "totalSteps": len(doc.steps),
        "currentStep": doc.current,
        "completedSteps": sum(step.status == COMPLETED for step in doc.steps),
        "estimatedDuration": plan.estimated_ms or None,
        "actualDuration": None if doc.end is None else max(0, doc.end - doc.start),
        "steps": [
            step_entry(n, planned, step)
            for n, (planned, step) in enumerate(zip(plan.steps, doc.steps, strict=False), 1)
        ],
    }


def judged_steps(record: Record) -> list[dict[str, Any]]:
    """The steps with verdict and attempts, for people; the file has only what its format knows."""
    step_rows = scenario_section(record)["steps"]
    return [
        {
            **one,
            "verdict": step_verdict(record.doc, step),
            "flaky": is_flaky(step),
            "error": step.attempts[-1].error if step.attempts else "",
            "attempts": [{**msgspec.to_builtins(a), "duration": duration_ms(a)} for a in step.attempts],
        }
        for one, step in zip(step_rows, record.doc.steps, strict=False)
    ]


def run_remarks(record: Record) -> list[str]:
    """Preconditions that did not hold, and steps that were marked by hand."""
    unmet = [c for _, c in record.checks if isinstance(c, HealthChecked) and c.precondition and c.result != "success"]
    remarks = [f"A precondition did not hold: {_describe_precondition(record, check)}" for check in unmet]
    marked = [str(n) for n, step in enumerate(record.doc.steps, 1) if step.attempts and step.attempts[-1].by_hand]
    return [*remarks, *([f"Marked by hand: step {', '.join(marked)}"] if marked else [])]


def _describe_precondition(record: Record, check: HealthChecked) -> str:
    planned = record.plan.health_checks[check.index or 0 : (check.index or 0) + 1]
    title = planned[0].description or planned[0].path if planned else check.type
    facts = check.data if isinstance(check.data, dict) else {}
    found = facts.get("error") or f"status {facts.get('statusCode')}"
    return f"{title} ({facts.get('url')}: {found})"


def step_entry(number: int, planned: PlannedStep, step: Step) -> dict[str, Any]:
    # The file's format knows pending, in_progress, completed, failed and skipped.
    interrupted = step.status == INTERRUPTED
    return {
        "stepNumber": number,
        "action": planned.action,
        "description": planned.description,
        "status": IN_PROGRESS if interrupted else step.status,
        "startTime": format_iso(step.start),
        "endTime": None if interrupted else format_iso(step.end),
        "duration": None if interrupted else duration_ms(step),
    }


def tool_call(event: Event) -> dict[str, Any]:
    return {
        "id": call_id(event.data.n),
        "toolName": event.data.tool,
        "parameters": event.data.parameters or {},
        "result": event.data.result or {},
        "executionTime": event.data.ms,
        "timestamp": format_iso(event.data.began),
        "stepNumber": event.data.step,
        "success": event.data.ok,
    }


def call_id(number: int) -> str:
    return f"tool-call-{number:03}"


def problem_entry(one: Mapping[str, Any]) -> dict[str, Any]:
    call = {"toolCallId": call_id(one["call"])} if one["call"] else {}
    return {
        "timestamp": format_iso(one["at"]),
        "type": one["type"],
        "message": one["message"],
        "stepNumber": one["step"],
        **call,
    }


def health_check(event: Event, check: JudgedCheck | HealthChecked) -> dict[str, Any]:
    return {"timestamp": format_iso(event.at), "type": check.type, "result": check.result, "data": check.data or {}}


def assertion_entries(record: Record) -> list[dict[str, Any]]:
    entries = []
    for criteria, judged in zip(record.plan.assertions, record.doc.assertions, strict=False):
        expected = expected_conditions(criteria)
        described = (criteria.step, criteria.description or expected, expected)
        entries.append(_assertion_entry(*described, judged.result, judged.actual, judged.at))
    by_hand = [(event.data, event.at) for event in record.asserted if event.data.index is None]
    return entries + [
        _assertion_entry(one.step, one.description, one.expected, one.result, one.actual, at) for one, at in by_hand
    ]


def _assertion_entry(
    step: int | None, description: str, expected: str, result: str, actual: str, at: int | None
) -> dict[str, Any]:
    return {
        "timestamp": format_iso(at),
        "stepNumber": step or None,
        "description": description,
        "expected": expected or None,
        "actual": actual or None,
        "result": result,
    }


def screenshot_entry(event: Event) -> dict[str, Any]:
    same = {name: getattr(event.data, name) for name in ("name", "path", "size", "action")}
    return {**same, "timestamp": format_iso(event.at), "stepNumber": event.data.step, "success": True}


def performance_section(record: Record) -> dict[str, Any]:
    """S3-9, D9: computed each time, so never out of date. A step still going on counts up to the last tool's sign."""
    doc = record.doc
    spent = [
        max(0, (doc.touched if step.end is None else step.end) - step.start)
        for step in doc.steps
        if step.start is not None
    ]
    timed = [
        {"stepNumber": n, "duration": duration_ms(step), "action": planned.action}
        for n, (planned, step) in enumerate(zip(record.plan.steps, doc.steps, strict=False), 1)
        if step.status == COMPLETED and duration_ms(step) is not None
    ]
    judged = doc.ok + doc.failed + doc.interrupted
    return {
        "totalExecutionTime": sum(spent),
        "averageStepDuration": round(sum(spent) / len(spent)) if spent else 0,
        "fastestStep": min(timed, key=itemgetter("duration"), default=None),
        "slowestStep": max(timed, key=itemgetter("duration")) if len(timed) > 1 else None,
        "toolCallCount": doc.calls,
        "errorCount": doc.errors,
        "successRate": round(doc.ok / judged, 4) if judged else 0,
    }


def context_section(doc: Run) -> dict[str, Any]:
    paths = places_of(doc)
    hooks = {name: {"data": one.data, "timestamp": format_iso(one.at)} for name, one in doc.hooks.items()}
    return {
        "userMessage": doc.message,
        "detectionConfidence": doc.confidence,
        "autoInitialized": doc.auto,
        "baseUrl": doc.base_url,
        "screenshotDirectory": str(paths.screenshots(doc.id)) if paths else "",
        "reportDirectory": str(paths.reports) if paths else "",
        **({"hooks": hooks} if hooks else {}),
        **({"endReason": doc.reason, "outcome": doc.outcome} if doc.end is not None else {}),
    }


def places_of(doc: Run) -> RunFolders | None:
    return RunFolders(Path(doc.root), doc.project) if doc.root else None


def missing_fields(value: Any) -> list[str]:
    """S3-23: required fields that are not there."""
    return [".".join(path) for path in REQUIRED if not _has_field(value, path)]


def _has_field(value: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(value, Mapping) or value.get(name) in (None, False):
            return False
        value = value[name]
    return True


def run_event(doc: Run, kind: str, at: int, key: str = "", /, **data: Any) -> Event:
    fields = {**data, "uat": doc.id}
    return Event(key=key, kind=kind, at=at, session=doc.session, project=doc.project, data=fields)


def keyed_run_event(doc: Run, kind: str, now: int, key: str, /, **data: Any) -> Event:
    """The same thing found twice is one event: the key says what was found, not when."""
    return run_event(doc, kind, now, f"{kind}/{doc.id}/{key}", **data)


def problem_event(doc: Run, now: int, error: Exception, what: str) -> Event:
    """A warning of the run: a file of it could not be written."""
    message = str(error)[:300]
    return keyed_run_event(doc, "uat.problem", now, f"{what}/{message}", level="warning", type=what, message=message)
