"""What a person may do to a session."""

# Force-close is a command, not an SQL update.

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.kinds import Payload
from holdfast.core.kinds.session_events import SessionClosed, SessionReopened
from holdfast.core.ports import Reader
from holdfast.features.sessions.jobs import recovery
from holdfast.features.sessions.state.documents import COMPLETED, SESSION, Session
from holdfast.features.sessions.state.reducer import find_session


def close_session(call: Call) -> CommandResult:
    session = find_session(call.reader, _given_id(call))
    if session.status == COMPLETED:
        return CommandResult(answer={"id": session.id, "changed": False, "reason": session.reason})
    return _change_session(call, session, SessionClosed())


def reopen_session(call: Call) -> CommandResult:
    session = find_session(call.reader, _given_id(call))
    if session.status != COMPLETED:
        return CommandResult(answer={"id": session.id, "changed": False, "reason": ""})
    return _change_session(call, session, SessionReopened())


def recover_sessions(call: Call) -> CommandResult:
    """The recovery jobs by hand: one of them, or all. Safe to run twice: the same finding is one event."""
    kind = str(call.args.get("kind") or "")
    if kind and kind not in recovery.FINDERS:
        raise CommandRefused(f"unknown recovery job {kind!r}", fix=f"Use one of: {', '.join(recovery.FINDERS)}.")
    kinds = [kind] if kind else list(recovery.FINDERS)
    events_by_kind = {name: recovery.run_finder(name, call.reader, call.settings, call.now) for name in kinds}
    return CommandResult(
        tuple(event for events in events_by_kind.values() for event in events),
        answer={name: sorted({event.session for event in events}) for name, events in events_by_kind.items()},
    )


def named_session(call: Call) -> str:
    return find_session(call.reader, _given_id(call)).id


def _given_id(call: Call) -> str:
    session_id = str(call.args.get("id") or "").strip()
    if not session_id:
        raise CommandRefused("no session given", fix="List them with: holdfast session list")
    return session_id


def _change_session(call: Call, session: Session, payload: Payload) -> CommandResult:
    event = own_event(payload, call.now, session=session.id, project=session.project)

    def answer(reader: Reader) -> dict[str, Any]:
        after = SESSION.load(reader, session.id) or session
        return {"id": session.id, "changed": True, "status": after.status, "reason": after.reason}

    return CommandResult((event,), answer=answer)
