"""What an event of Holdfast itself means for a session: an answer, a look at a process or a transcript, a command."""

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import session_events as kinds
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.features.sessions.state import lifecycle, running_calls
from holdfast.features.sessions.state.agent_events import Handler
from holdfast.features.sessions.state.documents import LATE_MS, Session
from holdfast.features.sessions.state.lanes import end_all_lanes
from holdfast.features.sessions.state.open_gates import gates_satisfied, open_gates
from holdfast.features.sessions.state.turns import close_turn, mark_processed, reopen_turn

replace = msgspec.structs.replace


def _decision_made(session: Session, event: Event) -> None:
    """Every denial counts once, whatever it was about."""
    data: DecisionMade = event.data
    session.injected += sum(context.tokens for context in data.contexts)
    open_gates(session, event)
    if data.verdict != "deny":
        return
    session.denied += 1
    if data.of_kind == "tool.started":
        running_calls.remove_calls(session, [data.call or f"#{data.of}"])
        if data.call:
            running_calls.remember_call(session, data.call)
    elif data.of_kind == "turn.ended" and not data.lane and session.is_active:
        reopen_turn(session)  # A refused stop means: go on working.
    elif data.of_kind == "prompt.submitted" and not data.lane:
        close_turn(session, event, "denied")


def _process_found(session: Session, event: Event) -> None:
    data: kinds.ProcessFound = event.data
    session.process = data.process()


def _exit_read(session: Session, event: Event) -> None:
    """The hook had said no more than that the command ran."""
    data: kinds.ToolExitRead = event.data
    if data.ok is False:
        session.failed += 1
        if session.turn:
            session.turn = replace(session.turn, failed=session.turn.failed + 1)


def _session_lost(session: Session, event: Event) -> None:
    data: kinds.SessionLost = event.data
    process = session.process
    if process and (process.pid, process.start) == (data.pid, data.start):
        lifecycle.end_session(session, event, "process-gone")


def _session_stale(session: Session, event: Event) -> None:
    data: kinds.SessionStale = event.data
    if not session.process and session.at <= data.last:
        lifecycle.end_session(session, event, "stale")


def _session_left(session: Session, event: Event) -> None:
    lifecycle.end_session(session, event, "clear")


def _session_closed(session: Session, event: Event) -> None:
    lifecycle.end_session(session, event, "closed-by-user")


def _session_reopened(session: Session, _event: Event) -> None:
    if not session.is_active:
        lifecycle.reactivate(session)
        session.process = None  # It may be dead; if the session lives, its next event names it again.


def _session_linked(session: Session, event: Event) -> None:
    data: kinds.SessionLinked = event.data
    lifecycle.link_parent(session, data.parent, data.reason, data.parent_seq)


def _session_branched(session: Session, event: Event) -> None:
    data: kinds.SessionBranched = event.data
    lifecycle.add_child(session, data.child)


def _session_summarised(session: Session, event: Event) -> None:
    data: kinds.SessionSummarised = event.data
    session.summarised = data.of


def _permission_granted(session: Session, event: Event) -> None:
    data: kinds.PermissionGranted = event.data
    session.asks = [ask for ask in session.asks if ask.at != data.asked]


def _turn_recovered(session: Session, event: Event) -> None:
    data: kinds.TurnRecovered = event.data
    if session.turn and session.turn.n == data.n and session.at <= data.last:
        running_calls.clear_running(session)
        end_all_lanes(session, event)
        close_turn(session, event, "recovered")


def _turn_escaped(session: Session, event: Event) -> None:
    data: kinds.TurnEscaped = event.data
    if session.turn and session.turn.n == data.n and session.at <= data.when + LATE_MS:
        running_calls.clear_running(session, lane="")
        close_turn(session, event, "interrupted")


def _turn_adopted(session: Session, event: Event) -> None:
    data: kinds.TurnAdopted = event.data
    if session.turn and session.turn.n == data.n:
        session.turn = replace(session.turn, adopted=True)


def _turn_processed(session: Session, event: Event) -> None:
    data: kinds.TurnProcessed = event.data
    mark_processed(session, data.n, data.upto)


HANDLERS: dict[str, Handler] = {
    "gates.satisfied": gates_satisfied,
    "gates.approved": gates_satisfied,
    "decision.made": _decision_made,
    "session.process": _process_found,
    "session.lost": _session_lost,
    "session.stale": _session_stale,
    "session.left": _session_left,
    "session.closed": _session_closed,
    "session.reopened": _session_reopened,
    "session.linked": _session_linked,
    "session.branched": _session_branched,
    "session.summarised": _session_summarised,
    "permission.granted": _permission_granted,
    "turn.recovered": _turn_recovered,
    "turn.escaped": _turn_escaped,
    "turn.adopted": _turn_adopted,
    "turn.processed": _turn_processed,
    "tool.exit_read": _exit_read,
}
