"""What each event of an agent means for its session."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions import calls, lanes
from holdfast.features.sessions.ends import end_session
from holdfast.features.sessions.model import LATE_MS, TITLE, Handler, head, is_open
from holdfast.features.sessions.turns import close_turn, into_turn, open_turn


def _started(doc: Doc, event: Event) -> None:
    source = event.get("source", "")
    doc["source"], doc["origin"] = source, doc["origin"] or source
    if source == "compact":
        return  # In the middle of a turn, in the same process.
    turn = doc["turn"]
    if source == "resume" and is_open(turn) and event.at - turn["at"] > LATE_MS:
        calls.nothing_runs(doc)
        close_turn(doc, event, "lost")
    process = doc["process"]
    if process and process["pid"] != event.get("pid"):
        doc["process"] = None


def _prompted(doc: Doc, event: Event) -> None:
    lane, prompt = event.get("lane", ""), event.get("prompt", "")
    if lane:
        lanes.touched(doc, event)
        return
    if _same_prompt(doc, event, prompt):
        return
    calls.nothing_runs(doc)
    synthetic = bool(event.get("synthetic"))
    open_turn(doc, event, origin="agent" if synthetic else "person", prompt=prompt)
    if not synthetic:
        doc["prompts"] += 1
        doc["title"] = doc["title"] or head(prompt, TITLE)
    if doc["early_stop"] and doc["early_stop"] == event.get("turn"):
        close_turn(doc, event, "stopped")
        doc["early_stop"] = ""


def _same_prompt(doc: Doc, event: Event, prompt: str) -> bool:
    """Hooks registered twice, and agents that send an empty prompt after every batch of tools."""
    turn = doc["turn"]
    if not is_open(turn):
        return False
    return not prompt or bool(turn["id"] and turn["id"] == event.get("turn") and turn["prompt"] == head(prompt))


def _tool_started(doc: Doc, event: Event) -> None:
    call = event.get("call") or f"#{event.seq}"
    if call in doc["done"]:
        return  # Its end came first.
    into_turn(doc, event, goes_on=not event.get("lane"))
    lanes.touched(doc, event)
    calls.begun(doc, event, call)
    if event.get("action") == "ask":
        calls.ask(doc, event, "question")


def _tool_ended(doc: Doc, event: Event) -> None:
    call = event.get("call", "")
    if call and call in doc["done"]:
        return
    failed = int(event.get("ok") is False)
    into_turn(doc, event, tools=1, failed=failed)
    lanes.touched(doc, event, tools=1)
    doc["tools"] += 1
    doc["failed"] += failed
    doc["edits"] += int(event.get("action") == "edit" and not failed)
    calls.ended(doc, event)


def _batch_ended(doc: Doc, event: Event) -> None:
    lane = event.get("lane", "")
    calls.through(doc, [c.get("call", "") for c in event.get("calls", ())])
    doc["asks"] = [a for a in doc["asks"] if a["lane"] != lane]


def _permission_asked(doc: Doc, event: Event) -> None:
    into_turn(doc, event)
    lanes.touched(doc, event)
    calls.ask(doc, event, "permission")


def _permission_denied(doc: Doc, event: Event) -> None:
    doc["denied"] += 1
    calls.through(doc, [event.get("call", "")])
    calls.answered(doc, event)


def _notified(doc: Doc, event: Event) -> None:
    topic = event.get("topic", "")
    if topic == "permission_prompt" and not doc["asks"]:
        calls.ask(doc, event, "permission")
    elif topic == "idle_prompt" and not lanes.any_open(doc):
        # Nothing else tells that the user pressed Esc: the agent says that it waits for input.
        calls.nothing_runs(doc)
        close_turn(doc, event, "notified")


def _elicited(doc: Doc, event: Event) -> None:
    calls.ask(doc, event, "question")


def _elicitation_answered(doc: Doc, _event: Event) -> None:
    doc["asks"] = [a for a in doc["asks"] if a["what"] != "question"]


def _turn_ended(doc: Doc, event: Event) -> None:
    _end_turn(doc, event, "stopped", event.get("message"))


def _turn_failed(doc: Doc, event: Event) -> None:
    _end_turn(doc, event, "failed", event.get("error"))


def _turn_interrupted(doc: Doc, event: Event) -> None:
    _end_turn(doc, event, "interrupted", "")


def _end_turn(doc: Doc, event: Event, how: str, answer: Any) -> None:
    if event.get("lane"):
        lanes.ended(doc, event)
        return
    turn, told = doc["turn"], event.get("turn", "")
    if told and (turn is None or (turn["id"] and turn["id"] != told and not is_open(turn))):
        doc["early_stop"] = told
        return
    calls.nothing_runs(doc, lane="")
    close_turn(doc, event, how, answer)
    if turn and not is_open(turn) and turn["how"] != how:
        doc["turn"] = {**turn, "how": how, "answer": head(answer) or turn["answer"]}


def _lane_started(doc: Doc, event: Event) -> None:
    lanes.touched(doc, event)


def _lane_ended(doc: Doc, event: Event) -> None:
    if not event.get("compaction"):
        lanes.ended(doc, event)
        calls.nothing_runs(doc, lane=event.get("lane", ""))


def _compacted(doc: Doc, _event: Event) -> None:
    doc["compactions"] += 1


def _model_switched(doc: Doc, event: Event) -> None:
    doc["model"] = event.get("new") or doc["model"]


def _ended(doc: Doc, event: Event) -> None:
    told = event.get("reason", "")
    end_session(doc, event, "clear" if told == "clear" else "exit", detail=told)


TOLD: dict[str, Handler] = {
    "session.started": _started,
    "session.ended": _ended,
    "prompt.submitted": _prompted,
    "tool.started": _tool_started,
    "tool.finished": _tool_ended,
    "tool.failed": _tool_ended,
    "tool.batch": _batch_ended,
    "permission.requested": _permission_asked,
    "permission.denied": _permission_denied,
    "notification": _notified,
    "elicitation.requested": _elicited,
    "elicitation.answered": _elicitation_answered,
    "turn.ended": _turn_ended,
    "turn.failed": _turn_failed,
    "turn.interrupted": _turn_interrupted,
    "subagent.started": _lane_started,
    "subagent.ended": _lane_ended,
    "compact.ended": _compacted,
    "model.switched": _model_switched,
}
