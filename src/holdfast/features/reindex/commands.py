"""What people and their scripts ask for: a run, a rebuild, and the seed's functions on a session's flag."""

import time

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import bounded, delivery_key
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.reindex.state import CHECKOUT, SESSION

SOURCES = ("startup", "clear", "resume", "compact", "fork", "unknown")


def run(call: Call) -> CommandResult:
    project = _project(call)
    data = {"rebuild": call.args.get("rebuild") is True, "by": "command"}
    key = delivery_key(call.now)
    event = Event(key=key, kind="reindex.asked", at=call.now, session=call.session, project=project, data=data)
    return CommandResult((event,), answer=lambda reader: _decision(reader, project))


def _decision(reader: Reader, project: str) -> Doc:
    return (reader.state(Ref(CHECKOUT, project)) or {}).get("decided") or {}


def initialize(call: Call) -> CommandResult:
    """`initialize_session_state`: a session that is known keeps its flag, a new one begins with false."""
    session = _session(call)
    known = call.reader.state(Ref(SESSION, session))
    checkout = call.reader.state(Ref(CHECKOUT, _project(call))) or {}
    previous = (checkout.get("newest") or {}).get("session_id", "")
    source = str(call.args.get("source") or "unknown")
    data = {
        "source": source if source in SOURCES else "unknown",
        "shown": bool(known and known["shown"]),
        "previous": previous,
        "reset": previous != session,
    }
    return _ask(call, "reindex.initialized", session, data)


def mark(call: Call) -> CommandResult:
    """`mark_first_prompt_shown`, and with shown=False its undoing."""
    return _ask(call, "reindex.marked", _session(call), {"shown": call.args.get("shown", True) is True})


def _ask(call: Call, kind: str, session: str, data: Doc) -> CommandResult:
    event = Event(
        key=delivery_key(call.now), kind=kind, at=call.now, session=session, project=_project(call), data=data
    )
    return CommandResult((event,), answer={"session_id": session, **data})


def _project(call: Call) -> str:
    project = str(call.args.get("project") or call.project)
    if not project.startswith("/"):
        raise CommandRefused("no project folder is known", fix="Run it inside the project.")
    return project


def _session(call: Call) -> str:
    """The one the agent gives; else the newest of this project; only where there was never one, a name by the clock."""
    named = str(call.args.get("session") or call.session)
    if named:
        return bounded(named)
    newest = (call.reader.state(Ref(CHECKOUT, _project(call))) or {}).get("newest")
    return newest["session_id"] if newest else time.strftime("session_%Y%m%d_%H%M%S", time.localtime(call.now / 1000))
