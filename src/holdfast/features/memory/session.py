"""A session, as memory sees it: the turn in hand, what is open, what it was told. Bounded; pure."""

import re
from collections.abc import Callable
from typing import Any

from holdfast.core.checks import Verdict
from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.ports import Doc
from holdfast.features.memory.model import (
    CANDIDATE,
    HANDOFF,
    IDS,
    MOST_ACTS,
    MOST_OWN,
    MOST_SHOWN,
    OUTSIDE,
    PUT_BACK,
    SOURCE,
    line,
    mapping,
    newest,
    strings,
)  # fmt: skip
from holdfast.features.memory.rules import actions

MOST_TASKS = MOST_GATES = 30
MOST_COMMANDS = 12
MOST_EDITED = 30
PROMPT, CONTEXT, COMMAND, HEARD, SUMMARY = 4_000, 1_000, 300, 400, 8_000
OWN_TYPES = frozenset(("decision", "rule", "preference", "gotcha", "trade_off"))
NOTED = frozenset(("shell", "edit", "ask"))
_WORTH_KEEPING = re.compile(r"\b(test|build|make|run|lint|check|deploy|migrat|serve|start|pytest|cargo|npm|docker)")

Step = Callable[[Doc, Event], Doc]


def born(event: Event) -> Doc:
    return {
        "id": event.session, "agent": event.agent, "project": event.project, "at": event.at, "first_seq": event.seq,
        "n": 0, "prompt": "", "context": "", "prompt_seq": 0, "planning": False, "message": "", "message_seq": 0, "acts": [],
        "closed": False, "finished": None, "first_prompt": "", "queued": 0,
        "tasks": {}, "todos": [], "gates": {}, "commands": {}, "edited": {}, "own": [],
        "shown": {}, "parent": "", "compacted": 0, "snapshot": None, "summary": "",
        "left_at": event.at,
    }  # fmt: skip


def reduce(doc: Doc | None, event: Event) -> Doc | None:
    step = STEPS.get(event.kind)
    if step is None or (doc is None and not event.agent):
        return doc
    before = doc or born(event)
    after = step(before, event)
    return doc if after is before and doc is not None else {**after, "at": event.at}


def finished_turn(doc: Doc) -> Doc | None:
    """The turn that this event ended: the one in hand, or the one before it (`_prompted`)."""
    finished = doc["finished"]
    return doc if finished is True else finished


def _ended_without_a_word(doc: Doc) -> bool:
    """O4-f: where the end of a turn was never told, the next prompt ends it."""
    return not doc["closed"] and bool(doc["prompt"] or doc["acts"])


def _turn(doc: Doc) -> Doc:
    names = ("n", "prompt", "context", "prompt_seq", "planning", "message", "message_seq", "acts")
    return {name: doc[name] for name in names}


def _prompted(doc: Doc, event: Event) -> Doc:
    if event.get("lane") or event.get("synthetic"):
        return doc
    prompt = _both_ends(str(event.get("prompt") or ""))
    return {
        **doc, "finished": _turn(doc) if _ended_without_a_word(doc) else None,
        "n": doc["n"] + 1, "prompt": prompt, "context": doc["message"][-CONTEXT:], "prompt_seq": event.seq,
        "planning": event.get("mode") == "plan", "message": "", "message_seq": 0, "acts": [], "closed": False,
        "snapshot": None, "summary": "",
        "first_prompt": doc["first_prompt"] or line(prompt, 200), "project": event.project or doc["project"],
    }  # fmt: skip


def _both_ends(prompt: str) -> str:
    """What lies between was pasted."""
    return prompt if len(prompt) <= PROMPT else f"{prompt[: PROMPT // 2]}\n{prompt[-PROMPT // 2 :]}"


