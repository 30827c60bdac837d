"""Which run is meant: by its id or the end of it, else the session's, else the project's latest."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery
from holdfast.features.uat.files import Places, root_of
from holdfast.features.uat.settings import DEFAULTS, UatSettings
from holdfast.features.uat.state import RUNS, SESSION_RUNS, Run, SessionRuns

SEARCHED = 1_000


def settings(call: Call) -> UatSettings:
    return call.settings or DEFAULTS


def places(call: Call) -> Places:
    root = root_of(call.project, settings(call).root)
    if not root:
        raise CommandRefused("there is no project here", fix="Go into its folder, or set `uat.root`.")
    return Places(Path(root), call.project)


def run(call: Call, name: str = "run") -> Run:
    wanted = str(call.args.get(name) or "")
    if not wanted:
        return _mine(call)
    found = RUNS.load(call.reader, wanted) or _by_part(call, wanted)
    if found is None:
        raise CommandRefused(f"there is no UAT run {wanted!r}", fix="See: holdfast uat list")
    return found


def active(call: Call) -> Run:
    """The run that is going on in the session."""
    doc = run(call) if call.args.get("run") else _active(call)
    if doc is None or doc.status != "active":
        which = f"run {doc.id} is over" if doc else "no UAT run is going on in this session"
        raise CommandRefused(which, fix="Begin one with: holdfast uat start SCENARIO")
    return doc


def _active(call: Call) -> Run | None:
    mine = of_session(call)
    return RUNS.load(call.reader, mine.active) if mine and mine.active else None


def session(call: Call) -> str:
    given = str(call.args.get("session") or call.session or "")
    if given == "latest":
        given = latest_session(call)
    if not given:
        raise CommandRefused(
            "no session is known here", fix="Name one with --session ID, or --session latest for the last one at work."
        )
    return given


def of_session(call: Call) -> SessionRuns | None:
    given = str(call.args.get("session") or call.session or "")
    given = latest_session(call) if given == "latest" or not given else given
    return SESSION_RUNS.load(call.reader, given) if given else None


def _mine(call: Call) -> Run:
    mine = of_session(call)
    latest = mine.runs[-1] if mine and mine.runs else ""
    found = RUNS.load(call.reader, latest) if latest else None
    if found is None and not call.args.get("session"):
        found = next((doc for _, doc in RUNS.list(call.reader, project=call.project, limit=1)), None)
    if found is None:
        raise CommandRefused("there is no UAT run yet", fix="Begin one with: holdfast uat start SCENARIO")
    return found


def _by_part(call: Call, wanted: str) -> Run | None:
    found = [doc for doc in _recent(call) if doc.id.startswith(wanted) or doc.id.endswith(wanted)]
    if len(found) > 1:
        ids = ", ".join(doc.id for doc in found[:5])
        raise CommandRefused(f"{wanted!r} may be any of {ids}", fix="Give more of it.")
    return found[0] if found else None


def _recent(call: Call) -> Iterator[Run]:
    yield from (doc for _, doc in RUNS.list(call.reader, limit=SEARCHED))


def latest_session(call: Call) -> str:
    page = call.reader.events(EventQuery(project=call.project, newest=True, limit=50)) if call.project else []
    return next((event.session for event in reversed(page) if event.session and event.agent), "")
