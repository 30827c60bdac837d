"""What is going on in a project right now: who edits what, what each turn changed and ran, what was spent. Small.

This is the only document of the room that ordinary tool calls touch, so it holds little and says nothing in files.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS
from holdfast.core.ports import Doc
from holdfast.features.project.command_names import habit_names
from holdfast.features.project.model import DAY, HOUR, iso, number

MOST_EDITS, MOST_SESSIONS = 60, 30
MOST_AREAS, MOST_COMMANDS = 10, 15
MOST_DAYS, MOST_ENDED = 62, 50
PAUSE = 2 * HOUR
"""After so long without an edit the next one begins another activity."""

TOUCHES = frozenset(("session.started", "prompt.submitted", "turn.ended", *SESSION_ENDS))
CHECKED = frozenset(("git.acted",))
SPENDS = frozenset(("tokens.read", "model.answered"))
COUNTED = ("input", "output", "cache_creation", "cache_write")
"""What is read from the cache again and again is not counted: it would drown the rest."""


def touches(event: Event) -> bool:
    if event.kind in ("tool.finished", "tool.failed"):
        return event.data.get("action") in ("edit", "shell")
    return event.kind in TOUCHES or event.kind in SPENDS


def reduce(doc: Doc | None, event: Event) -> Doc:
    doc = doc or {"project": event.project, "at": 0, "edits": [], "sessions": {}, "spent": {}, "ended": []}
    doc = {**doc, "at": max(doc["at"], event.at)}
    if event.kind in SESSION_ENDS:
        return _ended(doc, event)
    if event.kind in SPENDS:
        return _spent(doc, event)
    if event.kind in CHECKED:
        return _committed(doc, event) if event.data.verb == "commit" and not event.data.outside else doc
    if event.kind in ("tool.finished", "tool.failed"):
        return _edited(doc, event) if event.data["action"] == "edit" else _ran(doc, event)
    return _with_session(doc, event, _turn_over(_session(doc, event), event) if event.kind == "turn.ended" else {})


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _session(doc: Doc, event: Event) -> dict[str, Any]:
    return doc["sessions"].get(event.session) or {"began": event.at, "at": 0, "tokens": 0, "pid": 0, "start": 0}


def _with_session(doc: Doc, event: Event, change: Mapping[str, Any]) -> Doc:
    if not event.session:
        return doc
    known = _session(doc, event)
    process = {"pid": event.data["pid"], "start": number(event.data.get("pid_start"))} if event.data.get("pid") else {}
    named = {"named": str(event.data["project_name"])[:80]} if event.data.get("project_name") else {}
    sessions = {**doc["sessions"], event.session: {**known, **process, **named, **change, "at": event.at}}
    if len(sessions) > MOST_SESSIONS:
        del sessions[min(sessions, key=lambda name: sessions[name]["at"])]
    return {**doc, "sessions": sessions}


def _ended(doc: Doc, event: Event) -> Doc:
    gone = doc["sessions"].get(event.session)
    if gone is None:
        return doc
    sessions = {name: one for name, one in doc["sessions"].items() if name != event.session}
    ended = [*doc["ended"], gone["tokens"]][-MOST_ENDED:] if gone["tokens"] else doc["ended"]
    edits = [edit for edit in doc["edits"] if edit[1] != event.session] + [
        [path, "", at] for path, session, at in doc["edits"] if session == event.session
    ]
    return {**doc, "sessions": sessions, "ended": ended, "edits": sorted(edits, key=lambda edit: edit[2])}


def _spent(doc: Doc, event: Event) -> Doc:
    told = event.data.get("total") or event.data.get("tokens") or {}
    spent = sum(number(told.get(name)) for name in COUNTED) if isinstance(told, Mapping) else number(told)
    if spent <= 0:
        return doc
    day = str(iso(event.at) or "")[:10]
    days = dict(sorted({**doc["spent"], day: doc["spent"].get(day, 0) + spent}.items())[-MOST_DAYS:])
    doc = {**doc, "spent": days}
    if event.session in doc["sessions"]:
        return _with_session(doc, event, {"tokens": _session(doc, event)["tokens"] + spent})
    ended = [*doc["ended"][:-1], doc["ended"][-1] + spent] if doc["ended"] else [spent]  # Read after its session ended.
    return {**doc, "ended": ended}


# ── what a turn changes and runs ─────────────────────────────────────────────────────────────────────────────────────


def _edited(doc: Doc, event: Event) -> Doc:
    paths = event.data.get("paths") or []
    if event.kind == "tool.failed" or not paths:
        return _with_session(doc, event, {})
    kept = [edit for edit in doc["edits"] if edit[0] not in paths]
    edits = [*kept, *([path, event.session, event.at] for path in paths)][-MOST_EDITS:]
    resumed = event.at - number(doc.get("last_edit")) > PAUSE
    work = {"last_edit": event.at, "work_began": event.at if resumed else doc.get("work_began") or event.at}
    first = doc.get("first_edit") or event.at
    turn = _turn(_session(doc, event))
    areas = list(dict.fromkeys([*turn["areas"], *(_area(path, event.project) for path in paths)]))[:MOST_AREAS]
    # What ran before an edit does not follow from it.
    change = {"turn": {"areas": areas, "ran": []}}
    return _with_session({**doc, "edits": edits, **work, "first_edit": first}, event, change)


def _ran(doc: Doc, event: Event) -> Doc:
    names = habit_names(event.data.command) if event.kind == "tool.finished" else ()
    if not names:
        return _with_session(doc, event, {})
    turn = _turn(_session(doc, event))
    ran = list(dict.fromkeys([*turn["ran"], *names]))[-MOST_COMMANDS:]
    since = list(dict.fromkeys([*doc.get("since_commit", ()), *names]))[-MOST_COMMANDS:]
    return _with_session({**doc, "since_commit": since}, event, {"turn": {**turn, "ran": ran}})


def _committed(doc: Doc, event: Event) -> Doc:
    summed = {"seq": event.seq, "commands": list(doc.get("since_commit", ())), "first_edit": doc.get("first_edit") or 0}
    return _with_session({**doc, "commit": summed, "since_commit": [], "first_edit": 0}, event, {})


def _turn(session: Mapping[str, Any]) -> dict[str, Any]:
    """The turn going on; one that is over is begun anew by the first thing after it."""
    turn = session.get("turn") or {}
    return {"areas": [], "ran": []} if not turn or turn.get("over") else turn


def _turn_over(session: Mapping[str, Any], event: Event) -> dict[str, Any]:
    """An agent may end a turn twice (a refused stop): it is summed up once."""
    turn = session.get("turn")
    return {"turn": {**turn, "over": event.seq}} if turn and not turn.get("over") else {}


def _area(path: str, project: str) -> str:
    """The place a file is in, coarse enough that habits show: its first two folders."""
    inside = path.removeprefix(f"{project.rstrip('/')}/")
    folders = inside.split("/")[:-1][:2] if not inside.startswith("/") else ["elsewhere"]
    return "/".join(folders)[:100] + "/" if folders else "./"


# ── what others want to know of it ───────────────────────────────────────────────────────────────────────────────────


def summary(doc: Doc | None, now: int) -> dict[str, Any]:
    """For the project's document: only what changes rarely, so that looking again is not news."""
    if not doc:
        return {}
    live = [one for one in doc["sessions"].values() if now - one["at"] < DAY]
    return {
        "began": doc.get("work_began") or 0,
        "last_edit": (doc.get("last_edit") or 0) // 60_000 * 60_000,
        "sessions": len(live),
        "places": _places(doc, now),
    }


def _places(doc: Doc, now: int) -> list[str]:
    counts: dict[str, int] = {}
    for path, _session_id, at in doc["edits"]:
        if now - at < PAUSE:
            place = _area(path, doc["project"])
            counts[place] = counts.get(place, 0) + 1
    return sorted(counts, key=lambda place: (-counts[place], place))[:3]


def recent_paths(doc: Doc | None, now: int, within: int) -> list[str]:
    return [path for path, _session_id, at in (doc or {}).get("edits") or () if now - at <= within]


def other_editor(doc: Doc | None, path: str, session: str, now: int, within: int) -> tuple[int, int] | None:
    """(pid, when) of another session that is still open and edited this file lately."""
    for edited, editor, at in reversed((doc or {}).get("edits") or ()):
        if edited == path and editor and editor != session and now - at <= within and editor in doc["sessions"]:  # type: ignore[index]
            return doc["sessions"][editor]["pid"], at  # type: ignore[index]
    return None
