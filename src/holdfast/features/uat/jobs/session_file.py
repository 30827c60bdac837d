"""Writes the file of a run's session and its backup."""

from pathlib import Path

import msgspec

from holdfast.core.errors import UnsafePath
from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.core.ports import Reader
from holdfast.features.uat import files
from holdfast.features.uat.folders import RunFolders
from holdfast.features.uat.record import load_record
from holdfast.features.uat.state import SESSION_RUNS, Run

WRITE_MODE = 0o644
"""As any file of the project: the seed's readers may be another user's tools."""


def write_session_file(call: JobCall) -> list[Event]:
    doc = load_record(call.reader, str(call.job.payload["uat"])).doc
    try:
        put_run_files(call, doc)
    except (UnsafePath, OSError) as error:
        return [files.problem_event(doc, call.now, error, "file")]
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
    return "good" if not files.missing_fields(content) else "damaged"