def _acted(doc: Doc, event: Event) -> Doc:
    action = event.get("action", "")
    if action == "todo":
        return _todos(doc, event)
    if action not in NOTED:
        return doc
    ok = event.kind == "tool.finished" and event.get("ok") is not False and event.get("exit_code") in (None, 0)
    ok = ok and not _check_failed(event)
    heard = event.get("error") or (event.get("output") if action == "ask" or not ok else "")
    act = _act(event, event.seq, ok, heard)
    changes = {**_useful(doc, act), **({"closed": False} if doc["closed"] else {})}
    if actions.needed(doc["acts"], act):
        changes["acts"] = [*doc["acts"], act][-MOST_ACTS:]
    return {**doc, **changes} if changes else doc


def _check_failed(event: Event) -> bool:
    """`pytest | tail` ends with 0 whatever the tests did: their own verdict counts."""
    data = event.data
    checks = data.judgement.checks if isinstance(data, ToolEndPayload) and data.judgement else []
    return any(check.verdict is Verdict.FAILED for check in checks)


def _act(event: Event, seq: int, ok: bool, heard: Any) -> Doc:
    return {
        "seq": seq, "action": event.get("action", ""), "ok": ok, "command": str(event.get("command") or "")[:COMMAND],
        "paths": strings(event.get("paths"), 5), "text": line(heard, HEARD),
    }  # fmt: skip


def _failed_after_all(doc: Doc, event: Event) -> Doc:
    """The hook had said no more than that it ran; how it ended was read later, mostly within the same turn."""
    if event.get("ok") is not False or doc["closed"]:
        return doc
    seq = event.get("of")
    act = _act(event, seq, False, "")
    acts = [known for known in doc["acts"] if known["seq"] != seq]
    if actions.needed(acts, act):
        acts = sorted([*acts, act], key=lambda known: known["seq"])[-MOST_ACTS:]
    return {**doc, "acts": acts, "commands": {name: at for name, at in doc["commands"].items() if at != seq}}


def _useful(doc: Doc, act: Doc) -> Doc:
    """What is known already changes nothing: the document is written only when it says something new."""
    if not act["ok"]:
        return {}
    if act["action"] == "edit":
        edited = doc["edited"]
        for path in act["paths"]:
            edited = edited if path in edited else newest(edited, path, act["seq"], MOST_EDITED)
        return {"edited": edited} if edited is not doc["edited"] else {}
    command = act["command"]
    if command in doc["commands"] or "\n" in command or not _WORTH_KEEPING.search(command):
        return {}
    return {"commands": newest(doc["commands"], command, act["seq"], MOST_COMMANDS)}


def _todos(doc: Doc, event: Event) -> Doc:
    todos = mapping(event.get("input")).get("todos")
    if not isinstance(todos, list):
        return doc
    left = [line(mapping(t).get("content"), 160) for t in todos if mapping(t).get("status") != "completed"][:MOST_TASKS]
    return {**doc, "todos": left} if left != doc["todos"] else doc


def _turn_over(doc: Doc, event: Event) -> Doc:
    if event.get("lane"):
        return doc
    message = str(event.get("message") or "")[:PROMPT]
    doc = {**doc, "message": message, "message_seq": event.seq}
    return {**doc, "closed": True, "finished": True}


def _session_over(doc: Doc, _event: Event) -> Doc:
    return {**doc, "finished": _ended_without_a_word(doc) or None, "closed": True}


def _task_opened(doc: Doc, event: Event) -> Doc:
    subject = line(event.get("subject"), 160)
    return {**doc, "tasks": newest(doc["tasks"], str(event.get("task") or subject), subject, MOST_TASKS)}


def _task_done(doc: Doc, event: Event) -> Doc:
    name = str(event.get("task") or line(event.get("subject"), 160))
    return {**doc, "tasks": {k: v for k, v in doc["tasks"].items() if k != name}}


def _gates(status: str) -> Step:
    def step(doc: Doc, event: Event) -> Doc:
        gates = doc["gates"]
        for named in (event.get("requirements") or ())[:MOST_GATES]:
            name = str(mapping(named).get("name") or "") if isinstance(named, dict) else str(named)
            # A gate that was satisfied is not open again because it was met once more.
            if gates.get(name) not in ("satisfied", status):
                gates = newest(gates, name, status, MOST_GATES)
        return {**doc, "gates": gates} if gates is not doc["gates"] else doc

    return step


