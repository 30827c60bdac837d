"""Events → documents. Pure: the state of a session is what its log says, in whatever order the log says it."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS, HookPayload
from holdfast.core.kinds.agent_events import ModelAnswered
from holdfast.core.kinds.session_events import TurnAnswerRead, TurnProcessed
from holdfast.core.ports import Ref
from holdfast.features.sessions.state import activity, event_handlers
from holdfast.features.sessions.state.documents import (
    ACTIVE,
    COMPLETED,
    DAY,
    ENDED,
    IDLE,
    MAX_RECENT_SESSIONS,
    RECENT_SESSIONS,
    SESSION,
    SUMMARY,
    TURN,
    WAITING,
    WATCHED,
    WORKING,
    YEAR,
    RecentSessions,
    Session,
    Summary,
    TurnDocument,
    one_line,
    turn_key,
)  # fmt: skip
from holdfast.features.sessions.state.lifecycle import (
    USERS_TURN,
    clear_running,
    close_turn,
    end_all_lanes,
    is_answered_by,
    new_session,
    proves_life,
    reactivate_session,
)

HANDLERS = {**event_handlers.HANDLERS, **event_handlers.OWN_HANDLERS}


def keys(event: Event) -> Iterable[Ref]:
    if not event.session:
        return ()
    refs = [SESSION.ref(event.session)]
    data = event.data
    if event.kind in ("session.started", "prompt.submitted") and event.project:
        refs.append(RECENT_SESSIONS.ref(event.project))
    elif isinstance(data, TurnProcessed):
        refs += [TURN.ref(turn_key(event.session, data.n)), *activity.activity_keys(event)]
    elif isinstance(data, TurnAnswerRead) and data.n:
        refs.append(TURN.ref(turn_key(event.session, data.n)))
    elif isinstance(data, ModelAnswered) and data.day:
        refs += activity.activity_keys(event)
    elif event.kind == "session.summarised":
        refs.append(SUMMARY.ref(event.session))
    return refs


def reduce(doc: Any, event: Event, ref: Ref) -> Any:
    return _REDUCERS[ref.kind](doc, event, ref)


def facets(_ref: Ref, doc: Any) -> tuple[str, str, int]:
    status = getattr(doc, "status", "")
    watched = isinstance(doc, Session) and status == ACTIVE and doc.process is not None
    return getattr(doc, "project", ""), WATCHED if watched else status, doc.at


def stream(ref: Ref) -> Mapping[str, str]:
    """Every document comes from the events of its own session (recent sessions: of the project; a day: of all)."""
    if ref.kind in (DAY.kind, YEAR.kind):
        return {}
    if ref.kind == RECENT_SESSIONS.kind:
        return {"project": ref.key}
    return {"session": ref.key.rpartition("/")[0] if ref.kind == TURN.kind else ref.key}


# ── a session ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def reduce_session(doc: Session | None, event: Event, _ref: Ref | None = None) -> Session | None:
    from_agent = event.kind in HOOK_KINDS and event.kind != ModelAnswered.KIND
    if doc is None:
        if not from_agent:
            return None  # Only an agent begins a session.
        session = new_session(event)
    else:
        session = copy.copy(doc)
    if from_agent:
        _note_event(session, event)
    handle = HANDLERS.get(event.kind)
    if handle:
        handle(session, event)
    _update_state(session, event)
    return session


def _note_event(session: Session, event: Event) -> None:
    data: HookPayload = event.data
    session.events += 1
    session.seq = event.seq
    session.at = max(session.at, event.at)
    session.branch, session.cwd = data.branch or session.branch, data.cwd or session.cwd
    if not data.lane:  # A subagent may have another model, and in Codex it keeps a transcript of its own.
        session.model, session.transcript = data.model or session.model, data.transcript or session.transcript
    session.agent, session.project = session.agent or event.agent, session.project or event.project
    if data.pid:
        session.hook = (data.pid, data.pid_start)
    if data.process:
        session.process = data.process
    if session.status == COMPLETED and proves_life(session, event):
        reactivate_session(session)


def _update_state(session: Session, event: Event) -> None:
    """The state follows from the facts, so that no order of events can leave an illegal one."""
    if session.status == COMPLETED:
        clear_running(session)
        end_all_lanes(session, event)
        close_turn(session, event, "ended")
        session.open_gates = session.open_gates and {}
    state = _state_of(session)
    if state != session.state:
        session.state, session.since = state, event.at


def _state_of(session: Session) -> str:
    if session.status == COMPLETED:
        return ENDED
    if session.asks:
        return WAITING
    turn = session.turn
    if (turn and turn.is_open) or session.any_lane_open:
        return WORKING
    return WAITING if turn and turn.how in USERS_TURN else IDLE


# ── the smaller documents ──────────────────────────────────────────────────────────────────────────────────────────


def _reduce_turn(doc: TurnDocument | None, event: Event, ref: Ref) -> TurnDocument | None:
    if isinstance(event.data, TurnAnswerRead):
        answered = doc is not None and is_answered_by(doc, event.data)
        return msgspec.structs.replace(doc, answer=one_line(event.data.message)) if doc and answered else doc
    n = int(ref.key.rpartition("/")[2])
    turn = copy.copy(doc) if doc else TurnDocument(session=event.session)
    turn.n, turn.project = n, event.project
    data: TurnProcessed = event.data
    facts = data.facts
    return msgspec.structs.replace(
        turn, id=facts.id, origin=facts.origin, prompt=facts.prompt, answer=facts.answer, at=facts.at, end=facts.end,
        how=facts.how, tools=facts.tools, failed=facts.failed, first=facts.first, seq=facts.seq, status=COMPLETED,
    )  # fmt: skip


def _reduce_summary(_doc: Summary | None, event: Event, _ref: Ref) -> Summary:
    facts = msgspec.structs.asdict(event.data)
    return Summary(**facts, session=event.session, project=event.project, at=event.at)


def _reduce_recent(doc: RecentSessions | None, event: Event, ref: Ref) -> RecentSessions | None:
    recent = doc.recent if doc else []
    if recent[:1] == [event.session]:
        return doc
    others = [session for session in recent if session != event.session]
    return RecentSessions(project=ref.key, recent=[event.session, *others][:MAX_RECENT_SESSIONS], at=event.at)


_REDUCERS: dict[str, Callable[[Any, Event, Ref], Any]] = {
    SESSION.kind: reduce_session,
    TURN.kind: _reduce_turn,
    SUMMARY.kind: _reduce_summary,
    RECENT_SESSIONS.kind: _reduce_recent,
    DAY.kind: activity.reduce_day,
    YEAR.kind: activity.reduce_year,
}
