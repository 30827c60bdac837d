"""Once a minute (S3-19, S3-20): silent runs end, old ones are archived, damaged files restored, rubbish is swept."""

import http.client
import ipaddress
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import UnsafePath
from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.core.kinds.uat_events import Conditions
from holdfast.core.ports import Reader
from holdfast.core.times import HOUR
from holdfast.features.uat import files
from holdfast.features.uat.drivers.results import Result, meets_conditions
from holdfast.features.uat.files import RunFolders, keyed_run_event, load_record, places_of
from holdfast.features.uat.policy.derive import run_ending_events
from holdfast.features.uat.report import ENDINGS, render_report
from holdfast.features.uat.report.suite import build_suite, render_suite
from holdfast.features.uat.settings import ACTIVE, COMPLETED, DEFAULTS, TEMP_MINUTES, clean_line, format_iso
from holdfast.features.uat.state import PLANS, RUNS, SESSION_RUNS, Run

# The session's file and its backup, written from the log; a damaged or missing one is thereby restored.

WRITE_MODE = 0o644
"""As any file of the project: the seed's readers may be another user's tools."""


def write_session_file(call: JobCall) -> list[Event]:
    doc = load_record(call.reader, str(call.job.payload["uat"])).doc
    return _write_or_report(call, doc)


def _write_or_report(call: JobCall, doc: Run) -> list[Event]:
    try:
        put_run_files(call, doc)
    except (UnsafePath, OSError) as error:
        message = str(error)[:300]
        return [
            keyed_run_event(
                doc, "uat.problem", call.now, f"file/{message}", level="warning", type="file", message=message
            )
        ]
    return []


def put_run_files(call: JobCall, doc: Run) -> None:
    """Two files: were one of them damaged in its place, the other would still be whole."""
    paths = files.places_of(doc)
    # A project that was moved or deleted is not made again by writing into it.
    if paths is None or not Path(doc.project or "/").is_dir():
        return
    made = files.render_run_file(load_record(call.reader, doc.id))
    for path in target_files(paths, doc, call.reader):
        paths.ready(path.parent)
        call.put(File(path, made, WRITE_MODE, hidden=path.parent))


def target_files(paths: RunFolders, doc: Run, reader: Reader) -> list[Path]:
    """The session's file belongs to its latest run; the others are in the archive."""
    if doc.archived or latest_run_id(reader, doc.session) != doc.id:
        return [paths.archive_file(doc.id)]
    return [paths.backup_file(doc.session), paths.session_file(doc.session)]


def latest_run_id(reader: Reader, session: str) -> str:
    mine = SESSION_RUNS.load(reader, session)
    return mine.runs[-1] if mine and mine.runs else ""


def file_condition(path: Path) -> str:
    """`good`, `missing` or `damaged`."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return "missing"
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "damaged"
    return "good" if files.is_valid_document(content) else "damaged"


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
        key, last = page[-1]
        before = (last.at, key)


def _tend_run(call: JobCall, doc: Run) -> list[Event]:
    hours = (call.settings(doc.project) or DEFAULTS).max_age_hours
    # By the last event of the run, in milliseconds.
    old = call.now - doc.at > hours * HOUR
    if doc.status == ACTIVE and old:
        return _expire_run(call, doc)
    try:
        return archive_run(call, doc) if old or doc.reason == "expired" else restore_session_file(call, doc)
    except (UnsafePath, OSError) as error:
        message = f"{error}"[:300]
        return [
            keyed_run_event(
                doc, "uat.problem", call.now, f"file/{message}", level="warning", type="file", message=message
            )
        ]


def _expire_run(call: JobCall, doc: Run) -> list[Event]:
    def make(kind: str, **data: Any) -> Event:
        return keyed_run_event(
            doc, kind, call.now, f"expired/{data.get('n', '')}", **{k: v for k, v in data.items() if k != "uat"}
        )

    return list(run_ending_events(doc, call.now, "expired", make))


def archive_run(call: JobCall, doc: Run) -> list[Event]:
    """The copy in the archive first, then the session's file, its backup and its lock."""
    paths = files.places_of(doc)
    if paths is None or not Path(doc.project or "/").is_dir():
        return [keyed_run_event(doc, "uat.archived", call.now, "once", path="")]
    path = paths.archive_file(doc.id)
    paths.ready(path.parent)
    call.put(File(path, files.render_run_file(load_record(call.reader, doc.id)), WRITE_MODE))
    # The session's file belongs to its latest run: an older one must not remove it.
    if latest_run_id(call.reader, doc.session) == doc.id:
        _remove_session_files(paths, doc.session)
    return [keyed_run_event(doc, "uat.archived", call.now, "once", path=str(path))]


