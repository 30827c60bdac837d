"""What people ask for that touches the disk. The answer is an event whose key they know."""

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
from holdfast.features.uat import files, scenario
from holdfast.features.uat.files import Places, Record, load, root_of, safe
from holdfast.features.uat.jobs import reports, scan, tend, write
from holdfast.features.uat.report import ENDINGS, suite
from holdfast.features.uat.report.html import render_comparison
from holdfast.features.uat.settings import DAY_MS, DEFAULTS
from holdfast.features.uat.state import Run

PIXELS_S = 120.0
COMPARE_PROGRAM = Path(__file__).parents[1] / "picture_difference.py"
MODE = 0o644


def done_key(key: str) -> str:
    return f"{key}/done"


def asked(call: JobCall) -> list[Event]:
    event = call.reader.event(int(call.job.payload["seq"]))
    if event is None:
        return []
    *before, answer = WHAT[event.data.what](call, event)
    return [*before, msgspec.structs.replace(answer, key=done_key(event.key))]


def _doc(call: JobCall, event: Event) -> Run:
    return load(call.reader, event.data.uat).doc


def _report(call: JobCall, event: Event) -> Event:
    return reports.reported(call, _doc(call, event), event.data.formats or ("html",), "asked")


def _recover(call: JobCall, event: Event) -> Event:
    doc = _doc(call, event)
    paths = files.places_of(doc)
    if paths is None:
        return _said(doc, "uat.restored", call.now, was="missing", now="missing", path="")
    path = write.targets(paths, doc, call.reader)[-1]
    was, before = write.condition(path), tend.bytes_of(path)
    write.put(call, doc)
    was = "damaged" if was == "good" and tend.bytes_of(path) != before else was
    return _said(doc, "uat.restored", call.now, was=was, now=write.condition(path), path=str(path))


def _said(doc: Run, kind: str, at: int, **data: Any) -> Event:
    return Event(key="", kind=kind, at=at, session=doc.session, project=doc.project, data={"uat": doc.id, **data})


def _init(call: JobCall, event: Event) -> Event:
    """A first scenario, the schema beside it, and what git should not keep."""
    settings = call.settings(event.project) or DEFAULTS
    paths = Places(Path(root_of(event.project, settings.root)), event.project)
    paths.ready(paths.scenarios)
    for path, content in scenario.files(paths, event.data.name, event.data.base_url, event.data.text):
        if not os.path.lexists(path):
            call.put(File(path, content, MODE))
    plans, mistakes = scan.catalogue(paths.scenarios)
    data = {"scenarios": plans, "problems": [str(m) for m in mistakes[: scan.MOST_MISTAKES]]}
    return Event(key="", kind="uat.scenarios", at=call.now, project=event.project, data=data)


def _compare(call: JobCall, event: Event) -> Event:
    one, other = load(call.reader, event.data.uat), load(call.reader, event.data.with_)
    paths = files.places_of(other.doc)
    folder = paths.ready(paths.screenshots(other.doc.id)) if paths else None
    pairs = [_pair(call, pair, folder, one.doc.id) for pair in suite.screenshots(one, other)]
    report = _comparison_page(call, one, other, pairs, paths) if paths else ""
    return _said(one.doc, "uat.compared", call.now, pairs=pairs, report=report, **{"with": other.doc.id})


def _pair(call: JobCall, pair: dict[str, Any], folder: Path | None, before: str) -> dict[str, Any]:
    """In a process of its own: a decoder that fails on a hostile picture fails alone."""
    if not (pair["before"] and pair["after"]):
        return {**pair, "share": 1.0, "note": "only in one of the runs"}
    target = folder / f"difference-{before}-step{pair['step']}-{pair['number']}.png" if folder else None
    argv = [sys.executable, "-I", str(COMPARE_PROGRAM), pair["before"], pair["after"]]
    ran = call.run([*argv, *([str(target)] if target else [])], timeout=PIXELS_S)
    try:
        return {**pair, **msgspec.json.decode(ran.out)}
    except msgspec.DecodeError:
        return {**pair, "share": None, "note": "could not be compared"}


def _comparison_page(call: JobCall, one: Record, other: Record, pairs: list[dict[str, Any]], paths: Places) -> str:
    comparison = {**suite.compared(one, other), "screenshots": pairs}
    path = paths.ready(paths.reports) / f"compare-{safe(one.doc.id)}-{safe(other.doc.id)}.html"
    call.put(File(path, render_comparison(comparison, (one, other)), MODE))
    return str(path)


def _clean(call: JobCall, event: Event) -> Event:
    """Files of ended runs older than so many days; the log and the state keep the runs themselves."""
    settings = call.settings(event.project) or DEFAULTS
    root = root_of(event.project, settings.root)
    days = event.data.days
    limit = call.now - int(days if isinstance(days, int) else settings.keep_days) * DAY_MS
    removed: list[str] = []
    if root and Path(root).is_dir():
        paths = Places(Path(root), event.project)
        removed = [str(p) for p in tend.sweep(paths, time.time())]
        removed += _old(call, paths, event.project, limit, dry=event.data.dry)
    data = {"removed": removed[:1000], "count": len(removed), "dry": event.data.dry}
    return Event(key="", kind="uat.cleaned", at=call.now, project=event.project, data=data)


def _old(call: JobCall, paths: Places, project: str, limit: int, *, dry: bool) -> list[str]:
    removed = []
    for status in ("completed", "archived"):
        for doc in tend.docs(call, status):
            if doc.project == project and doc.root == str(paths.root) and doc.at < limit:
                removed += _remove(call, paths, doc, dry=dry)
    return removed


def _remove(call: JobCall, paths: Places, doc: Run, *, dry: bool) -> list[str]:
    candidates = [paths.screenshots(doc.id), paths.archive_file(doc.id)]
    candidates += [paths.reports / f"{doc.id}{end}" for end in ENDINGS.values()]
    if write.latest(call.reader, doc.session) == doc.id:
        candidates += [paths.session_file(doc.session), paths.backup_file(doc.session)]
    there = [path for path in candidates if os.path.lexists(path) and paths.is_plain(path.parent)]
    for path in there if not dry else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return [str(path) for path in there]


def _tend(call: JobCall, event: Event) -> list[Event]:
    made = tend.tend(call)
    removed = [e.data.path for e in made if e.kind == "uat.archived" and e.data.path]
    data = {"removed": removed, "count": len(removed), "ended": sum(e.kind == "uat.ended" for e in made), "dry": False}
    return [*made, Event(key="", kind="uat.cleaned", at=call.now, project=event.project, data=data)]


def _alone(handler: Callable[[JobCall, Event], Event]) -> Callable[[JobCall, Event], list[Event]]:
    return lambda call, event: [handler(call, event)]


WHAT: dict[str, Callable[[JobCall, Event], list[Event]]] = {
    "report": _alone(_report),
    "recover": _alone(_recover),
    "init": _alone(_init),
    "compare": _alone(_compare),
    "clean": _alone(_clean),
    "tend": _tend,
}
