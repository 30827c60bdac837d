"""What can be read about runs, scenarios and their files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call, View
from holdfast.core.ports import EventQuery
from holdfast.features.uat import files, lookup, scenario, scenario_plan, steps
from holdfast.features.uat.files import load
from holdfast.features.uat.jobs import write
from holdfast.features.uat.jobs.scan import catalogue
from holdfast.features.uat.report import rendered, suite
from holdfast.features.uat.report.suite import suite_view
from holdfast.features.uat.scenario import schema
from holdfast.features.uat.settings import FAILED, PASSED, iso
from holdfast.features.uat.state import RUNS, Run

LONGEST_PAGE = 500
PAGE = 50


def brief(doc: Run | None) -> dict[str, Any]:
    if doc is None:
        return {}
    judged = [a.result for a in doc.assertions] + doc.asserted
    verdicts = [steps.verdict(doc, step) for step in doc.steps]
    return {
        "id": doc.id,
        "scenario": doc.scenario,
        "session": doc.session,
        "project": doc.project,
        "status": doc.status,
        "outcome": doc.outcome,
        "reason": doc.reason,
        "start": doc.start,
        "end": doc.end,
        "at": doc.at,
        "step": doc.current,
        "steps": len(doc.steps),
        "completed": verdicts.count(PASSED),
        "verdicts": {name: verdicts.count(name) for name in dict.fromkeys(verdicts)},
        "flaky": sum(steps.is_flaky(step) for step in doc.steps),
        "interrupted": doc.interrupted,
        "source": doc.source,
        "calls": doc.calls,
        "failed": doc.failed,
        "errors": doc.errors,
        "warnings": doc.warnings,
        "screenshots": doc.shots,
        "assertions": {"passed": judged.count(PASSED), "failed": judged.count(FAILED), "all": len(judged)},
        "confidence": doc.confidence,
        "auto": doc.auto,
        "archived": bool(doc.archived),
    }


def list_(call: Call) -> dict[str, Any]:
    args = call.args
    limit = min(int(args.get("limit") or PAGE), LONGEST_PAGE)
    before = args.get("before")
    page = RUNS.list(
        call.reader,
        project="" if args.get("all") else call.project,
        status=str(args.get("status") or ""),
        before=(int(before[0]), str(before[1])) if isinstance(before, list | tuple) and len(before) == 2 else None,
        limit=limit,
    )
    following = [page[-1][1].at, page[-1][0]] if len(page) == limit else None
    return {"runs": [brief(doc) for _, doc in page], "next": following, "now": call.now}


def show(call: Call) -> dict[str, Any]:
    """A run for people: its steps, assertions, problems and pictures, without the list of calls unless wanted."""
    record = load(call.reader, lookup.run(call).id)
    calls = [files.tool_call(c) for c in record.calls] if call.args.get("calls") else []
    return {
        **brief(record.doc),
        "description": record.plan.description,
        "message": record.doc.message,
        "reasons": record.doc.reasons,
        "base_url": record.doc.base_url,
        "plan": files.judged_steps(record),
        "judged": files.assertions(record),
        "checks": [files.health_check(*check) for check in record.checks],
        "problems": [{**files.problem(p), "level": p["level"]} for p in record.problems],
        "shots": [files.screenshot(shot) for shot in record.shots],
        "performance": files.performance(record),
        "reports": [report.as_dict() for report in record.doc.reports],
        "recent": msgspec.to_builtins(record.doc.last),
        "file": _file(call, record.doc),
        "tool_calls": calls,
    }


def _file(call: Call, doc: Run) -> str:
    paths = files.places_of(doc)
    return str(write.targets(paths, doc, call.reader)[-1]) if paths else ""


def document(call: Call) -> dict[str, Any]:
    """S3-14: the seed's document, as it is now and not as a file was written."""
    return files.document(load(call.reader, lookup.run(call).id))