def _reopened(doc: Doc, event: Event) -> Doc:
    names = {str(n) for n in event.get("requirements") or () if isinstance(n, str)}
    return {**doc, "gates": {k: ("open" if k in names else v) for k, v in doc["gates"].items()}}


def _observed(doc: Doc, event: Event) -> Doc:
    if event.get("type") not in OWN_TYPES or event.get("origin") == OUTSIDE or event.get("status") == CANDIDATE:
        return doc
    kept = [one for one in doc["own"] if one["id"] != event.get("id")]
    own = {"id": event.get("id"), "text": line(event.get("text"), 300), "type": event.get("type")}
    return {**doc, "own": [*kept, own][-MOST_OWN:]}


def _forgotten(doc: Doc, event: Event) -> Doc:
    return {**doc, "own": [one for one in doc["own"] if one["id"] != event.get("id")]}


def _queued(doc: Doc, event: Event) -> Doc:
    return {**doc, "queued": int(event.get("turn") or 0)}


def _compacting(doc: Doc, event: Event) -> Doc:
    """What there is now, before the agent sums it up."""
    names = ("prompt", "tasks", "todos", "gates", "commands", "edited", "own")
    return {**doc, "snapshot": {**{name: doc[name] for name in names}, "seq": event.seq}, "summary": ""}


def _compacted(doc: Doc, event: Event) -> Doc:
    return {**doc, "summary": str(event.get("summary") or "")[:SUMMARY]}


def _started(doc: Doc, event: Event) -> Doc:
    """A compaction threw away what was told before it, so that it may be told again."""
    place = {"project": event.project or doc["project"], "agent": event.agent or doc["agent"]}
    doc = {**doc, **place, "left_at": doc["at"]}
    if event.get("source") in ("compact", "clear"):
        return {**doc, "shown": {}, "compacted": event.seq}
    return doc


def _linked(doc: Doc, event: Event) -> Doc:
    """A fork goes on with its parent's whole conversation; after a clear there is none."""
    forked = event.get("reason") not in ("clear", "compact")
    return {**doc, "parent": str(event.get("parent") or "")} if forked else doc


def told(event: Event) -> list[dict[str, Any]]:
    contexts = event.get("contexts") or ()
    return [c for c in contexts if mapping(c).get("source") in (SOURCE, PUT_BACK, HANDOFF)]


def _decided(doc: Doc, event: Event) -> Doc:
    shown = doc["shown"]
    for context in told(event):
        for identity in IDS.findall(str(context.get("text") or "")):
            shown = newest(shown, identity, event.seq, MOST_SHOWN)
    return doc if shown is doc["shown"] else {**doc, "shown": shown}


STEPS: dict[str, Step] = {
    "session.started": _started,
    "session.linked": _linked,
    "prompt.submitted": _prompted,
    "tool.finished": _acted,
    "tool.failed": _acted,
    "tool.exit_read": _failed_after_all,
    "turn.ended": _turn_over,
    "turn.interrupted": _turn_over,
    "turn.failed": _turn_over,
    **dict.fromkeys(("session.ended", "session.lost", "session.stale", "session.closed"), _session_over),
    "task.created": _task_opened,
    "task.completed": _task_done,
    "gates.triggered": _gates("open"),
    "gates.satisfied": _gates("satisfied"),
    "gates.cleared": _reopened,
    "compact.started": _compacting,
    "compact.ended": _compacted,
    "memory.observed": _observed,
    "memory.forgotten": _forgotten,
    "memory.queued": _queued,
    "decision.made": _decided,
}
ENDS = frozenset(
    ("prompt.submitted", "turn.ended", "turn.interrupted", "turn.failed", "session.ended", "session.lost",
     "session.stale", "session.closed")
)  # fmt: skip
"""After these the document may hold a finished turn."""