def _remove_session_files(paths: RunFolders, session: str) -> None:
    paths.ready(paths.session_file(session).parent)
    for path in (paths.session_file(session), paths.backup_file(session), paths.lock_file(session)):
        path.unlink(missing_ok=True)


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


# Health checks that ask a server: only loopback, or hosts the person's own settings name. A repository names none.

# Seconds, and bytes of an answer.
PATIENCE_S = 10.0
LARGEST_ANSWER = 256 << 10


def run_health_check(call: JobCall) -> list[Event]:
    payload = call.job.payload
    doc = RUNS.load(call.reader, str(payload["uat"]))
    plan = PLANS.load(call.reader, str(payload["uat"]))
    if not doc or not plan:
        return []
    criteria = plan.health_checks[payload["index"]]
    url = plan.base_url.rstrip("/") + "/" + (criteria.path or "").lstrip("/")
    hosts = (call.settings(doc.project) or DEFAULTS).health_hosts
    good, data = check_url(url, criteria, hosts)
    result = "success" if good else "failure"
    facts = {"type": "http", "result": result, "data": data, "step": payload["step"], "index": payload["index"]}
    facts["precondition"] = criteria.precondition
    return [keyed_run_event(doc, "uat.checked", call.now, f"{call.job.id}", **facts)]


def check_url(url: str, criteria: Conditions, hosts: tuple[str, ...]) -> tuple[bool, dict[str, Any]]:
    problem = url_refusal_reason(url, hosts)
    if problem:
        return False, {"url": clean_line(url, 300), "error": problem}
    began = time.monotonic()
    try:
        status, text = _http_get(url)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return False, {"url": clean_line(url, 300), "error": clean_line(error, 200) or type(error).__name__}
    ms = int((time.monotonic() - began) * 1000)
    result = Result(value={}, text=text, ok=status < 400, url=url, status=status)
    # An expected status is judged with the other conditions; without one anything below 400 is good.
    good = result.ok if criteria.status is None else True
    return good and meets_conditions(criteria, result, ms, None, ""), {
        "url": clean_line(url, 300),
        "statusCode": status,
        "loadTime": ms,
    }


def url_refusal_reason(url: str, hosts: tuple[str, ...]) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # Reading the port makes urlsplit check it.
        _ = parts.port
    except ValueError:
        return "not an address"
    if parts.scheme not in ("http", "https") or not host:
        return "not an http address; give the scenario a base_url"
    if host == "localhost" or host in hosts or _is_loopback(host):
        return ""
    return f"{clean_line(host, 100)} is not on this machine; allow it with `uat.health_hosts`"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _http_get(url: str) -> tuple[int, str]:
    """One request, no redirects: they may lead anywhere."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE_S)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"User-Agent": "holdfast-uat", "Accept": "*/*"})
        answer = connection.getresponse()
        return answer.status, answer.read(LARGEST_ANSWER).decode("utf-8", "replace")
    finally:
        connection.close()


# Reports into `reports/`: one file for each format asked for.

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
        message = f"the report could not be written: {error}"[:300]
        return keyed_run_event(doc, "uat.problem", call.now, key, level="warning", type="report", message=message)


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
