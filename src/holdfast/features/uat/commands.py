"""Commands of people and their hooks."""

# Each becomes one event or a few.

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, Command, CommandResult
from holdfast.core.ids import delivery_key
from holdfast.core.kinds.uat_events import Plan
from holdfast.features.uat import files, runner_reports
from holdfast.features.uat.drivers.results import bound_value
from holdfast.features.uat.jobs.requests import done_key
from holdfast.features.uat.jobs.scenario_scan import load_catalogue
from holdfast.features.uat.policy import derive
from holdfast.features.uat.record import load_record
from holdfast.features.uat.report import FORMATS
from holdfast.features.uat.report.figures import run_summary
from holdfast.features.uat.runner_reports.trace import parse_trace
from holdfast.features.uat.scenarios import recorder, run_lookup, starter
from holdfast.features.uat.settings import (
    FAILED,
    LARGEST_OVERLAY,
    LARGEST_SIGNAL,
    LONGEST_NAME,
    PASSED,
    SETTABLE,
    clean_line,
    run_id,
)
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, Run, merge, run


def _run_event(call: Call, doc: Run, kind: str, /, **data: Any) -> Event:
    return files.run_event(doc, kind, call.now, delivery_key(call.now), **data)


def _one_event(call: Call, doc: Run, kind: str, /, **data: Any) -> CommandResult:
    """The answer of most commands is the run as it is now."""
    return CommandResult((_run_event(call, doc, kind, **data),), answer=_answer_with_run(doc.id))


def _answer_with_run(run: str) -> Any:
    return lambda reader: run_summary(RUNS.load(reader, run))


def start_run(call: Call) -> CommandResult:
    """S3-15. The scenario is read from disk now, so that a file saved a moment ago counts."""
    session, settings = run_lookup.session_of_call(call), run_lookup.settings_of_call(call)
    name = str(call.args.get("scenario") or "")
    plan = _ad_hoc_plan(call, name) if call.args.get("ad_hoc") else _find_scenario_plan(call, name)
    # The run's id is made from the event's key, so both are needed before the event.
    key = delivery_key(call.now)
    confidence = call.args.get("confidence")
    data = derive.run_start_data(
        plan, settings, call.project,
        message=str(call.args.get("message") or ""), auto=bool(call.args.get("auto")), reasons=["by command"],
        confidence=min(100, max(0, confidence)) if isinstance(confidence, int) else 100,
    )  # fmt: skip
    new = run_id(call.now, key)
    event = Event(
        key=key, kind="uat.started", at=call.now, session=session, project=call.project, data={"uat": new, **data}
    )
    return CommandResult((event,), answer=_answer_with_run(new))


def _find_scenario_plan(call: Call, name: str) -> Plan:
    folder = run_lookup.places_of_call(call).scenarios
    plans, mistakes = load_catalogue(folder)
    if name in plans:
        return plans[name]
    # A mistake is reported only where the file has the scenario's name.
    wrong = [str(m) for m in mistakes if f"/{name}." in m.file]
    if wrong:
        raise CommandRefused(f"the scenario {name!r} has mistakes: {wrong[0]}", fix="See: holdfast uat validate")
    hint = f"Known: {', '.join(plans)}." if plans else "Write a first one with: holdfast uat init NAME"
    raise CommandRefused(f"there is no scenario {clean_line(name, 80)!r}", where=str(folder), fix=hint)


def _ad_hoc_plan(call: Call, name: str) -> Plan:
    if not name:
        raise CommandRefused("a run needs a name")
    # Its outcome would count for the scenario, and for the gate that asks for it, without one of its steps.
    if name in load_catalogue(run_lookup.places_of_call(call).scenarios)[0]:
        raise CommandRefused(f"{name!r} is a scenario", fix="Leave --ad-hoc away, or give the run another name.")
    return Plan(name=clean_line(name, LONGEST_NAME))


def set_step_status(call: Call) -> CommandResult:
    """S3-17 update_scenario_progress."""
    doc = run_lookup.require_active_run(call)
    number, status = _step_number(call.args.get("step")), str(call.args.get("status") or "")
    if status not in SETTABLE:
        raise CommandRefused(f"a step cannot be {status!r}", fix=f"It can be: {', '.join(SETTABLE)}.")
    if not 1 <= number <= len(doc.steps):
        raise CommandRefused(f"there is no step {number}; this run has {len(doc.steps)}")
    return _one_event(call, doc, "uat.step", step=number, status=status)


