"""The seed's document, field by field (S3-3 to S3-10), made from a record."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import HealthChecked, JudgedCheck
from holdfast.features.uat.folders import Places
from holdfast.features.uat.judge import expected
from holdfast.features.uat.model import COMPLETED, FORMAT, IN_PROGRESS, INTERRUPTED, VERSION, iso
from holdfast.features.uat.patch import merged
from holdfast.features.uat.record import Record
from holdfast.features.uat.state import Run, Step
from holdfast.features.uat.steps import duration, is_flaky, verdict

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


def content(record: Record) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document(record), enc_hook=str), indent=2) + b"\n"


def document(record: Record) -> dict[str, Any]:
    doc = record.doc
    made = {
        "meta": {"version": VERSION, "created": iso(doc.start), "updated": iso(doc.at), "format": FORMAT},
        "session": session(doc),
        "scenario": scenario(record),
        "execution": {
            "toolCalls": [tool_call(call) for call in record.calls],
            "errors": [problem(one) for one in record.errors()],
            "warnings": [problem(one) for one in record.warnings()],
        },
        "validation": {
            "frameworkInjected": doc.framework,
            "healthChecks": [health_check(event, check) for event, check in record.checks],
            "assertions": assertions(record),
        },
        "artifacts": {
            "screenshots": [screenshot(shot) for shot in record.shots],
            "logs": [],
            "reports": [report.as_dict() for report in doc.reports],
        },
        "performance": performance(record),
        "context": context(doc),
    }
    return merged(made, doc.overlay)


def session(doc: Run) -> dict[str, Any]:
    ended = {"endTime": iso(doc.end)} if doc.end is not None else {}
    return {
        "claudeSessionId": doc.session,
        "uatSessionId": doc.id,
        "scenarioName": doc.scenario,
        "mode": doc.mode,
        "status": doc.status,
        "startTime": iso(doc.start),
        "lastActivity": iso(doc.at),
        **ended,
    }


def scenario(record: Record) -> dict[str, Any]:
    doc, plan = record.doc, record.plan
    return {
        "name": doc.scenario,
        "description": plan.get("description", ""),
        "totalSteps": len(doc.steps),
        "currentStep": doc.current,
        "completedSteps": sum(step.status == COMPLETED for step in doc.steps),
        "estimatedDuration": plan.get("estimated_ms") or None,
        "actualDuration": None if doc.end is None else max(0, doc.end - doc.start),
        "steps": [
            step(n, wanted, stood)
            for n, (wanted, stood) in enumerate(zip(plan.get("steps", ()), doc.steps, strict=False), 1)
        ],
    }


def judged_steps(record: Record) -> list[dict[str, Any]]:
    """The steps with verdict and attempts, for people; the file has only what its format knows."""
    told = scenario(record)["steps"]
    return [
        {
            **one,
            "verdict": verdict(record.doc, stood),
            "flaky": is_flaky(stood),
            "error": stood.attempts[-1].error if stood.attempts else "",
            "attempts": [{**msgspec.to_builtins(a), "duration": duration(a)} for a in stood.attempts],
        }
        for one, stood in zip(told, record.doc.steps, strict=False)
    ]


STATUS_IN_FILE = {INTERRUPTED: IN_PROGRESS}
"""The file's format knows pending, in_progress, completed, failed and skipped."""


def step(number: int, wanted: Mapping[str, Any], stood: Step) -> dict[str, Any]:
    return {
        "stepNumber": number,
        "action": wanted["action"],
        "description": wanted.get("description", ""),
        "status": STATUS_IN_FILE.get(stood.status, stood.status),
        "startTime": iso(stood.start),
        "endTime": None if stood.status == INTERRUPTED else iso(stood.end),
        "duration": None if stood.status == INTERRUPTED else duration(stood),
    }


def tool_call(event: Event) -> dict[str, Any]:
    return {
        "id": call_id(event.data.n),
        "toolName": event.data.tool,
        "parameters": event.data.parameters or {},
        "result": event.data.result or {},
        "executionTime": event.data.ms,
        "timestamp": iso(event.data.began),
        "stepNumber": event.data.step,
        "success": event.data.ok,
    }


def call_id(number: int) -> str:
    return f"tool-call-{number:03}"


