"""Carries out what people ask of UAT that touches the disk."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.core.times import DAY
from holdfast.features.uat import files
from holdfast.features.uat.file_names import safe_file_name
from holdfast.features.uat.folders import RunFolders, root_of
from holdfast.features.uat.jobs import reports, session_file, tend
from holdfast.features.uat.jobs.scenario_scan import MOST_MISTAKES, load_catalogue
from holdfast.features.uat.record import Record, load_record
from holdfast.features.uat.report import ENDINGS, comparison
from holdfast.features.uat.report.html import render_comparison
from holdfast.features.uat.scenarios import starter
from holdfast.features.uat.settings import DEFAULTS
from holdfast.features.uat.state import Run

# Seconds.
PIXELS_S = 120.0
PICTURE_PROGRAM = Path(__file__).with_name("picture_program.py")
REQUESTS_MODE = 0o644


def done_key(key: str) -> str:
    return f"{key}/done"


def handle_request(call: JobCall) -> list[Event]:
    event = call.reader.event(int(call.job.payload["seq"]))
    if event is None:
        return []
    # The last event answers the request, under a key that the one who asked can wait for.
    *before, answer = WHAT[event.data.what](call, event)
    return [*before, msgspec.structs.replace(answer, key=done_key(event.key))]


def _handle_report(call: JobCall, event: Event) -> list[Event]:
    doc = load_record(call.reader, event.data.uat).doc
    return [reports.report_event(call, doc, event.data.formats or ("html",), "asked")]


def _handle_recovery(call: JobCall, event: Event) -> list[Event]:
    doc = load_record(call.reader, event.data.uat).doc
    paths = files.places_of(doc)
    if paths is None:
        return [files.run_event(doc, "uat.restored", call.now, was="missing", now="missing", path="")]
    path = session_file.target_files(paths, doc, call.reader)[-1]
    was, before = session_file.file_condition(path), tend.bytes_of(path)
    session_file.put_run_files(call, doc)
    # Readable but not what the log says: a changed digit is damage too.
    was = "damaged" if was == "good" and tend.bytes_of(path) != before else was
    now = session_file.file_condition(path)
    return [files.run_event(doc, "uat.restored", call.now, was=was, now=now, path=str(path))]


def _handle_new_scenario(call: JobCall, event: Event) -> list[Event]:
    """A first scenario, its schema, and a .gitignore."""
    settings = call.settings(event.project) or DEFAULTS
    paths = RunFolders(Path(root_of(event.project, settings.root)), event.project)
    paths.ready(paths.scenarios)
    for path, content in starter.initial_files(paths, event.data.name, event.data.base_url, event.data.text):
        if not os.path.lexists(path):
            call.put(File(path, content, REQUESTS_MODE))
    plans, mistakes = load_catalogue(paths.scenarios)
    data = {"scenarios": plans, "problems": [str(m) for m in mistakes[:MOST_MISTAKES]]}
    return [Event(key="", kind="uat.scenarios", at=call.now, project=event.project, data=data)]


def _handle_comparison(call: JobCall, event: Event) -> list[Event]:
    one, other = load_record(call.reader, event.data.uat), load_record(call.reader, event.data.with_)
    paths = files.places_of(other.doc)
    folder = paths.ready(paths.screenshots(other.doc.id)) if paths else None
    pairs = [_compare_picture_pair(call, pair, folder, one.doc.id) for pair in comparison.pair_screenshots(one, other)]
    report = _comparison_page(call, one, other, pairs, paths) if paths else ""
    return [files.run_event(one.doc, "uat.compared", call.now, pairs=pairs, report=report, **{"with": other.doc.id})]


def _compare_picture_pair(call: JobCall, pair: dict[str, Any], folder: Path | None, before: str) -> dict[str, Any]:
    """In a separate process: a hostile picture can only crash that."""
    if not (pair["before"] and pair["after"]):
        return {**pair, "share": 1.0, "note": "only in one of the runs"}
    target = folder / f"difference-{before}-step{pair['step']}-{pair['number']}.png" if folder else None
    argv = [sys.executable, "-I", str(PICTURE_PROGRAM), "compare", pair["before"], pair["after"]]
    ran = call.run([*argv, *([str(target)] if target else [])], timeout=PIXELS_S)
    try:
        return {**pair, **msgspec.json.decode(ran.out)}
    except msgspec.DecodeError:
        return {**pair, "share": None, "note": "could not be compared"}


def _comparison_page(call: JobCall, one: Record, other: Record, pairs: list[dict[str, Any]], paths: RunFolders) -> str:
    compared = {**comparison.compare_runs(one, other), "screenshots": pairs}
    path = paths.ready(paths.reports) / f"compare-{safe_file_name(one.doc.id)}-{safe_file_name(other.doc.id)}.html"
    call.put(File(path, render_comparison(compared, (one, other)), REQUESTS_MODE))
    return str(path)


def _handle_cleanup(call: JobCall, event: Event) -> list[Event]:
    """Files of ended runs older than so many days; the log and the state keep the runs themselves."""
    settings = call.settings(event.project) or DEFAULTS
    root = root_of(event.project, settings.root)
    days = event.data.days
    limit = call.now - int(days if isinstance(days, int) else settings.keep_days) * DAY
    removed: list[str] = []
    if root and Path(root).is_dir():
        paths = RunFolders(Path(root), event.project)
        removed = [str(p) for p in tend.sweep_temp_files(paths, time.time())]
        removed += _remove_old_runs(call, paths, event.project, limit, dry=event.data.dry)
    data = {"removed": removed[:1000], "count": len(removed), "dry": event.data.dry}
    return [Event(key="", kind="uat.cleaned", at=call.now, project=event.project, data=data)]


def _remove_old_runs(call: JobCall, paths: RunFolders, project: str, limit: int, *, dry: bool) -> list[str]:
    removed = []
    for status in ("completed", "archived"):
        for doc in tend.runs_with_status(call, status):
            if doc.project == project and doc.root == str(paths.root) and doc.at < limit:
                removed += _remove_run_files(call, paths, doc, dry=dry)
    return removed


def _remove_run_files(call: JobCall, paths: RunFolders, doc: Run, *, dry: bool) -> list[str]:
    candidates = [paths.screenshots(doc.id), paths.archive_file(doc.id)]
    candidates += [paths.reports / f"{doc.id}{end}" for end in ENDINGS.values()]
    # The session's file may belong to a later run of the session.
    if session_file.latest_run_id(call.reader, doc.session) == doc.id:
        candidates += [paths.session_file(doc.session), paths.backup_file(doc.session)]
    found = [path for path in candidates if os.path.lexists(path) and paths.is_plain(path.parent)]
    if not dry:
        for path in found:
            _remove_path(path)
    return [str(path) for path in found]


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _handle_maintenance(call: JobCall, event: Event) -> list[Event]:
    made = tend.tend_runs(call)
    removed = [e.data.path for e in made if e.kind == "uat.archived" and e.data.path]
    data = {"removed": removed, "count": len(removed), "ended": sum(e.kind == "uat.ended" for e in made), "dry": False}
    return [*made, Event(key="", kind="uat.cleaned", at=call.now, project=event.project, data=data)]


WHAT: dict[str, Callable[[JobCall, Event], list[Event]]] = {
    "report": _handle_report,
    "recover": _handle_recovery,
    "init": _handle_new_scenario,
    "compare": _handle_comparison,
    "clean": _handle_cleanup,
    "tend": _handle_maintenance,
}
