"""Once a minute (S3-19, S3-20): silent runs end, old ones are archived, damaged files restored, rubbish is swept."""

import os
import stat
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.core.errors import UnsafePath
from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.core.times import HOUR
from holdfast.features.uat import files
from holdfast.features.uat.files import keyed_run_event
from holdfast.features.uat.folders import RunFolders
from holdfast.features.uat.jobs.session_file import WRITE_MODE, file_condition, latest_run_id, put_run_files
from holdfast.features.uat.policy.derive import run_ending_events
from holdfast.features.uat.record import load_record
from holdfast.features.uat.settings import ACTIVE, COMPLETED, DEFAULTS, TEMP_MINUTES
from holdfast.features.uat.state import RUNS, Run

PAGE = 100
MOST_RUNS = 5_000


def tend_runs(call: JobCall) -> list[Event]:
    events: list[Event] = []
    swept: set[str] = set()
    for status in (ACTIVE, COMPLETED):
        for doc in runs_with_status(call, status):
            if call.cancelled():
                return events
            events += _tend_run(call, doc)
            if doc.root and doc.root not in swept:
                swept.add(doc.root)
                sweep_temp_files(RunFolders(Path(doc.root), doc.project), time.time())
    return events


def runs_with_status(call: JobCall, status: str) -> Iterator[Run]:
    before = None
    for _ in range(MOST_RUNS // PAGE):
        page = RUNS.list(call.reader, status=status, before=before, limit=PAGE)
        yield from (doc for _, doc in page)
        if len(page) < PAGE:
            return
        before = (page[-1][1].at, page[-1][0])


def _tend_run(call: JobCall, doc: Run) -> list[Event]:
    hours = (call.settings(doc.project) or DEFAULTS).max_age_hours
    # By the last event of the run, in milliseconds.
    old = call.now - doc.at > hours * HOUR
    if doc.status == ACTIVE and old:
        return list(run_ending_events(doc, call.now, "expired", partial(_expired_event, doc, call.now)))
    try:
        return archive_run(call, doc) if old or doc.reason == "expired" else restore_session_file(call, doc)
    except (UnsafePath, OSError) as error:
        return [files.problem_event(doc, call.now, error, "file")]


def _expired_event(doc: Run, now: int, kind: str, /, **data: Any) -> Event:
    return keyed_run_event(doc, kind, now, f"expired/{data.get('n', '')}", **data)


def archive_run(call: JobCall, doc: Run) -> list[Event]:
    """The copy in the archive first, then the session's file, its backup and its lock."""
    paths, path = files.places_of(doc), None
    if paths is not None and Path(doc.project or "/").is_dir():
        path = paths.archive_file(doc.id)
        paths.ready(path.parent)
        call.put(File(path, files.render_run_file(load_record(call.reader, doc.id)), WRITE_MODE))
        # The session's file belongs to its latest run: an older one must not remove it.
        if latest_run_id(call.reader, doc.session) == doc.id:
            paths.ready(paths.session_file(doc.session).parent)
            for file in (paths.session_file, paths.backup_file, paths.lock_file):
                file(doc.session).unlink(missing_ok=True)
    return [keyed_run_event(doc, "uat.archived", call.now, "once", path=str(path or ""))]


def restore_session_file(call: JobCall, doc: Run) -> list[Event]:
    """Damage is found by comparing the file with its backup: a changed digit is still JSON."""
    paths = files.places_of(doc)
    if paths is None or latest_run_id(call.reader, doc.session) != doc.id:
        return []
    path, backup = paths.session_file(doc.session), paths.backup_file(doc.session)
    was = file_condition(path)
    if was == "good" and bytes_of(backup) == bytes_of(path):
        return []
    put_run_files(call, doc)
    # Writing may have followed events that came in the meantime.
    again = RUNS.load(call.reader, doc.id) or doc
    was = "damaged" if was == "good" else was
    return [keyed_run_event(again, "uat.restored", call.now, f"{call.job.id}", was=was, path=str(path))]


def bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def sweep_temp_files(paths: RunFolders, now_s: float) -> list[Path]:
    """S3-19: `temp-*` and half-written files older than an hour, only plain ones, only of the sessions folder."""
    folder, removed = paths.root / "sessions", []
    if not paths.is_plain(folder):
        return []
    for entry in list(os.scandir(folder)):
        if not (entry.name.startswith("temp-") or ".partial" in entry.name):
            continue
        file_stat = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(file_stat.st_mode) and now_s - file_stat.st_mtime > TEMP_MINUTES * 60:
            Path(entry.path).unlink(missing_ok=True)
            removed.append(Path(entry.path))
    return removed
