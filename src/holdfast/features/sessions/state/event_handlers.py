"""Handlers of events, of agents and of Holdfast itself."""

# They change a copy of the document, and replace values inside of it.

from collections.abc import Callable

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload, ToolPayload, agent_events
from holdfast.core.kinds import session_events as kinds
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.features.sessions.state import lifecycle
from holdfast.features.sessions.state.documents import (  # fmt: skip
    LATE_MS,
    TERMINAL_CLOSED,
    TITLE_LENGTH,
    Session,
    Turn,
    one_line,
)
from holdfast.features.sessions.state.lifecycle import (
    close_turn,
    count_in_turn,
    end_all_lanes,
    end_lane,
    end_session,
    gates_satisfied,
    is_synthetic,
    is_within_turn,
    mark_processed,
    open_gates,
    open_turn,
    prompt_text,
    reopen_turn,
    touch_lane,
)

Handler = Callable[[Session, Event], None]
MAX_PULL_REQUESTS = 10
replace = msgspec.structs.replace


def _session_started(session: Session, event: Event) -> None:
    data: agent_events.SessionStarted = event.data
    session.source, session.origin = data.source, session.origin or data.source
    if data.source == "compact":
        return  # In the middle of a turn, in the same process.
    turn = session.turn
    # A turn that is older than a moment was left behind by the process before.
    if data.source == "resume" and turn and turn.is_open and event.at - turn.at > LATE_MS:
        lifecycle.clear_running(session)
        close_turn(session, event, "lost")
    # Another process, not looked up yet: the old one would be found dead and end the session.
    if not data.process and session.process and session.process.pid != data.pid:
        session.process = None


def _prompt_submitted(session: Session, event: Event) -> None:
    data: agent_events.PromptSubmitted = event.data
    prompt, synthetic = prompt_text(data), is_synthetic(data)
    if data.lane:
        touch_lane(session, event)
        return
    if is_within_turn(data) and (session.turn or synthetic):
        if not synthetic:
            _note_person(session, prompt)
        return
    # Qwen sends an empty one after every batch of tools; a synthetic one belongs to the turn it comes in.
    if not prompt or (_has_open_turn(session) and (synthetic or _is_repeated(session, data, prompt))):
        return
    lifecycle.clear_running(session)
    open_turn(session, event, origin="agent" if synthetic else "person", prompt=prompt, turn_id=data.turn)
    if not synthetic:
        _note_person(session, prompt)
    # The end of this very turn came before its prompt.
    if session.early_stop and session.early_stop == data.turn:
        close_turn(session, event, "stopped")
        session.early_stop = ""


def _note_person(session: Session, prompt: str) -> None:
    """Only a person's prompt settles a refused stop and gives the session its title."""
    lifecycle.turn_let_go(session)
    session.prompts += 1
    session.title = session.title or ("" if _is_command(prompt) else one_line(prompt, TITLE_LENGTH))


def _has_open_turn(session: Session) -> bool:
    return session.turn is not None and session.turn.is_open


def _is_command(prompt: str) -> bool:
    """`/model` alone is no title."""
    return prompt.startswith("/") and len(prompt.split(maxsplit=1)) == 1


def _session_titled(session: Session, event: Event) -> None:
    data: agent_events.SessionTitled = event.data
    session.title = one_line(data.title, TITLE_LENGTH) or session.title


def _pull_request(session: Session, event: Event) -> None:
    data: agent_events.SessionPullRequest = event.data
    if data.url and data.url not in session.pull_requests:
        session.pull_requests = [*session.pull_requests, one_line(data.url)][-MAX_PULL_REQUESTS:]


def _is_repeated(session: Session, data: agent_events.PromptSubmitted, prompt: str) -> bool:
    """Hooks that are registered twice report the same prompt twice."""
    turn = session.turn
    return bool(turn and turn.id and turn.id == data.turn and turn.prompt == one_line(prompt))


def _tool_started(session: Session, event: Event) -> None:
    data: ToolPayload = event.data
    call = data.call or f"#{event.seq}"
    if lifecycle.is_told_again(session, event):
        return
    count_in_turn(session, event, begins=not data.lane)
    touch_lane(session, event)
    lifecycle.start_call(session, event, call)
    if data.action == "ask":
        lifecycle.add_ask(session, event, "question")


def _tool_ended(session: Session, event: Event) -> None:
    data: ToolEndPayload = event.data
    # Hooks registered twice report an end twice.
    if lifecycle.has_ended(session, event):
        return
    failed = int(data.ok is False)
    count_in_turn(session, event, tools=1, failed=failed)
    touch_lane(session, event, tools=1)
    session.tools += 1
    session.failed += failed
    session.edits += int(data.action == "edit" and not failed)
    lifecycle.call_done(session, event)
    lifecycle.end_call(session, event)


