"""Finds the run a person means."""

from pathlib import Path

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery
from holdfast.features.uat.folders import RunFolders, root_of
from holdfast.features.uat.settings import DEFAULTS, UatSettings
from holdfast.features.uat.state import RUNS, SESSION_RUNS, Run, SessionRuns

SEARCHED = 1_000


def settings_of_call(call: Call) -> UatSettings:
    return call.settings or DEFAULTS


def places_of_call(call: Call) -> RunFolders:
    root = root_of(call.project, settings_of_call(call).root)
    if not root:
        raise CommandRefused("there is no project here", fix="Go into its folder, or set `uat.root`.")
    return RunFolders(Path(root), call.project)


def find_run(call: Call, name: str = "run") -> Run:
    run_id = str(call.args.get(name) or "")
    if not run_id:
        return _latest_run(call)
    run_doc = RUNS.load(call.reader, run_id) or _by_part(call, run_id)
    if run_doc is None:
        raise CommandRefused(f"there is no UAT run {run_id!r}", fix="See: holdfast uat list")
    return run_doc


def require_active_run(call: Call) -> Run:
    """The run that is going on in the session."""
    doc = find_run(call) if call.args.get("run") else active_run(call)
    if doc is None or doc.status != "active":
        which = f"run {doc.id} is over" if doc else "no UAT run is going on in this session"
        raise CommandRefused(which, fix="Begin one with: holdfast uat start SCENARIO")
    return doc


def active_run(call: Call) -> Run | None:
    mine = of_session(call)
    return RUNS.load(call.reader, mine.active) if mine and mine.active else None


def session_of_call(call: Call) -> str:
    session_id = str(call.args.get("session") or call.session or "")
    if session_id == "latest":
        session_id = latest_session(call)
    if not session_id:
        raise CommandRefused(
            "no session is known here", fix="Name one with --session ID, or --session latest for the last one at work."
        )
    return session_id


def of_session(call: Call) -> SessionRuns | None:
    session_id = str(call.args.get("session") or call.session or "")
    session_id = latest_session(call) if session_id == "latest" or not session_id else session_id
    return SESSION_RUNS.load(call.reader, session_id) if session_id else None


def _latest_run(call: Call) -> Run:
    mine = of_session(call)
    latest = mine.runs[-1] if mine and mine.runs else ""
    run_doc = RUNS.load(call.reader, latest) if latest else None
    if run_doc is None and not call.args.get("session"):
        run_doc = next((doc for _, doc in RUNS.list(call.reader, project=call.project, limit=1)), None)
    if run_doc is None:
        raise CommandRefused("there is no UAT run yet", fix="Begin one with: holdfast uat start SCENARIO")
    return run_doc


def _by_part(call: Call, id_part: str) -> Run | None:
    recent = (doc for _, doc in RUNS.list(call.reader, limit=SEARCHED))
    candidates = [doc for doc in recent if doc.id.startswith(id_part) or doc.id.endswith(id_part)]
    if len(candidates) > 1:
        ids = ", ".join(doc.id for doc in candidates[:5])
        raise CommandRefused(f"{id_part!r} may be any of {ids}", fix="Give more of it.")
    return candidates[0] if candidates else None


def imported_runs(call: Call, digest: str) -> list[Run]:
    """The runs of this project that came out of the same file; a larger import is several."""
    rows = RUNS.list(call.reader, project=call.project, limit=SEARCHED)
    return [doc for _, doc in reversed(rows) if doc.digest == digest and doc.project == call.project]


def latest_session(call: Call) -> str:
    page = call.reader.events(EventQuery(project=call.project, newest=True, limit=50)) if call.project else []
    return next((event.session for event in reversed(page) if event.session and event.agent), "")
