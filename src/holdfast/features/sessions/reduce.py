"""Events → documents. Pure: the state of a session is what its log says, in whatever order the log says it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.core.event import HOOK_KINDS, Event
from holdfast.core.ports import Doc, Ref
from holdfast.features.sessions import lanes, lineage
from holdfast.features.sessions.model import (
    ACTIVE,
    COMPLETED,
    ENDED,
    IDLE,
    KINDS,
    MOST_ASKS,
    MOST_RUNNING,
    PLACE,
    RECENT_IN_PLACE,
    REMEMBERED_CALLS,
    SESSION,
    SUMMARY,
    TITLE,
    TOKENS,
    TURN,
    WAITING,
    WATCHED,
    WORKING,
    about,
    head,
    is_open,
    turn_key,
)  # fmt: skip
from holdfast.features.sessions.turns import ANSWERED, close_turn, into_turn, open_turn, processed, reopen_turn

LISTENS = frozenset((*HOOK_KINDS, *KINDS, "decision.made")) - {"unknown", "message.displayed", "model.requested"}
LATE_MS = 5_000
"""Starts and prompts of one moment come in any order; what is older than this came before."""

DOUBTFUL = ("process-gone", "stale", "closed-by-user")
"""Ends the agent did not tell: activity after them proves that it lives."""

Handler = Callable[[Doc, Event], None]
"""Changes the copy it is given. Values inside are replaced, never changed in place."""


def keys(event: Event) -> Iterable[Ref]:
    if not event.session:
        return ()
    refs = [Ref(SESSION, event.session)]
    kind = event.kind
    if kind in ("session.started", "prompt.submitted") and event.project:
        refs.append(Ref(PLACE, event.project))
    elif kind == "turn.processed":
        refs.append(Ref(TURN, turn_key(event.session, event.get("n", 0))))
    elif kind == "tokens.read":
        refs.extend(Ref(TURN, turn_key(event.session, int(n))) for n in event.get("by_turn", ()))
    elif kind == "session.summarised":
        refs.append(Ref(SUMMARY, event.session))
    return refs


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    return _KINDS_OF_DOCUMENT[ref.kind](doc, event, ref)


def facets(_ref: Ref, doc: Doc) -> tuple[str, str, int]:
    status = doc.get("status", "")
    return doc.get("project", ""), WATCHED if status == ACTIVE and doc.get("process") else status, doc.get("at", 0)


def stream(ref: Ref) -> Mapping[str, str]:
    """Every document comes from the events of its own session (a place: of its project)."""
    if ref.kind == PLACE:
        return {"project": ref.key}
    return {"session": ref.key.rpartition("/")[0] if ref.kind == TURN else ref.key}


# ── a session ──────────────────────────────────────────────────────────────────────────────────────────────────────


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
    for name in ("branch", "cwd", "transcript", "model"):
        value = data.get(name)
        if value and value != doc[name]:
            doc[name] = value
    doc["agent"] = doc["agent"] or event.agent
    doc["project"] = doc["project"] or event.project
    pid = data.get("pid")
    if pid:
        doc["hook"] = [pid, data.get("pid_start", 0)]
    if doc["status"] == COMPLETED and _proves_life(doc, event):
        _reactivate(doc)


def _proves_life(doc: Doc, event: Event) -> bool:
    kind = event.kind
    if kind == "session.started":
        return event.at > doc["ended_at"] or event.get("source") == "resume"
    if kind == "prompt.submitted":
        return event.at > doc["ended_at"]
    return kind != "session.ended" and doc["reason"] in DOUBTFUL and event.at > doc["ended_at"]


def _reactivate(doc: Doc) -> None:
    doc.update(status=ACTIVE, reason="", detail="", ended_at=0, restarts=doc["restarts"] + 1)


def _settle(doc: Doc, event: Event) -> None:
    """The state follows from the facts, so that no order of events can leave an illegal one."""
    if doc["status"] == COMPLETED:
        _nothing_runs(doc)
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


# ── what agents tell ───────────────────────────────────────────────────────────────────────────────────────────────


def _started(doc: Doc, event: Event) -> None:
    source = event.get("source", "")
    doc["source"], doc["origin"] = source, doc["origin"] or source
    if source == "compact":
        return  # In the middle of a turn, in the same process.
    turn = doc["turn"]
    if source == "resume" and is_open(turn) and event.at - turn["at"] > LATE_MS:
        _nothing_runs(doc)
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
    _nothing_runs(doc)
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
    into_turn(doc, event)
    lanes.touched(doc, event)
    entry = {"tool": event.tool, "about": about(event), "at": event.at, "lane": event.get("lane", "")}
    doc["running"] = _capped({**doc["running"], call: entry}, MOST_RUNNING)
    if event.get("action") == "ask":
        _ask(doc, event, "question")


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
    _through(doc, [call] if call else _nameless(doc, event))
    if call:
        doc["done"] = [*doc["done"], call][-REMEMBERED_CALLS:]
    _answered(doc, event)


def _nameless(doc: Doc, event: Event) -> list[str]:
    """Agents without call ids: the oldest running call of the same tool in the same lane."""
    lane = event.get("lane", "")
    return next(([c] for c, r in doc["running"].items() if r["tool"] == event.tool and r["lane"] == lane), [])


def _batch_ended(doc: Doc, event: Event) -> None:
    lane = event.get("lane", "")
    _through(doc, [c.get("call", "") for c in event.get("calls", ()) if isinstance(c, Mapping)])
    doc["asks"] = [a for a in doc["asks"] if a["lane"] != lane]


def _permission_asked(doc: Doc, event: Event) -> None:
    into_turn(doc, event)
    lanes.touched(doc, event)
    _ask(doc, event, "permission")


def _permission_denied(doc: Doc, event: Event) -> None:
    doc["denied"] += 1
    _through(doc, [event.get("call", "")])
    _answered(doc, event)


def _notified(doc: Doc, event: Event) -> None:
    topic = event.get("topic", "")
    if topic == "permission_prompt" and not doc["asks"]:
        _ask(doc, event, "permission")
    elif topic == "idle_prompt" and not lanes.any_open(doc):
        # Nothing else tells that the user pressed Esc: the agent says that it waits for input.
        _nothing_runs(doc)
        close_turn(doc, event, "notified")


def _elicited(doc: Doc, event: Event) -> None:
    _ask(doc, event, "question")


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
    _nothing_runs(doc, lane="")
    close_turn(doc, event, how, answer)
    if turn and not is_open(turn) and turn["how"] != how:
        doc["turn"] = {**turn, "how": how, "answer": head(answer) or turn["answer"]}


def _lane_started(doc: Doc, event: Event) -> None:
    lanes.touched(doc, event)


def _lane_ended(doc: Doc, event: Event) -> None:
    if not event.get("compaction"):
        lanes.ended(doc, event)
        _nothing_runs(doc, lane=event.get("lane", ""))


def _compacted(doc: Doc, _event: Event) -> None:
    doc["compactions"] += 1


def _model_switched(doc: Doc, event: Event) -> None:
    doc["model"] = event.get("new") or doc["model"]


def _ended(doc: Doc, event: Event) -> None:
    told = event.get("reason", "")
    _end_session(doc, event, "clear" if told == "clear" else "exit", detail=told)


def _end_session(doc: Doc, event: Event, reason: str, detail: str = "") -> None:
    """The first end counts; only what the agent itself says is better than what was concluded."""
    if doc["status"] == COMPLETED and not (reason in ("exit", "clear") and doc["reason"] in DOUBTFUL):
        return
    close_turn(doc, event, "ended" if reason in ("exit", "clear") else "lost")
    doc.update(status=COMPLETED, reason=reason, detail=head(detail), ended_at=doc["ended_at"] or event.at or 1)


# ── what Holdfast finds out ────────────────────────────────────────────────────────────────────────────────────────


def _decided(doc: Doc, event: Event) -> None:
    data = event.data
    doc["told"] += sum(c.get("tokens", 0) for c in data.get("contexts", ()))
    if data.get("verdict") != "deny":
        return
    if data.get("of_kind") == "tool.started":
        doc["denied"] += 1
        _through(doc, [data.get("call", "") or f"#{data.get('of')}"])
    elif data.get("of_kind") == "turn.ended" and doc["status"] == ACTIVE:
        reopen_turn(doc)  # A refused stop means: go on working.


def _process_found(doc: Doc, event: Event) -> None:
    doc["process"] = {name: event.get(name) for name in ("pid", "start", "boot", "host", "name")}


def _lost(doc: Doc, event: Event) -> None:
    process = doc["process"]
    if process and (process["pid"], process["start"]) == (event.get("pid"), event.get("start")):
        _end_session(doc, event, "process-gone")


def _stale(doc: Doc, event: Event) -> None:
    if not doc["process"] and doc["at"] <= event.get("last", 0):
        _end_session(doc, event, "stale")


def _left(doc: Doc, event: Event) -> None:
    _end_session(doc, event, "clear")


def _closed(doc: Doc, event: Event) -> None:
    _end_session(doc, event, "closed-by-user")


def _reopened(doc: Doc, _event: Event) -> None:
    if doc["status"] == COMPLETED:
        _reactivate(doc)
        doc["process"] = None  # It may be dead; if the session lives, its next event names it again.


def _turn_recovered(doc: Doc, event: Event) -> None:
    turn = doc["turn"]
    if turn and turn["n"] == event.get("n") and doc["at"] <= event.get("last", 0):
        _nothing_runs(doc)
        lanes.all_ended(doc, event)
        close_turn(doc, event, "recovered")


def _turn_escaped(doc: Doc, event: Event) -> None:
    turn = doc["turn"]
    if turn and turn["n"] == event.get("n") and doc["at"] <= event.get("when", 0) + LATE_MS:
        _nothing_runs(doc, lane="")
        close_turn(doc, event, "interrupted")


def _turn_adopted(doc: Doc, event: Event) -> None:
    turn = doc["turn"]
    if turn and turn["n"] == event.get("n"):
        doc["turn"] = {**turn, "adopted": True}


def _turn_processed(doc: Doc, event: Event) -> None:
    processed(doc, event.get("n", 0), event.get("upto", 0))


def _tokens_read(doc: Doc, event: Event) -> None:
    doc["tokens"] = added(doc["tokens"], event.get("total", {}))
    if event.get("lane"):
        lanes.tokens_read(doc, event.get("lane"))
    else:
        doc["read"] = {name: event.get(name) for name in ("path", "offset", "last", "ids")}


def _summarised(doc: Doc, event: Event) -> None:
    doc["summarised"] = event.get("of", 0)


def added(tokens: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: tokens.get(name, 0) + more.get(name, 0) for name in TOKENS}


# ── small steps ────────────────────────────────────────────────────────────────────────────────────────────────────


def _ask(doc: Doc, event: Event, what: str) -> None:
    if doc["status"] == ACTIVE:
        ask = {"what": what, "tool": event.tool, "about": about(event), "lane": event.get("lane", ""), "at": event.at}
        doc["asks"] = [*(a for a in doc["asks"] if not _same_ask(a, event)), ask][-MOST_ASKS:]


def _answered(doc: Doc, event: Event) -> None:
    """A notification names no tool, so any end in its lane answers it."""
    if not doc["asks"]:
        return
    lane = event.get("lane", "")
    doc["asks"] = [a for a in doc["asks"] if not _same_ask(a, event) and (a["tool"] or a["lane"] != lane)]


def _same_ask(ask: Doc, event: Event) -> bool:
    return (ask["tool"], ask["about"], ask["lane"]) == (event.tool, about(event), event.get("lane", ""))


def _through(doc: Doc, calls: Iterable[str]) -> None:
    gone = set(calls)
    if gone & doc["running"].keys():
        doc["running"] = {call: entry for call, entry in doc["running"].items() if call not in gone}


def _nothing_runs(doc: Doc, lane: str | None = None) -> None:
    """In the given lane, or at all."""
    if doc["running"]:
        doc["running"] = {c: r for c, r in doc["running"].items() if lane is not None and r["lane"] != lane}
    if doc["asks"]:
        doc["asks"] = [a for a in doc["asks"] if lane is not None and a["lane"] != lane]


def _capped(entries: dict[str, Any], most: int) -> dict[str, Any]:
    return entries if len(entries) <= most else dict(list(entries.items())[-most:])


HANDLERS: dict[str, Handler] = {
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
    "decision.made": _decided,
    "session.process": _process_found,
    "session.lost": _lost,
    "session.stale": _stale,
    "session.left": _left,
    "session.closed": _closed,
    "session.reopened": _reopened,
    "session.linked": lineage.linked,
    "session.branched": lineage.branched,
    "session.summarised": _summarised,
    "turn.recovered": _turn_recovered,
    "turn.escaped": _turn_escaped,
    "turn.adopted": _turn_adopted,
    "turn.processed": _turn_processed,
    "tokens.read": _tokens_read,
}

# ── the smaller documents ──────────────────────────────────────────────────────────────────────────────────────────


def _turn(doc: Doc | None, event: Event, ref: Ref) -> Doc:
    before = doc or {"session": event.session, "tokens": dict.fromkeys(TOKENS, 0), "status": ACTIVE}
    n = int(ref.key.rpartition("/")[2])
    if event.kind == "tokens.read":
        more = event.get("by_turn", {}).get(str(n), {})
        return {**before, "n": n, "project": event.project, "tokens": added(before["tokens"], more), "at": event.at}
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
}
