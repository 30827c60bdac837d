"""What can be read about runs, scenarios and their files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call, View
from holdfast.core.ports import EventQuery
from holdfast.features.uat import files
from holdfast.features.uat.jobs import session_file
from holdfast.features.uat.jobs.scenario_scan import load_catalogue
from holdfast.features.uat.record import Record, load_record
from holdfast.features.uat.report import comparison, render_report
from holdfast.features.uat.report.figures import run_summary
from holdfast.features.uat.report.suite import suite_view
from holdfast.features.uat.scenarios import reader, recorder, run_lookup
from holdfast.features.uat.scenarios.scenario import scenario_schema
from holdfast.features.uat.settings import format_iso
from holdfast.features.uat.state import RUNS, Run

LONGEST_PAGE = 500
PAGE = 50


def list_runs(call: Call) -> dict[str, Any]:
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
    # A full page: there may be another one behind it.
    following = [page[-1][1].at, page[-1][0]] if len(page) == limit else None
    return {"runs": [run_summary(doc) for _, doc in page], "next": following, "now": call.now}


def load_run(call: Call) -> Record:
    return load_record(call.reader, run_lookup.find_run(call).id)


def show_run(call: Call) -> dict[str, Any]:
    """A run for people: its steps, assertions, problems and pictures, without the list of calls unless wanted."""
    record = load_run(call)
    calls = [files.tool_call(c) for c in record.calls] if call.args.get("calls") else []
    return {
        **run_summary(record.doc),
        "description": record.plan.description,
        "message": record.doc.message,
        "reasons": record.doc.reasons,
        "base_url": record.doc.base_url,
        "remarks": files.run_remarks(record),
        "plan": files.judged_steps(record),
        "judged": files.assertion_entries(record),
        "checks": [files.health_check(*check) for check in record.checks],
        "problems": [{**files.problem_entry(p), "level": p["level"]} for p in record.problems],
        "shots": [files.screenshot_entry(shot) for shot in record.shots],
        "performance": files.performance_section(record),
        "reports": [report.as_dict() for report in record.doc.reports],
        "recent": msgspec.to_builtins(record.doc.last),
        "file": _run_file(call, record.doc),
        "tool_calls": calls,
    }


def _run_file(call: Call, doc: Run) -> str:
    paths = files.places_of(doc)
    return str(session_file.target_files(paths, doc, call.reader)[-1]) if paths else ""


def run_context(call: Call) -> dict[str, Any]:
    """S3-21."""
    doc = run_lookup.require_active_run(call)
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


def read_signals(call: Call) -> dict[str, Any]:
    hooks = run_lookup.find_run(call).hooks
    return {name: {"data": one.data, "timestamp": format_iso(one.at)} for name, one in hooks.items()}


def compare_two_runs(call: Call) -> dict[str, Any]:
    one, other = (load_record(call.reader, run_lookup.find_run(call, name).id) for name in ("run", "other"))
    return comparison.compare_runs(one, other)


def list_scenarios(call: Call) -> dict[str, Any]:
    folder = run_lookup.places_of_call(call).scenarios
    plans, mistakes = load_catalogue(folder)
    listed = [
        {"name": name, "steps": len(plan.steps)}
        | {field: getattr(plan, field) for field in ("description", "tags", "file")}
        for name, plan in plans.items()
    ]
    return {"scenarios": listed, "problems": [str(m) for m in mistakes], "folder": str(folder)}


def validate_scenarios(call: Call) -> dict[str, Any]:
    """Every scenario, or the files named."""
    named = [Path(call.project, str(name)) for name in call.args.get("files") or ()]
    folder = run_lookup.places_of_call(call).scenarios
    if named:
        read = [recorder.read_plan(path) for path in named]
        good, mistakes = [plan.name for plan, _ in read if plan], [m for _, found in read for m in found]
    else:
        plans, mistakes = load_catalogue(folder)
        good, named = list(plans), reader.scenario_files(folder)
    return {"files": len(named), "good": sorted(good), "mistakes": msgspec.to_builtins(mistakes)}


def locate_run_files(call: Call) -> dict[str, Any]:
    """Where the files of a session's run lie, and in which state they are."""
    doc = run_lookup.find_run(call)
    paths = files.places_of(doc)
    if paths is None:
        raise CommandRefused("this run has no folder")
    path = Path(_run_file(call, doc))
    return {
        "file": str(path),
        "condition": session_file.file_condition(path),
        "lock": str(paths.lock_file(doc.session)),
        "backup": str(paths.backup_file(doc.session)),
        "run": doc.id,
    }


def request_result(call: Call) -> dict[str, Any] | None:
    """The event a command's job answered with; None as long as it works."""
    key = str(call.args.get("key"))
    seq = call.reader.seqs_of_keys([key]).get(key)
    # By its number: the view has only the key that the command promised.
    page = call.reader.events(EventQuery(after=seq - 1, before=seq + 1, limit=1)) if seq else []
    return {"kind": page[0].kind, **page[0].data.as_dict()} if page else None


VIEWS: Mapping[str, View] = {
    "list": list_runs,
    "show": show_run,
    # S3-14: as it is now, and not as a file was written.
    "document": lambda call: files.build_run_document(load_run(call)),
    "context": run_context,
    # S3-22: None when nobody left one.
    "signal": lambda call: read_signals(call).get(str(call.args.get("signal"))),
    "signals": read_signals,
    "report": lambda call: render_report(load_run(call), str(call.args.get("format") or "html")).decode(
        "utf-8", "replace"
    ),
    "compare": compare_two_runs,
    "scenarios": list_scenarios,
    "validate": validate_scenarios,
    "schema": lambda _: scenario_schema(),
    "place": locate_run_files,
    "done": request_result,
    "active": lambda call: run_summary(run_lookup.active_run(call)) or None,
    "suite": suite_view,
}
