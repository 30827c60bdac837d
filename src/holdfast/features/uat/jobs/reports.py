"""Writes the reports of a run."""

from collections.abc import Iterable
from typing import Any

from holdfast.core.errors import UnsafePath
from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.features.uat.files import keyed_run_event, places_of, problem_event
from holdfast.features.uat.record import load_record
from holdfast.features.uat.report import ENDINGS, render_report
from holdfast.features.uat.report.suite import build_suite, render_suite
from holdfast.features.uat.settings import DEFAULTS, format_iso
from holdfast.features.uat.state import Run

REPORTS_MODE = 0o644
SUITE_FILE = "suite.html"


def run_report_job(call: JobCall) -> list[Event]:
    doc = load_record(call.reader, str(call.job.payload["uat"])).doc
    formats = (call.settings(doc.project) or DEFAULTS).reports
    return [report_event(call, doc, formats, f"{call.job.id}")]


def report_event(call: JobCall, doc: Run, formats: Iterable[str], key: str) -> Event:
    try:
        return keyed_run_event(doc, "uat.reported", call.now, key, reports=_write_reports(call, doc, formats))
    except (UnsafePath, OSError) as error:
        return problem_event(doc, call.now, error, "report")


def _write_reports(call: JobCall, doc: Run, formats: Iterable[str]) -> list[dict[str, Any]]:
    paths, made = places_of(doc), []
    if paths is None:
        raise UnsafePath("this run has no folder")
    record = load_record(call.reader, doc.id)
    folder = paths.ready(paths.reports)
    for name in formats:
        path = paths.report_file(doc.id, ENDINGS[name])
        call.put(File(path, render_report(record, name), REPORTS_MODE, hidden=folder))
        if name == "html":
            suite = render_suite(build_suite(call.reader, doc.project, call.now), str(folder))
            call.put(File(folder / SUITE_FILE, suite, REPORTS_MODE, hidden=folder))
        made.append({"name": path.name, "path": str(path), "format": name, "timestamp": format_iso(doc.end or doc.at)})
    return made