def _step_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise CommandRefused(f"a step is named by its number, not by {clean_line(value, 40)!r}")
    return value


def record_assertion(call: Call) -> CommandResult:
    doc, result = run_lookup.require_active_run(call), str(call.args.get("result") or "")
    if result not in (PASSED, FAILED):
        raise CommandRefused(f"an assertion has {PASSED} or {FAILED}, not {clean_line(result, 40)!r}")
    description = clean_line(call.args.get("description"), 300)
    if not description:
        raise CommandRefused("an assertion needs a description")
    facts = {n: clean_line(call.args[n], 300) for n in ("expected", "actual") if call.args.get(n)}
    number = call.args.get("step")
    at = {"step": _in_range(doc, number)} if number is not None else {"step": doc.current}
    at |= _same_assertion(call, doc, description)
    return _one_event(call, doc, "uat.asserted", description=description, result=result, **facts, **at)


def _same_assertion(call: Call, doc: Run, description: str) -> dict[str, int]:
    """One of the scenario's own, by its description, judged by hand."""
    planned = (PLANS.load(call.reader, doc.id) or NO_PLAN).assertions
    same = (n for n, one in enumerate(planned) if one.description.casefold() == description.casefold())
    return {"index": index} if (index := next(same, None)) is not None else {}


def _in_range(doc: Run, value: Any) -> int:
    number = _step_number(value)
    if not 0 <= number <= len(doc.steps):
        raise CommandRefused(f"there is no step {number}; this run has {len(doc.steps)}")
    return number


def record_health_check(call: Call) -> CommandResult:
    """S3-7: a health check made elsewhere."""
    doc, result = run_lookup.require_active_run(call), str(call.args.get("result") or "success")
    if result not in ("success", "failure"):
        raise CommandRefused(f"a health check is success or failure, not {clean_line(result, 40)!r}")
    data = {"type": clean_line(call.args.get("type") or "page_load", 100), "result": result, "step": doc.current}
    return _one_event(call, doc, "uat.checked", **data, data=bound_value(call.args.get("data") or {}))


def tool_call(call: Call) -> CommandResult:
    """S3-17 add_tool_call: for tools whose hooks do not reach Holdfast."""
    doc, reported = run_lookup.require_active_run(call), call.args.get("call")
    if not isinstance(reported, Mapping) or not isinstance(reported.get("toolName"), str):
        raise CommandRefused("a tool call is an object with at least `toolName`")
    number, ms = reported.get("stepNumber"), reported.get("executionTime")
    data = {
        "tool": clean_line(reported["toolName"], 200),
        "step": _in_range(doc, number) if number is not None else None,
        "parameters": bound_value(reported.get("parameters") or {}),
        "result": bound_value(reported.get("result") or {}),
        "ms": max(0, int(ms)) if isinstance(ms, int | float) and not isinstance(ms, bool) else 0,
        "ok": reported.get("success") is not False,
        "error": "" if reported.get("success") is not False else clean_line(reported.get("error") or "failed", 300),
    }
    return _one_event(call, doc, "uat.told", call=data)


def leave_signal(call: Call) -> CommandResult:
    """S3-22: one hook leaves another a message."""
    doc, name = run_lookup.require_active_run(call), str(call.args.get("signal") or "")
    data = call.args.get("data")
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise CommandRefused(f"a signal needs a name of at most {LONGEST_NAME} printable characters")
    if len(msgspec.json.encode(data)) > LARGEST_SIGNAL:
        raise CommandRefused(f"a signal carries at most {LARGEST_SIGNAL} bytes")
    return _one_event(call, doc, "uat.signal", name=name, data=data)


