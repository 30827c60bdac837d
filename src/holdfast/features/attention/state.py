"""Derives from events what needs a person. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.attention import ATTENTION, MUTED, MUTED_KEY, OPEN, Attention, Muted, Need
from holdfast.core.event import Event
from holdfast.core.feature import Facets
from holdfast.core.kinds import SESSION_ENDS, TOOL_ENDS, ToolPayload
from holdfast.core.kinds.attention_events import AttentionAnswered, AttentionDue, AttentionMuted
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.gates_events import requirement_names
from holdfast.core.kinds.session_events import AgentUnrecorded, PermissionGranted
from holdfast.core.kinds.uat_events import RunEnded
from holdfast.core.kinds.workspace_events import WorkspaceChanged
from holdfast.core.ports import Doc, Ref

MOST_NEEDS = 10
MOST_DENIALS = 20
FINALLY = 3
"""Refusals of the same gate in one turn after which it counts as refused for good."""
LONGEST_TEXT = 2_000
LONGEST_TASK = 300
LONGEST_VALUE = 4_000
ASKING = frozenset(("permission.requested", "tool.started", "elicitation.requested", "notification"))

Handler = Callable[[Attention, Event], None]


def keys(event: Event) -> Iterable[Ref]:
    if event.kind == AttentionMuted.KIND:
        return [MUTED.ref(MUTED_KEY)]
    if event.kind == AttentionDue.KIND:
        return [ATTENTION.ref(owner) for owner in dict.fromkeys(one.rpartition("#")[0] for one in event.data.needs)]
    if event.kind == WorkspaceChanged.KIND and not any(one.lost for one in event.data.files):
        return []
    return [ATTENTION.ref(owner_of(event))]


def owner_of(event: Event) -> str:
    """The session; else the project, or the machine for what belongs to neither."""
    return event.session or f"project:{event.project}"


def facets(_ref: Ref, doc: Doc) -> Facets:
    if isinstance(doc, Muted):
        return "", "", doc.at
    return doc.project, OPEN if doc.needs else "", doc.needs[0].since if doc.needs else doc.at


def stream(ref: Ref) -> Mapping[str, str]:
    # A notification is recorded without a session, so the whole log has to be read.
    del ref
    return {}


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == MUTED.kind:
        return Muted(until=event.data.until, at=event.at)
    if doc is None and event.kind not in CREATE:
        return None
    before: Attention = doc or Attention()
    after = msgspec.structs.replace(before)
    if event.kind != AttentionDue.KIND:
        after.session, after.project = event.session or before.session, event.project or before.project
    handle(after, event)
    # Most tool calls change nothing here, and then nothing is written.
    if doc is not None and after == before:
        return doc
    if event.kind != AttentionDue.KIND:
        after.at = max(before.at, event.at)
    return after


def handle(doc: Attention, event: Event) -> None:
    if event.kind in SESSION_ENDS:
        _session_over(doc, event)
        return
    if handler := HANDLERS.get(event.kind):
        handler(doc, event)


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _add(doc: Attention, event: Event, kind: str, text: str, **more: Any) -> None:
    """The same thing asked twice is one need, with its first time."""
    need = Need(
        id=f"{owner_of(event)}#{event.seq}", kind=kind, text=text[:LONGEST_TEXT], since=event.at, seq=event.seq,
        key=event.key, agent=event.agent, session=event.session, project=event.project, task=doc.task, **more,
    )  # fmt: skip
    known = [one for one in doc.needs if _is_same(one, need)]
    if known:
        need.since, need.sent = known[0].since, known[0].sent
    doc.needs = [*(one for one in doc.needs if not _is_same(one, need)), need][-MOST_NEEDS:]


def _is_same(one: Need, other: Need) -> bool:
    if one.asks and other.asks:
        # The hook before a question's tool call, and its permission, ask the same.
        return (one.tool, one.lane, one.text) == (other.tool, other.lane, other.text)
    return one.kind == other.kind and (one.kind != "discarded" or one.text == other.text)


def _asked(doc: Attention, event: Event) -> None:
    data: ToolPayload = event.data
    kind = "question" if data.action == "ask" else "permission"
    _add(doc, event, kind, asked_text(data), **_details(event))


def _details(event: Event) -> dict[str, Any]:
    data: ToolPayload = event.data
    given = {name: _shortened(value) for name, value in data.input.items()}
    return {"tool": event.tool, "call": data.call, "lane": data.lane, "input": given}


def _shortened(value: Any) -> Any:
    return f"{value[:LONGEST_VALUE]}…" if isinstance(value, str) and len(value) > LONGEST_VALUE else value


def asked_text(data: ToolPayload) -> str:
    questions = data.input.get("questions")
    if isinstance(questions, list):
        named = [str(one.get("question") or "") for one in questions if isinstance(one, dict)]
        return " ".join(filter(None, named))
    plain = next((value for value in data.input.values() if isinstance(value, str) and value), "")
    return data.command or ", ".join(data.paths or filter(None, [data.path])) or data.get("message") or plain


def _tool_started(doc: Attention, event: Event) -> None:
    _goes_on(doc, event)
    if event.data.action == "ask":
        _asked(doc, event)


def _notified(doc: Attention, event: Event) -> None:
    # A permission that was asked by its own event is more exact than the notification.
    if event.data.topic == "permission_prompt" and not any(one.asks for one in doc.needs):
        _add(doc, event, "permission", event.data.message, lane=event.data.lane)


def _elicited(doc: Attention, event: Event) -> None:
    _add(doc, event, "question", event.data.message, tool="elicitation", lane=event.data.lane)


# ── what settles it ───────────────────────────────────────────────────────────────────────────────────────────────────


def _keep(doc: Attention, keep: Callable[[Need], bool]) -> None:
    doc.needs = [one for one in doc.needs if keep(one)]


def _tool_ended(doc: Attention, event: Event) -> None:
    if doc.needs:
        data: ToolPayload = event.data
        text = asked_text(data)
        _keep(doc, lambda one: not (one.asks and one.lane == data.lane and _concerns(one, event.tool, data.call, text)))
    _goes_on(doc, event)


def _concerns(need: Need, tool: str, call: str, text: str) -> bool:
    """A notification names no tool, so any end in its lane settles it."""
    return not need.tool or (bool(call) and need.call == call) or (need.tool, need.text) == (tool, text[:LONGEST_TEXT])


def _lane_settled(doc: Attention, event: Event) -> None:
    _keep(doc, lambda one: not (one.asks and one.lane == event.data.lane))


def _goes_on(doc: Attention, event: Event) -> None:
    if not event.data.lane:
        _keep(doc, lambda one: one.kind not in ("finished", "failed"))


def _prompted(doc: Attention, event: Event) -> None:
    data = event.data
    if data.lane:
        return
    _keep(doc, lambda one: one.kind in ("discarded", "uat", "unrecorded"))
    doc.denials = {}
    if data.prompt and not data.synthetic:
        doc.task = " ".join(data.prompt[: LONGEST_TASK * 2].split())[:LONGEST_TASK]
        doc.typed_at = event.at


def _answered(doc: Attention, event: Event) -> None:
    data: AttentionAnswered = event.data
    _keep(doc, lambda one: one.seq != data.of)


def _granted(doc: Attention, event: Event) -> None:
    data: PermissionGranted = event.data
    _keep(doc, lambda one: not (one.asks and one.since == data.asked))


def _session_over(doc: Attention, event: Event) -> None:
    """A process that died in the middle of its work is something to know; an end in good order is not."""
    cut_off = event.kind == "session.lost" and bool(doc.needs or doc.task) and not _rests(doc)
    _keep(doc, lambda one: one.kind in ("discarded", "uat"))
    if cut_off:
        _add(doc, event, "failed", "its process is gone")


def _rests(doc: Attention) -> bool:
    return any(one.kind in ("finished", "failed") for one in doc.needs)


# ── how turns end ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _turn_ended(doc: Attention, event: Event) -> None:
    if event.data.lane:
        _lane_settled(doc, event)
        return
    _keep(doc, lambda one: not one.asks)
    if not event.data.background:
        _add(doc, event, "finished", event.data.message)


def _turn_failed(doc: Attention, event: Event) -> None:
    if not event.data.lane:
        _keep(doc, lambda one: not one.asks)
        _add(doc, event, "failed", event.data.error or event.data.message)


def _turn_gone(doc: Attention, event: Event) -> None:
    if not getattr(event.data, "lane", ""):
        _keep(doc, lambda one: not one.asks)


def _decided(doc: Attention, event: Event) -> None:
    data: DecisionMade = event.data
    if data.of_kind == "turn.ended" and data.verdict == "deny":
        _keep(doc, lambda one: one.kind != "finished")
    if data.of_kind == "permission.requested" and data.verdict in ("allow", "deny"):
        _keep(doc, lambda one: one.seq != data.of)
    for detail in data.details:
        for requirement in detail.get("requirements") or ():
            _count_refusal(doc, event, str(detail.get("gate")), requirement)


def _count_refusal(doc: Attention, event: Event, gate: str, requirement: Any) -> None:
    name = next(iter(requirement_names([requirement])), "")
    why = " ".join(event.data.reasons)[:LONGEST_TEXT] or name
    if gate in ("refused", "stop") and name:
        times = doc.denials.get(name, 0) + 1
        doc.denials = dict(list({**doc.denials, name: times}.items())[-MOST_DENIALS:])
        if isinstance(requirement, dict) and requirement.get("type") == "budget":
            _add(doc, event, "budget", why)
        elif times == FINALLY:
            _add(doc, event, "refused", why)
    elif gate == "let_go" and name:
        _add(doc, event, "refused", f"it stopped although these are not done: {name}")


# ── things without a turn ─────────────────────────────────────────────────────────────────────────────────────────────


def _work_changed(doc: Attention, event: Event) -> None:
    data: WorkspaceChanged = event.data
    lost = [one for one in data.files if one.lost]
    names = ", ".join(one.path for one in lost[:5])
    _add(doc, event, "discarded", f"{sum(one.lost for one in lost)} lines of {names}: holdfast undo", tool=data.tool)


def _restored(doc: Attention, _event: Event) -> None:
    _keep(doc, lambda one: one.kind != "discarded")


def _run_ended(doc: Attention, event: Event) -> None:
    data: RunEnded = event.data
    _keep(doc, lambda one: one.kind != "uat")
    if data.outcome == "failed":
        _add(doc, event, "uat", data.scenario or data.reason or "a run failed")


def _unrecorded(doc: Attention, event: Event) -> None:
    data: AgentUnrecorded = event.data
    process = {"pid": data.pid, "start": data.start}
    _add(doc, event, "unrecorded", f"{data.program} in {data.cwd}: {data.why}", input=process)


def _due(doc: Attention, event: Event) -> None:
    data: AttentionDue = event.data
    doc.needs = [
        msgspec.structs.replace(one, sent=[*one.sent, data.channel]) if one.id in data.needs else one
        for one in doc.needs
    ]


HANDLERS: dict[str, Handler] = {
    "permission.requested": _asked,
    "tool.started": _tool_started,
    "elicitation.requested": _elicited,
    "elicitation.answered": lambda doc, _: _keep(doc, lambda one: one.tool != "elicitation"),
    "notification": _notified,
    **dict.fromkeys(TOOL_ENDS, _tool_ended),
    "tool.batch": _lane_settled,
    "permission.denied": _tool_ended,
    "prompt.submitted": _prompted,
    "turn.ended": _turn_ended,
    "turn.failed": _turn_failed,
    **dict.fromkeys(("turn.interrupted", "turn.recovered", "turn.escaped"), _turn_gone),
    "permission.granted": _granted,
    "decision.made": _decided,
    AttentionAnswered.KIND: _answered,
    AttentionDue.KIND: _due,
    WorkspaceChanged.KIND: _work_changed,
    "workspace.restored": _restored,
    RunEnded.KIND: _run_ended,
    AgentUnrecorded.KIND: _unrecorded,
}
SUBSCRIBED = frozenset((*HANDLERS, *SESSION_ENDS, AttentionMuted.KIND))
CREATE = frozenset((*ASKING, "prompt.submitted", "turn.ended", "turn.failed", "decision.made", "session.lost",
                    WorkspaceChanged.KIND, RunEnded.KIND, AgentUnrecorded.KIND))  # fmt: skip
"""What begins a document; other events change one that is there."""
