"""The sessions that are alive (S2-1): one small document, the view behind ~/.claude/sessions.json."""

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.gates.bounded import with_newest, without
from holdfast.features.gates.refs import GONE, place

MOST_LIVE = 200


def changed(doc: Doc | None, event: Event) -> Doc | None:
    sessions = (doc or {}).get("sessions", {})
    if event.kind in GONE:
        return {"sessions": without(sessions, [event.session]), "at": event.at} if event.session in sessions else None
    known = sessions.get(event.session) or {"started": event.at}
    entry = {**known, "agent": event.agent, "active": event.at, "project": event.project, "place": place(event),
             "branch": event.data.get("branch", "")}  # fmt: skip
    entry |= {name: event.data[name] for name in ("pid", "pid_start") if event.data.get(name)}
    if event.session in sessions or len(sessions) < MOST_LIVE:
        return {"sessions": {**sessions, event.session: entry}, "at": event.at}
    return {"sessions": with_newest(sessions, event.session, entry, MOST_LIVE), "at": event.at}


def others(doc: Doc | None, session: str, project: str) -> list[str]:
    """Other live sessions in this very checkout."""
    live = (doc or {}).get("sessions", {})
    return [sid for sid, one in live.items() if sid != session and one.get("project") == project]