def update_run(call: Call) -> CommandResult:
    """S3-16, S3-25: one or several patches, merged into one write."""
    doc, patches = run_lookup.require_active_run(call), call.args.get("patches")
    if not isinstance(patches, list) or not patches or not all(isinstance(p, Mapping) for p in patches):
        raise CommandRefused("an update is one JSON object or several")
    patch = merge.merged_all(patches)
    accepted, added, ignored = merge.split_patch(patch)
    if merge.encoded_size(merge.merge_objects(doc.overlay, accepted)) > LARGEST_OVERLAY:
        raise CommandRefused(f"more than {LARGEST_OVERLAY} bytes cannot be merged into a run")
    events = [_run_event(call, doc, "uat.patched", patch=accepted)] if accepted else []
    for path, entries in _new_entries(call, doc, added).items():
        events += _events_of_entries(call, doc, merge.ADDED[path], entries)
    if "session.status" in ignored and patch["session"]["status"] == "completed":
        ignored.remove("session.status")
        # The verdict has to count what this very update adds.
        events += _ending_events(call, run.reduce_events(doc, events), "by-hand")
    return CommandResult(
        tuple(events), answer=lambda reader: {**run_summary(RUNS.load(reader, doc.id)), "ignored": ignored}
    )


def _new_entries(call: Call, doc: Run, added: dict[merge.Path, list[Any]]) -> dict[merge.Path, list[Any]]:
    """A whole state that is written back repeats entries that are known."""
    if not added:
        return {}
    document = files.build_run_document(load_record(call.reader, doc.id))
    return {
        (part, name): [e for e in entries if e not in document[part][name]] for (part, name), entries in added.items()
    }


def _events_of_entries(call: Call, doc: Run, what: str, entries: list[Any]) -> Iterator[Event]:
    """An entry is an object, or just its words."""
    for entry in entries[:100]:
        facts = entry if isinstance(entry, Mapping) else {"message": entry}
        if what in ("error", "warning"):
            kind = clean_line(facts.get("type") or "note", 50)
            yield _run_event(call, doc, "uat.problem", level=what, type=kind, message=_words(facts), step=doc.current)
        elif what == "check":
            check = {"type": clean_line(facts.get("type"), 100), "data": bound_value(facts.get("data") or {})}
            good = "success" if facts.get("result") == "success" else "failure"
            yield _run_event(call, doc, "uat.checked", result=good, step=doc.current, **check)
        elif (result := _RESULTS.get(str(facts.get("result")))) is not None:
            yield _run_event(call, doc, "uat.asserted", description=_words(facts), result=result, step=doc.current)


def _words(facts: Mapping[str, Any]) -> str:
    return clean_line(facts.get("message") or facts.get("description") or facts.get("error") or facts, 300)


_RESULTS = {PASSED: PASSED, FAILED: FAILED, "True": PASSED, "False": FAILED}


def end_run(call: Call) -> CommandResult:
    """S3-19 cleanup_session."""
    doc = run_lookup.require_active_run(call)
    reason = clean_line(call.args.get("reason") or "by-hand", 100)
    return CommandResult(tuple(_ending_events(call, doc, reason)), answer=_answer_with_run(doc.id))


def _ending_events(call: Call, doc: Run, reason: str) -> Iterable[Event]:
    return derive.run_ending_events(doc, call.now, reason, partial(_run_event, call, doc))


def import_results(call: Call) -> CommandResult:
    """A test runner's report, as one run or several. The same file again is the runs that are there already."""
    path = Path(str(call.args.get("path") or ""))
    name = str(call.args.get("scenario") or path.stem)
    content = _read_report(path)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0" + content).hexdigest()[:32]
    if earlier := [run_summary(doc) for doc in run_lookup.imported_runs(call, digest)]:
        return CommandResult((), answer={"runs": earlier, "again": True})
    is_trace = path.suffix == ".zip"
    reports = [parse_trace(path, name)] if is_trace else runner_reports.parse_report(content, name)
    made = [
        _imported_events(call, runner_reports.add_artifacts(report, path.parent), path, digest) for report in reports
    ]
    ids = [events[0].data.uat for events in made]
    return CommandResult(
        tuple(event for events in made for event in events),
        answer=lambda reader: {"runs": [run_summary(RUNS.load(reader, one)) for one in ids], "again": False},
    )


def _read_report(path: Path) -> bytes:
    if not path.is_absolute() or not path.is_file():
        fix = "Name a JSON or JUnit report, or a trace.zip."
        raise CommandRefused(f"there is no file {clean_line(path, 300)}", fix=fix)
    if path.stat().st_size > runner_reports.LARGEST_REPORT:
        raise CommandRefused(f"{path} is larger than {runner_reports.LARGEST_REPORT >> 20} MB")
    return path.read_bytes()