def problem(one: Mapping[str, Any]) -> dict[str, Any]:
    call = {"toolCallId": call_id(one["call"])} if one["call"] else {}
    return {
        "timestamp": iso(one["at"]),
        "type": one["type"],
        "message": one["message"],
        "stepNumber": one["step"],
        **call,
    }


def health_check(event: Event, check: JudgedCheck | HealthChecked) -> dict[str, Any]:
    return {
        "timestamp": iso(event.at),
        "type": check.type,
        "result": check.result,
        "data": check.data or {},
    }


def assertions(record: Record) -> list[dict[str, Any]]:
    planned = [
        _assertion(
            wanted.get("step"),
            wanted.get("description") or expected(wanted),
            expected(wanted),
            judged.result,
            judged.actual,
            judged.at,
        )
        for wanted, judged in zip(record.plan.get("assertions", ()), record.doc.assertions, strict=False)
    ]
    by_hand = [
        _assertion(e.data.step, e.data.description, e.data.expected, e.data.result, e.data.actual, e.at)
        for e in record.asserted
        if e.data.index is None
    ]
    return planned + by_hand


def _assertion(step: Any, description: Any, wanted: Any, result: Any, actual: Any, at: int | None) -> dict[str, Any]:
    return {
        "timestamp": iso(at),
        "stepNumber": step or None,
        "description": description or "",
        "expected": wanted or None,
        "actual": actual or None,
        "result": result,
    }


def screenshot(event: Event) -> dict[str, Any]:
    return {
        "name": event.data.name,
        "path": event.data.path,
        "size": event.data.size,
        "timestamp": iso(event.at),
        "stepNumber": event.data.step,
        "action": event.data.action,
        "success": True,
    }


def performance(record: Record) -> dict[str, Any]:
    """S3-9, D9: made anew each time, so never out of date. A step still going on counts up to the last tool's sign."""
    doc = record.doc
    spent = [_spent(stood, doc.touched) for stood in doc.steps if stood.start is not None]
    timed = _timed(record)
    judged = doc.ok + doc.failed + doc.interrupted
    return {
        "totalExecutionTime": sum(spent),
        "averageStepDuration": round(sum(spent) / len(spent)) if spent else 0,
        "fastestStep": min(timed, key=lambda s: s["duration"], default=None),
        "slowestStep": max(timed, key=lambda s: s["duration"]) if len(timed) > 1 else None,
        "toolCallCount": doc.calls,
        "errorCount": doc.errors,
        "successRate": round(doc.ok / judged, 4) if judged else 0,
    }


def _spent(stood: Step, touched: int) -> int:
    end = stood.end if stood.end is not None else touched
    return max(0, end - (stood.start or 0))


def _timed(record: Record) -> list[dict[str, Any]]:
    return [
        {"stepNumber": n, "duration": duration(stood), "action": wanted["action"]}
        for n, (wanted, stood) in enumerate(zip(record.plan.get("steps", ()), record.doc.steps, strict=False), 1)
        if stood.status == COMPLETED and duration(stood) is not None
    ]


def context(doc: Run) -> dict[str, Any]:
    places = places_of(doc)
    hooks = {name: {"data": one.data, "timestamp": iso(one.at)} for name, one in doc.hooks.items()}
    return {
        "userMessage": doc.message,
        "detectionConfidence": doc.confidence,
        "autoInitialized": doc.auto,
        "baseUrl": doc.base_url,
        "screenshotDirectory": str(places.screenshots(doc.id)) if places else "",
        "reportDirectory": str(places.reports) if places else "",
        **({"hooks": hooks} if hooks else {}),
        **({"endReason": doc.reason, "outcome": doc.outcome} if doc.end is not None else {}),
    }


def places_of(doc: Run) -> Places | None:
    from pathlib import Path

    return Places(Path(doc.root), doc.project) if doc.root else None


def valid(value: Any) -> bool:
    return not missing(value)


def missing(value: Any) -> list[str]:
    """S3-23: required fields that are not there."""
    return [".".join(path) for path in REQUIRED if not _has(value, path)]


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(value, Mapping) or value.get(name) in (None, False):
            return False
        value = value[name]
    return True
