"""What each event of an agent means for its session. A handler changes the copy of the document that it is given; values
inside are replaced, never changed in place."""

from collections.abc import Callable

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload, ToolPayload, agent_events
from holdfast.features.sessions.state import open_gates, running_calls
from holdfast.features.sessions.state.documents import (
    LATE_MS,
    TITLE_LENGTH,
    Session,
    one_line,
)  # fmt: skip
from holdfast.features.sessions.state.lanes import end_lane, touch_lane
from holdfast.features.sessions.state.lifecycle import end_session
from holdfast.features.sessions.state.prompts import is_synthetic, prompt_text
from holdfast.features.sessions.state.turns import close_turn, count_in_turn, open_turn

Handler = Callable[[Session, Event], None]
replace = msgspec.structs.replace


def _session_started(session: Session, event: Event) -> None:
    data: agent_events.SessionStarted = event.data
    session.source, session.origin = data.source, session.origin or data.source
    if data.source == "compact":
        return  # In the middle of a turn, in the same process.
    turn = session.turn
    if data.source == "resume" and turn and turn.is_open and event.at - turn.at > LATE_MS:
        running_calls.clear_running(session)
        close_turn(session, event, "lost")
    if not data.process and session.process and session.process.pid != data.pid:
        session.process = None


def _prompt_submitted(session: Session, event: Event) -> None:
    data: agent_events.PromptSubmitted = event.data
    prompt, synthetic, turn = prompt_text(data), is_synthetic(data), session.turn
    if data.lane:
        touch_lane(session, event)
        return
    if not prompt or (turn and turn.is_open and (synthetic or _is_repeated(session, data, prompt))):
        return  # Qwen sends an empty one after every batch of tools; a synthetic one belongs to the turn it comes in.
    running_calls.clear_running(session)
    open_turn(session, event, origin="agent" if synthetic else "person", prompt=prompt, turn_id=data.turn)
    if not synthetic:
        open_gates.turn_let_go(session)
        session.prompts += 1
        session.title = session.title or one_line(prompt, TITLE_LENGTH)
    if session.early_stop and session.early_stop == data.turn:
        close_turn(session, event, "stopped")
        session.early_stop = ""


def _is_repeated(session: Session, data: agent_events.PromptSubmitted, prompt: str) -> bool:
    """Hooks that are registered twice tell the same prompt twice."""
    turn = session.turn
    return bool(turn and turn.id and turn.id == data.turn and turn.prompt == one_line(prompt))


def _tool_started(session: Session, event: Event) -> None:
    data: ToolPayload = event.data
    call = data.call or f"#{event.seq}"
    if call in session.done:
        return  # Its end came first.
    count_in_turn(session, event, begins=not data.lane)
    touch_lane(session, event)
    running_calls.start_call(session, event, call)
    if data.action == "ask":
        running_calls.add_ask(session, event, "question")


def _tool_ended(session: Session, event: Event) -> None:
    data: ToolEndPayload = event.data
    if data.call and data.call in session.done:
        return
    failed = int(data.ok is False)
    count_in_turn(session, event, tools=1, failed=failed)
    touch_lane(session, event, tools=1)
    session.tools += 1
    session.failed += failed
    session.edits += int(data.action == "edit" and not failed)
    open_gates.call_done(session, event)
    running_calls.end_call(session, event)


def _batch_ended(session: Session, event: Event) -> None:
    data: agent_events.ToolBatch = event.data
    running_calls.remove_calls(session, [ref.call for ref in data.calls])
    session.asks = [ask for ask in session.asks if ask.lane != data.lane]


def _permission_requested(session: Session, event: Event) -> None:
    count_in_turn(session, event)
    touch_lane(session, event)
    running_calls.add_ask(session, event, "permission")


def _permission_denied(session: Session, event: Event) -> None:
    """A call that Holdfast denied is counted by its decision."""
    data: agent_events.PermissionDenied = event.data
    if not data.call or data.call not in session.done:
        session.denied += 1
    running_calls.remove_calls(session, [data.call])
    running_calls.remove_answered(session, event)


def _notified(session: Session, event: Event) -> None:
    data: agent_events.Notification = event.data
    if data.topic == "permission_prompt" and not session.asks:
        running_calls.add_ask(session, event, "permission")
    elif data.topic == "idle_prompt" and not session.any_lane_open:
        # Nothing else tells that the user pressed Esc: the agent says that it waits for input.
        running_calls.clear_running(session)
        close_turn(session, event, "notified")


def _elicitation_requested(session: Session, event: Event) -> None:
    running_calls.add_ask(session, event, "question")


def _elicitation_answered(session: Session, _event: Event) -> None:
    session.asks = [ask for ask in session.asks if ask.what != "question"]


def _turn_ended(session: Session, event: Event) -> None:
    data: agent_events.TurnEnded = event.data
    _end_turn(session, event, "stopped", data.message)


def _turn_failed(session: Session, event: Event) -> None:
    data: agent_events.TurnFailed = event.data
    _end_turn(session, event, "failed", data.error)


def _turn_interrupted(session: Session, event: Event) -> None:
    _end_turn(session, event, "interrupted", "")


def _end_turn(session: Session, event: Event, how: str, answer: str) -> None:
    data: agent_events.HookPayload = event.data
    if data.lane:
        end_lane(session, event)
        return
    turn = session.turn
    if data.turn and (turn is None or (turn.id and turn.id != data.turn and not turn.is_open)):
        session.early_stop = data.turn
        return
    running_calls.clear_running(session, lane="")
    close_turn(session, event, how, answer)
    if turn and not turn.is_open and turn.how != how:
        session.turn = replace(turn, how=how, answer=one_line(answer) or turn.answer)


def _subagent_ended(session: Session, event: Event) -> None:
    """Claude Code reports the end of a subagent for each compaction too; that is none."""
    data: agent_events.SubagentEnded = event.data
    if not data.compaction:
        end_lane(session, event)
        running_calls.clear_running(session, lane=data.lane)


def _compacted(session: Session, _event: Event) -> None:
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
    end_session(session, event, "clear" if data.reason == "clear" else "exit", detail=data.reason)


HANDLERS: dict[str, Handler] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "prompt.submitted": _prompt_submitted,
    "tool.started": _tool_started,
    "tool.finished": _tool_ended,
    "tool.failed": _tool_ended,
    "tool.batch": _batch_ended,
    "permission.requested": _permission_requested,
    "permission.denied": _permission_denied,
    "notification": _notified,
    "elicitation.requested": _elicitation_requested,
    "elicitation.answered": _elicitation_answered,
    "turn.ended": _turn_ended,
    "turn.failed": _turn_failed,
    "turn.interrupted": _turn_interrupted,
    "subagent.started": touch_lane,
    "subagent.ended": _subagent_ended,
    "compact.ended": _compacted,
    "model.switched": _model_switched,
    "model.answered": _model_answered,
}