def _batch_ended(session: Session, event: Event) -> None:
    data: agent_events.ToolBatch = event.data
    lifecycle.remove_calls(session, [ref.call for ref in data.calls])
    session.asks = [ask for ask in session.asks if ask.lane != data.lane]


def _permission_requested(session: Session, event: Event) -> None:
    count_in_turn(session, event)
    touch_lane(session, event)
    lifecycle.add_ask(session, event, "permission")


def _permission_denied(session: Session, event: Event) -> None:
    """A call that Holdfast denied is counted by its decision."""
    data: agent_events.PermissionDenied = event.data
    # Denied calls are among those that ended (see `_decision_made`).
    if not lifecycle.has_ended(session, event):
        session.denied += 1
    lifecycle.remove_calls(session, [data.call])
    lifecycle.remove_answered(session, event)


def _notification_received(session: Session, event: Event) -> None:
    data: agent_events.Notification = event.data
    # A permission that was asked by its own event is more exact than the notification.
    if data.topic == "permission_prompt" and not session.asks:
        lifecycle.add_ask(session, event, "permission")
    elif data.topic == "idle_prompt" and not session.any_lane_open:
        # The only sign that the user pressed Esc: the agent says that it waits for input.
        lifecycle.clear_running(session)
        close_turn(session, event, "notified")


def _elicitation_answered(session: Session, _event: Event) -> None:
    # The answer does not say which question it is for.
    session.asks = [ask for ask in session.asks if ask.what != "question"]


def _ends_turn(how: str, answer: str = "") -> Handler:
    """`answer`: the field with the last words of the turn."""
    return lambda session, event: _end_turn(session, event, how, getattr(event.data, answer) if answer else "")


def _end_turn(session: Session, event: Event, how: str, answer: str) -> None:
    data: agent_events.HookPayload = event.data
    if data.lane:
        # Where it was concluded, the agent reports the end of the subagent by its own hook.
        if not data.lane_untold:
            end_lane(session, event)
        return
    turn = session.turn
    if turn and turn.is_open and data.imported and turn.id != data.turn:
        return  # Read from a transcript after the next prompt: `process_turns` knows how the turn before it ended.
    if _is_unknown_turn(turn, data.turn):
        session.early_stop = data.turn
        return
    session.let_through = session.let_through and []
    lifecycle.clear_running(session, lane="")
    close_turn(session, event, how, answer)
    # Already closed by a conclusion: what the agent says is better.
    if turn and not turn.is_open and turn.how != how:
        session.turn = replace(turn, how=how, answer=one_line(answer) or turn.answer)


def _is_unknown_turn(turn: Turn | None, name: str) -> bool:
    """Events of one moment come in any order: the end may name a turn whose prompt comes later."""
    return bool(name) and (turn is None or (turn.id not in ("", name) and not turn.is_open))


def _subagent_ended(session: Session, event: Event) -> None:
    """Claude Code reports the end of a subagent for each compaction too; that is none."""
    data: agent_events.SubagentEnded = event.data
    if not data.compaction:
        end_lane(session, event)
        lifecycle.clear_running(session, lane=data.lane)


def _context_compacted(session: Session, event: Event) -> None:
    """Counted at its end; at its beginning where the agent does not report the end."""
    data = event.data
    if not isinstance(data, agent_events.CompactStarted) or data.end_untold:
        session.compactions += 1


def _model_switched(session: Session, event: Event) -> None:
    data: agent_events.ModelSwitched = event.data
    session.model = data.new or session.model


def _model_answered(session: Session, event: Event) -> None:
    """Some agents' hooks name no model; token use is counted by the feature `cost`."""
    data: agent_events.ModelAnswered = event.data
    if data.model and not data.lane:
        session.model = data.model


def _session_ended(session: Session, event: Event) -> None:
    data: agent_events.SessionEnded = event.data
    detail = TERMINAL_CLOSED if data.terminal_closed else data.reason
    end_session(session, event, "clear" if data.reason == "clear" else "exit", detail=detail)


HANDLERS: dict[str, Handler] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "session.titled": _session_titled,
    "session.pull_request": _pull_request,
    "prompt.submitted": _prompt_submitted,
    "tool.started": _tool_started,
    "tool.finished": _tool_ended,
    "tool.failed": _tool_ended,
    "tool.batch": _batch_ended,
    "permission.requested": _permission_requested,
    "permission.denied": _permission_denied,
    "notification": _notification_received,
    "elicitation.requested": lambda session, event: lifecycle.add_ask(session, event, "question"),
    "elicitation.answered": _elicitation_answered,
    "turn.ended": _ends_turn("stopped", "message"),
    "turn.failed": _ends_turn("failed", "error"),
    "turn.interrupted": _ends_turn("interrupted"),
    "subagent.started": lifecycle.start_lane,
    "subagent.ended": _subagent_ended,
    "compact.started": _context_compacted,
    "compact.ended": _context_compacted,
    "model.switched": _model_switched,
    "model.answered": _model_answered,
}


# Events of Holdfast itself: answers, observations of a process or a transcript, commands.