def context(call: Call) -> dict[str, Any]:
    """S3-21."""
    doc = lookup.active(call)
    paths = files.places_of(doc)
    return {
        "scenario": doc.scenario,
        "uatSessionId": doc.id,
        "currentStep": doc.current,
        "totalSteps": len(doc.steps),
        "mode": doc.mode,
        "baseUrl": doc.base_url,
        "screenshotDirectory": str(paths.screenshots(doc.id)) if paths else "",
    }


def signal(call: Call) -> dict[str, Any] | None:
    """S3-22: None when nobody left one."""
    hook_signal = lookup.run(call).hooks.get(str(call.args.get("signal")))
    return {"data": hook_signal.data, "timestamp": iso(hook_signal.at)} if hook_signal else None


def signals(call: Call) -> dict[str, Any]:
    hooks = lookup.run(call).hooks
    return {name: {"data": one.data, "timestamp": iso(one.at)} for name, one in hooks.items()}


def report(call: Call) -> str:
    made = rendered(load(call.reader, lookup.run(call).id), str(call.args.get("format") or "html"))
    return made.decode("utf-8", "replace")


def compared(call: Call) -> dict[str, Any]:
    one, other = lookup.run(call), lookup.run(call, "other")
    return suite.compared(load(call.reader, one.id), load(call.reader, other.id))


def scenarios(call: Call) -> dict[str, Any]:
    folder = lookup.places(call).scenarios
    plans, mistakes = catalogue(folder)
    listed = [
        {
            "name": name,
            "description": plan.description,
            "tags": plan.tags,
            "steps": len(plan.steps),
            "file": plan.file,
        }
        for name, plan in plans.items()
    ]
    return {"scenarios": listed, "problems": [str(m) for m in mistakes], "folder": str(folder)}


def validate(call: Call) -> dict[str, Any]:
    """Every scenario, or the files named."""
    named = [Path(call.project, str(name)) for name in call.args.get("files") or ()]
    folder = lookup.places(call).scenarios
    if not named:
        plans, mistakes = catalogue(folder)
        return {
            "files": len(scenario.listed(folder)),
            "good": sorted(plans),
            "mistakes": [_shown(m) for m in mistakes],
        }
    read = [scenario_plan.read_plan(path) for path in named]
    good = sorted(plan.name for plan, _ in read if plan)
    return {"files": len(named), "good": good, "mistakes": [_shown(m) for _, faults in read for m in faults]}


def _shown(mistake: scenario.Mistake) -> dict[str, Any]:
    return {"file": mistake.file, "line": mistake.line, "text": mistake.text}


def published(_call: Call) -> dict[str, Any]:
    return schema()


def place(call: Call) -> dict[str, Any]:
    """Where the files of a session's run lie, and in which state they are."""
    doc = lookup.run(call)
    paths = files.places_of(doc)
    if paths is None:
        raise CommandRefused("this run has no folder")
    path = Path(_file(call, doc))
    return {
        "file": str(path),
        "condition": write.condition(path),
        "lock": str(paths.lock_file(doc.session)),
        "backup": str(paths.backup_file(doc.session)),
        "run": doc.id,
    }


def done(call: Call) -> dict[str, Any] | None:
    """The event a command's job answered with; None as long as it works."""
    key = str(call.args.get("key"))
    seq = call.reader.known([key]).get(key)
    page = call.reader.events(EventQuery(after=seq - 1, before=seq + 1, limit=1)) if seq else []
    return {"kind": page[0].kind, **page[0].data.as_dict()} if page else None


def active(call: Call) -> dict[str, Any] | None:
    """The session's run that is going on, if there is one."""
    mine = lookup.of_session(call)
    return brief(RUNS.load(call.reader, mine.active)) if mine and mine.active else None


VIEWS: Mapping[str, View] = {
    "list": list_,
    "show": show,
    "document": document,
    "context": context,
    "signal": signal,
    "signals": signals,
    "report": report,
    "compare": compared,
    "scenarios": scenarios,
    "validate": validate,
    "schema": published,
    "place": place,
    "done": done,
    "active": active,
    "suite": suite_view,
}
