"""What the gates know of one session: what it triggered, how often it was refused, what it was told."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.gates.bounded import with_newest
from holdfast.features.gates.refs import GONE, place

MOST_TRIGGERED, MOST_TOLD, MOST_CALLS = 100, 40, 20
MARGIN_MS = 100


def no_session(event: Event) -> Doc:
    return {
        "session": event.session, "agent": event.agent, "project": event.project, "status": "live", "started": event.at,
        "at": event.at, "place": place(event), "branch": event.data.get("branch", ""), "triggered": {}, "stops": 0,
        "stop_names": [], "refused": 0, "satisfied": 0,
    }  # fmt: skip


def changed(doc: Doc | None, event: Event) -> Doc:
    doc = doc or no_session(event)
    return _with_content(STEPS.get(event.kind, _seen)(doc, event), event)


def _with_content(doc: Doc, event: Event) -> Doc:
    """What the worktree held at the beginning, and when it was last looked at."""
    content = event.data.get("content")
    if not content or event.data.get("claimed"):
        return doc
    began = doc.get("began") or {}
    if any(key not in began for key in content):
        doc = {**doc, "began": {**content, **began}}
    before = doc.get("content") or {}
    return {**doc, "content": {**before, **content}, "content_before": before}


def _call_started(doc: Doc, event: Event) -> Doc:
    """While a call is open a file may change because of it."""
    if event.data.get("claimed"):
        return doc
    calls = with_newest(doc.get("calls") or {}, str(event.data.get("call") or event.seq), [event.at, 0], MOST_CALLS)
    refs = event.data.get("refs")
    return {**doc, "calls": calls, "at": event.at, **({"refs": refs} if refs else {})}


def _call_ended(doc: Doc, event: Event) -> Doc:
    calls = doc.get("calls") or {}
    call = str(event.data.get("call") or "")
    if event.data.get("claimed") or call not in calls:
        return doc
    return {**doc, "calls": {**calls, call: [calls[call][0], event.at]}, "at": event.at}


def _bypassed(doc: Doc, event: Event) -> Doc:
    told = {"what": event.data.get("what", ""), "requirements": list(event.data.get("requirements") or ()), "seq": event.seq}
    return {**doc, "bypassed": [*(doc.get("bypassed") or ()), told][-MOST_TOLD:], "at": event.at}


def _pointed_out(doc: Doc, _detail: dict[str, Any], _event: Event) -> Doc:
    return {**doc, "bypassed": []}


def was_busy(doc: Doc | None, at: int) -> bool:
    """Whether a tool call of this session was running then."""
    calls = ((doc or {}).get("calls") or {}).values()
    return any(began - MARGIN_MS <= at and (not ended or at <= ended + MARGIN_MS) for began, ended in calls)


def is_busy(doc: Doc | None) -> bool:
    return any(not ended for _, ended in ((doc or {}).get("calls") or {}).values())


def _seen(doc: Doc, event: Event) -> Doc:
    where = {"place": place(event), "branch": event.data.get("branch", ""), "project": event.project}
    status = "ended" if event.kind in GONE else "live"
    return {**doc, **(where if event.project else {}), "status": status, "at": event.at}


def _prompted(doc: Doc, event: Event) -> Doc:
    """A person spoke: what was refused before is a new matter."""
    doc = _seen(doc, event)
    return doc if event.data.get("synthetic") else {**doc, "stops": 0, "stop_names": []}


def _turned(doc: Doc, event: Event) -> Doc:
    """Refusals are in a row only if the turn before this one was refused (or let go) too."""
    in_a_row = doc.get("held") is not None and doc.get("held") == doc.get("turn")
    fresh = {} if in_a_row else {"stops": 0, "stop_names": []}
    return {**_seen(doc, event), **fresh, "turn": event.seq}


def _triggered(doc: Doc, event: Event) -> Doc:
    known = doc["triggered"]
    for name in event.data.get("requirements") or ():
        known = with_newest(known, str(name), event.at, MOST_TRIGGERED)
    return {**doc, "triggered": known, "at": event.at}


def _satisfied(doc: Doc, event: Event) -> Doc:
    return {**doc, "satisfied": doc["satisfied"] + len(event.data.get("requirements") or ()), "at": event.at}


def _cleared(doc: Doc, event: Event) -> Doc:
    """A fact that was used for one action is no proof for the next one."""
    if event.data.get("method") != "used":
        return {**doc, "at": event.at}
    used = doc.get("used") or {}
    for name in event.data.get("requirements") or ():
        used = with_newest(used, str(name), event.seq, MOST_TRIGGERED)
    return {**doc, "used": used, "at": event.at}


def _decided(doc: Doc, event: Event) -> Doc:
    for detail in event.data.get("details") or ():
        if step := DECIDED.get(detail.get("gate")):
            doc = step(doc, detail, event)
    return doc


def _refused(doc: Doc, detail: dict[str, Any], event: Event) -> Doc:
    return {**doc, "refused": doc["refused"] + 1, "denied": {"at": event.at, "names": _names(detail)}}


def _held(doc: Doc, detail: dict[str, Any], event: Event) -> Doc:
    """Progress is that something refused before is not refused now; a tool that ran is none (H2)."""
    names = _names(detail)
    progress = bool(set(doc["stop_names"]) - set(names))
    stops = 1 if progress else doc["stops"] + 1
    return {**doc, "refused": doc["refused"] + 1, "stops": stops, "stop_names": names, "held": event.data.get("of")}


def _let_go(doc: Doc, _detail: dict[str, Any], event: Event) -> Doc:
    return {**doc, "let_go": event.at, "held": event.data.get("of")}


def _warned(doc: Doc, detail: dict[str, Any], _event: Event) -> Doc:
    warned = with_newest(doc.get("warned") or {}, str(detail.get("name")), detail.get("lines", 0), MOST_TRIGGERED)
    return {**doc, "warned": warned}


def _told(doc: Doc, detail: dict[str, Any], _event: Event) -> Doc:
    return {**doc, "told": [*doc.get("told", ()), *(detail.get("digests") or ())][-MOST_TOLD:]}


def _names(detail: dict[str, Any]) -> list[str]:
    return sorted(str(one.get("name")) for one in detail.get("requirements") or ())


STEPS = {
    "tool.started": _call_started,
    "tool.finished": _call_ended,
    "tool.failed": _call_ended,
    "gates.bypassed": _bypassed,
    "prompt.submitted": _prompted,
    "turn.ended": _turned,
    "gates.triggered": _triggered,
    "gates.satisfied": _satisfied,
    "gates.approved": _satisfied,
    "gates.cleared": _cleared,
    "decision.made": _decided,
}
DECIDED = {"refused": _refused, "stop": _held, "let_go": _let_go, "warned": _warned, "told": _told, "bypass": _pointed_out}