def _decision_made(session: Session, event: Event) -> None:
    """Every denial counts once, whatever it was about."""
    data: DecisionMade = event.data
    session.injected += sum(context.tokens for context in data.contexts)
    open_gates(session, event)
    if data.verdict != "deny":
        return
    session.denied += 1
    if data.of_kind == "tool.started":
        if data.call:
            # So that a late start is not shown as running, and an end that is still reported does not count.
            lifecycle.remember_ended(session, event)
        lifecycle.remove_calls(session, [data.call or f"#{data.of}"])
    elif not data.lane:
        _deny_turn(session, event, data.of_kind)


def _deny_turn(session: Session, event: Event, kind: str) -> None:
    if kind == "turn.ended" and session.is_active:
        reopen_turn(session)  # A refused stop means: go on working.
    elif kind == "prompt.submitted":
        close_turn(session, event, "denied")


def _process_found(session: Session, event: Event) -> None:
    data: kinds.ProcessFound = event.data
    session.process = data.process()


def _exit_read(session: Session, event: Event) -> None:
    """The hook did not report the exit code."""
    data: kinds.ToolExitRead = event.data
    if data.ok is False:
        session.failed += 1
        name = "previous" if session.turn and session.turn.first > data.of else "turn"
        if turn := getattr(session, name):
            setattr(session, name, msgspec.structs.replace(turn, failed=turn.failed + 1))


def _answer_read(session: Session, event: Event) -> None:
    """Becomes the session's last event: a summary that was made before lacks the answer."""
    data: kinds.TurnAnswerRead = event.data
    session.seq = event.seq
    if session.turn and lifecycle.is_answered_by(session.turn, data):
        session.turn = replace(session.turn, answer=one_line(data.message))
    elif session.previous and lifecycle.is_answered_by(session.previous, data):
        session.previous = replace(session.previous, answer=one_line(data.message))


def _session_lost(session: Session, event: Event) -> None:
    data: kinds.SessionLost = event.data
    process = session.process
    # The session may have a new process by now, which is alive.
    if process and (process.pid, process.start) == (data.pid, data.start):
        end_session(session, event, "process-gone")


def _session_stale(session: Session, event: Event) -> None:
    data: kinds.SessionStale = event.data
    # Only if nothing happened since the job looked.
    if not session.process and session.at <= data.last:
        end_session(session, _when_it_was(session, event, data.last), "stale")


def _session_reopened(session: Session, _event: Event) -> None:
    if not session.is_active:
        lifecycle.reactivate_session(session)
        session.process = None  # It may be dead; a live session's next event names it again.


def _permission_granted(session: Session, event: Event) -> None:
    data: kinds.PermissionGranted = event.data
    session.asks = [ask for ask in session.asks if ask.at != data.asked]


def _turn_recovered(session: Session, event: Event) -> None:
    data: kinds.TurnRecovered = event.data
    # Only if nothing happened since the job looked.
    if session.turn and session.turn.n == data.n and session.at <= data.last:
        event = _when_it_was(session, event, data.last)
        lifecycle.clear_running(session)
        end_all_lanes(session, event)
        close_turn(session, event, "recovered")


def _when_it_was(session: Session, event: Event, last: int) -> Event:
    """An imported session ends with its last record, not when a job looked."""
    return replace(event, at=last) if session.source == "import" else event


def _turn_escaped(session: Session, event: Event) -> None:
    data: kinds.TurnEscaped = event.data
    # Hooks of the same moment may come after the mark.
    if session.turn and session.turn.n == data.n and session.at <= data.when + LATE_MS:
        lifecycle.clear_running(session, lane="")
        close_turn(session, event, "interrupted")


def _turn_adopted(session: Session, event: Event) -> None:
    data: kinds.TurnAdopted = event.data
    if session.turn and session.turn.n == data.n:
        session.turn = msgspec.structs.replace(session.turn, adopted=True)


OWN_HANDLERS: dict[str, Handler] = {
    "gates.satisfied": gates_satisfied,
    "gates.approved": gates_satisfied,
    "decision.made": _decision_made,
    "session.process": _process_found,
    "session.lost": _session_lost,
    "session.stale": _session_stale,
    "session.left": lambda session, event: end_session(session, event, "clear"),
    "session.closed": lambda session, event: end_session(session, event, "closed-by-user"),
    "session.reopened": _session_reopened,
    "session.linked": lifecycle.link_parent,
    "session.branched": lifecycle.add_child,
    "session.summarised": lambda session, event: setattr(session, "summarised", event.data.of),
    "permission.granted": _permission_granted,
    "turn.recovered": _turn_recovered,
    "turn.escaped": _turn_escaped,
    "turn.adopted": _turn_adopted,
    "turn.processed": lambda session, event: mark_processed(session, event.data.n, event.data.upto),
    "tool.exit_read": _exit_read,
    "turn.answer_read": _answer_read,
}