def _imported_events(call: Call, report: runner_reports.TestReport, path: Path, digest: str) -> list[Event]:
    key = delivery_key(call.now)
    # The report has no times: the run is laid out so that it ends now.
    start = call.now - sum(attempt.ms for case in report.cases for attempt in case.attempts)
    facts = {"reasons": [f"imported from {path.name}"], "confidence": 100, "source": report.runner, "digest": digest}
    plan, settings = runner_reports.plan_of_report(report), run_lookup.settings_of_call(call)
    new = run_id(start, key)
    data = {**derive.run_start_data(plan, settings, call.project, **facts), "uat": new}
    events = [Event(key=key, kind="uat.started", at=start, project=call.project, data=data)]

    def make(kind: str, at: int = call.now, **fields: Any) -> Event:
        named = {**fields, "uat": new, "cwd": str(path.parent)}
        return Event(key=delivery_key(call.now), kind=kind, at=at, project=call.project, data=named)

    events += [make(kind, at, **fields) for kind, at, fields in runner_reports.run_events(report, start)]
    doc = run.reduce_events(run.new_run(events[0]), events[1:])
    return [*events, *derive.run_ending_events(doc, call.now, "import", make)]


# ── done by a job afterwards; `done` is the key of the event that reports it ────────────────────────────────────


def _request_job(call: Call, what: str, doc: Run | None = None, **data: Any) -> CommandResult:
    key, project = delivery_key(call.now), doc.project if doc else call.project
    named = {"uat": doc.id} if doc else {}
    event = Event(
        key=key, kind="uat.asked", at=call.now, session=doc.session if doc else "", project=project,
        data={"what": what, **named, **data},
    )  # fmt: skip
    return CommandResult((event,), answer={"done": done_key(key), **named, **data})


def request_report(call: Call) -> CommandResult:
    formats = [str(name) for name in call.args.get("formats") or ("html",)]
    for name in formats:
        if name not in FORMATS:
            raise CommandRefused(f"there is no report format {name!r}", fix=f"Known: {', '.join(FORMATS)}.")
    return _request_job(call, "report", run_lookup.find_run(call), formats=formats)


def request_comparison(call: Call) -> CommandResult:
    one, other = run_lookup.find_run(call), run_lookup.find_run(call, "other")
    return _request_job(call, "compare", one, **{"with": other.id})


def request_cleanup(call: Call) -> CommandResult:
    days = call.args.get("days")
    return _request_job(call, "clean", days=days if isinstance(days, int) else None, dry=bool(call.args.get("dry")))


def request_new_scenario(call: Call) -> CommandResult:
    name = clean_line(call.args.get("scenario") or "login-flow", LONGEST_NAME)
    path = starter.scenario_file(run_lookup.places_of_call(call), name)
    if path.exists():
        raise CommandRefused(f"{path} is already there", fix="Give another name, or change that one.")
    facts = {"name": name, "base_url": clean_line(call.args.get("base_url"), 300), "path": str(path)}
    if call.args.get("record"):
        is_named = call.args.get("session") or call.session
        session = run_lookup.session_of_call(call) if is_named else run_lookup.latest_session(call)
        base, steps = recorder.record_steps(call.reader, session, run_lookup.settings_of_call(call).drivers)
        facts["text"] = recorder.scenario_text(name, facts["base_url"] or base, steps, session)
    return _request_job(call, "init", None, **facts)


COMMANDS: Mapping[str, Command] = {
    "start": start_run,
    "step": set_step_status,
    "assert": record_assertion,
    "check": record_health_check,
    "call": tool_call,
    "signal": leave_signal,
    "update": update_run,
    "end": end_run,
    "report": request_report,
    "compare": request_comparison,
    "recover": lambda call: _request_job(call, "recover", run_lookup.find_run(call)),  # S3-24,
    # S3-20 cleanup_stale_sessions, now instead of within a minute.
    "tend": lambda call: _request_job(call, "tend"),
    "clean": request_cleanup,
    "init": request_new_scenario,
    "import": import_results,
}
