"""Events → documents. Pure: the state of a session is what its log says, in whatever order the log says it."""

from collections.abc import Callable, Iterable, Mapping

from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS
from holdfast.core.ports import Doc, Ref
from holdfast.features.sessions import days, lanes
from holdfast.features.sessions.calls import nothing_runs
from holdfast.features.sessions.ends import proves_life, reactivate
from holdfast.features.sessions.found import FOUND, added
from holdfast.features.sessions.model import (
    ACTIVE,
    COMPLETED,
    ENDED,
    IDLE,
    KINDS,
    PLACE,
    RECENT_IN_PLACE,
    SESSION,
    SUMMARY,
    TOKENS,
    TURN,
    WAITING,
    WATCHED,
    WORKING,
    is_open,
    turn_key,
)
from holdfast.features.sessions.told import TOLD
from holdfast.features.sessions.turns import ANSWERED, close_turn

SUBSCRIBED_KINDS = frozenset((*HOOK_KINDS, *KINDS, "decision.made")) - {
    "unknown",
    "message.displayed",
    "model.requested",
}
HANDLERS = {**TOLD, **FOUND}
OF_LANES = ("branch", "cwd")
OF_SESSION = (*OF_LANES, "model", "transcript")
"""A subagent may have another model, and in Codex it keeps a transcript of its own."""


def keys(event: Event) -> Iterable[Ref]:
    if not event.session:
        return ()
    refs = [Ref(SESSION, event.session)]
    kind = event.kind
    if kind in ("session.started", "prompt.submitted") and event.project:
        refs.append(Ref(PLACE, event.project))
    elif kind == "turn.processed":
        refs += [Ref(TURN, turn_key(event.session, event.get("n", 0))), *days.keys(event)]
    elif kind == "tokens.read":
        refs += [*(Ref(TURN, turn_key(event.session, int(n))) for n in event.get("by_turn", ())), *days.keys(event)]
    elif kind == "session.summarised":
        refs.append(Ref(SUMMARY, event.session))
    return refs


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    return _KINDS_OF_DOCUMENT[ref.kind](doc, event, ref)


def facets(_ref: Ref, doc: Doc) -> tuple[str, str, int]:
    status = doc.get("status", "")
    return doc.get("project", ""), WATCHED if status == ACTIVE and doc.get("process") else status, doc.get("at", 0)


def stream(ref: Ref) -> Mapping[str, str]:
    """Every document comes from the events of its own session (a place: of its project; a day: of all)."""
    if ref.kind in (days.DAY, days.YEAR):
        return {}
    if ref.kind == PLACE:
        return {"project": ref.key}
    return {"session": ref.key.rpartition("/")[0] if ref.kind == TURN else ref.key}


# ── a session ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _session(doc: Doc | None, event: Event, _ref: Ref) -> Doc | None:
    ours = event.kind not in HOOK_KINDS
    if doc is None:
        if ours:
            return None  # Only an agent begins a session.
        doc = _born(event)
    else:
        doc = dict(doc)
    if not ours:
        _seen(doc, event)
    handle = HANDLERS.get(event.kind)
    if handle:
        handle(doc, event)
    _settle(doc, event)
    return doc


def _born(event: Event) -> Doc:
    return {
        "id": event.session, "agent": event.agent, "project": event.project, "branch": "", "cwd": "", "transcript": "",
        "model": "", "origin": "", "source": "", "title": "",
        "status": ACTIVE, "state": IDLE, "since": event.at, "reason": "", "detail": "",
        "started_at": event.at, "at": event.at, "ended_at": 0, "first_seq": event.seq, "seq": event.seq,
        "events": 0, "prompts": 0, "tools": 0, "failed": 0, "denied": 0, "edits": 0, "compactions": 0, "restarts": 0,
        "turn": None, "previous": None, "missed": 0, "recent": [], "early_stop": "",
        "running": {}, "done": [], "asks": [], "lanes": {}, "lanes_seen": 0,
        "hook": None, "process": None,
        "parent": "", "parent_reason": "", "children": [], "children_seen": 0,
        "tokens": dict.fromkeys(TOKENS, 0), "read": None, "told": 0, "summarised": 0,
    }  # fmt: skip


def _seen(doc: Doc, event: Event) -> None:
    data = event.data
    doc["events"] += 1
    doc["seq"] = event.seq
    if event.at > doc["at"]:
        doc["at"] = event.at
    for name in OF_LANES if data.get("lane") else OF_SESSION:
        value = data.get(name)
        if value and value != doc[name]:
            doc[name] = value
    doc["agent"] = doc["agent"] or event.agent
    doc["project"] = doc["project"] or event.project
    pid = data.get("pid")
    if pid:
        doc["hook"] = [pid, data.get("pid_start", 0)]
    if doc["status"] == COMPLETED and proves_life(doc, event):
        reactivate(doc)


def _settle(doc: Doc, event: Event) -> None:
    """The state follows from the facts, so that no order of events can leave an illegal one."""
    if doc["status"] == COMPLETED:
        nothing_runs(doc)
        lanes.all_ended(doc, event)
        close_turn(doc, event, "ended")
    state = _state(doc)
    if state != doc["state"]:
        doc["state"], doc["since"] = state, event.at


def _state(doc: Doc) -> str:
    if doc["status"] == COMPLETED:
        return ENDED
    if doc["asks"]:
        return WAITING
    turn = doc["turn"]
    if is_open(turn) or lanes.any_open(doc):
        return WORKING
    return WAITING if turn and turn["how"] in ANSWERED else IDLE


# ── the smaller documents ──────────────────────────────────────────────────────────────────────────────────────────


def _turn(doc: Doc | None, event: Event, ref: Ref) -> Doc:
    before = doc or {"session": event.session, "tokens": dict.fromkeys(TOKENS, 0), "status": ACTIVE}
    n = int(ref.key.rpartition("/")[2])
    if event.kind == "tokens.read":
        more = event.get("by_turn", {}).get(str(n), {})
        at = before.get("at") or event.at  # When the turn began, once that is known: not when it was counted.
        return {**before, "n": n, "project": event.project, "tokens": added(before["tokens"], more), "at": at}
    return {**before, **event.get("facts", {}), "n": n, "project": event.project, "status": COMPLETED}


def _summary(_doc: Doc | None, event: Event, _ref: Ref) -> Doc:
    return {**event.data, "session": event.session, "project": event.project, "status": COMPLETED, "at": event.at}


def _place(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    recent = doc["recent"] if doc else []
    if recent[:1] == [event.session]:
        return doc
    others = [session for session in recent if session != event.session]
    return {"project": ref.key, "recent": [event.session, *others][:RECENT_IN_PLACE], "at": event.at}


_KINDS_OF_DOCUMENT: dict[str, Callable[[Doc | None, Event, Ref], Doc | None]] = {
    SESSION: _session,
    TURN: _turn,
    SUMMARY: _summary,
    PLACE: _place,
    days.DAY: days.reduce_day,
    days.YEAR: days.reduce_year,
}
