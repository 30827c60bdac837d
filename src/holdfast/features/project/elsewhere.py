"""What other rooms say, by the kinds of their events: gates that wait, UAT that failed, an index that is stale."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS
from holdfast.core.ports import Doc

MOST_NAMES = 30
REFUSALS = ("refused", "stop", "let_go")
BAD = ("failed", "failure", "error")


def concerns(event: Event) -> bool:
    if event.kind == "decision.made":
        return any(isinstance(d, Mapping) and d.get("gate") in REFUSALS for d in event.data.get("details") or ())
    return event.kind in HEARD


def changed(doc: Doc, event: Event) -> Doc:
    return HEARD[event.kind](doc, event)


# ── gates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _refused(doc: Doc, event: Event) -> Doc:
    waiting = dict(_known(doc, "gates"))
    for detail in event.data["details"]:
        how = detail.get("gate") if isinstance(detail, Mapping) else ""
        for name in _names(detail.get("requirements")) if how in REFUSALS else ():
            blocks = event.tool if how == "refused" else "end_of_turn"
            waiting[name] = {"blocks": blocks, "session": event.session, "let_go": how == "let_go"}
    return _with(doc, "gates", waiting)


def _satisfied(doc: Doc, event: Event) -> Doc:
    done = set(_names(event.get("requirements")))
    return _with(doc, "gates", {k: v for k, v in _known(doc, "gates").items() if k not in done})


def _went_on(doc: Doc, event: Event) -> Doc:
    """A prompt after a refused end of turn: the turn did end, so what was asked for was done."""
    left = {
        name: one
        for name, one in _known(doc, "gates").items()
        if one["session"] != event.session or one["blocks"] != "end_of_turn" or one["let_go"]
    }
    return _with(doc, "gates", left)


def _session_over(doc: Doc, event: Event) -> Doc:
    """What a session that is gone did not satisfy is nobody's task."""
    return _with(doc, "gates", {k: v for k, v in _known(doc, "gates").items() if v["session"] != event.session})


# ── UAT ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _uat_began(doc: Doc, event: Event) -> Doc:
    name = str((event.get("plan") or {}).get("name") or event.get("scenario") or "")[:100]
    return _with(doc, "uat_runs", {**_known(doc, "uat_runs"), str(event.get("uat")): {"name": name, "bad": []}})


def _uat_went(doc: Doc, event: Event) -> Doc:
    """What each step looked like last: one that failed may be tried again and pass."""
    run = _known(doc, "uat_runs").get(str(event.get("uat")))
    verdict = event.get("status") or event.get("result")
    failed = event.get("ok") is False or (isinstance(verdict, str) and verdict in BAD)
    step = str(event.get("step") or event.get("description") or "")[:100]
    if run is None or (step in run["bad"]) == failed:
        return doc
    bad = [*run["bad"], step][-MOST_NAMES:] if failed else [one for one in run["bad"] if one != step]
    return _with(doc, "uat_runs", {**_known(doc, "uat_runs"), str(event.get("uat")): {**run, "bad": bad}})


def _uat_ended(doc: Doc, event: Event) -> Doc:
    """The event's own word on the outcome goes before what its steps looked like."""
    runs = dict(_known(doc, "uat_runs"))
    run = runs.pop(str(event.get("uat")), {"name": "", "bad": []})
    name = str(event.get("scenario") or run["name"])[:100]
    outcome = str(event.get("outcome") or event.get("result") or "")
    failed = outcome in BAD if outcome else bool(run["bad"])
    known = {k: v for k, v in _known(doc, "uat").items() if k != name}
    return _with(_with(doc, "uat_runs", runs), "uat", {**known, name: {"at": event.at}} if name and failed else known)


# ── the code index ───────────────────────────────────────────────────────────────────────────────────────────────────


def _indexed(doc: Doc, event: Event) -> Doc:
    status = str(event.get("status"))
    if status in ("completed", "unchanged"):
        return _with(doc, "index", {})
    if status in ("failed", "timeout", "killed"):
        return _with(doc, "index", {"stale": True, "why": f"The last run {status}: {event.get('reason')}"[:200]})
    return doc


def _names(listed: Any) -> list[str]:
    found = (one.get("name") if isinstance(one, Mapping) else one for one in listed or ())
    return [str(name)[:100] for name in found if name]


def _known(doc: Doc, name: str) -> Mapping[str, Any]:
    return doc["elsewhere"].get(name) or {}


def _with(doc: Doc, name: str, value: Mapping[str, Any]) -> Doc:
    bounded = dict(list(value.items())[-MOST_NAMES:])
    if bounded == dict(_known(doc, name)):
        return doc
    return {**doc, "elsewhere": {**doc["elsewhere"], name: bounded}}


HEARD: dict[str, Callable[[Doc, Event], Doc]] = {
    "decision.made": _refused,
    "gates.satisfied": _satisfied,
    "gates.approved": _satisfied,
    "prompt.submitted": _went_on,
    **dict.fromkeys(SESSION_ENDS, _session_over),
    "uat.started": _uat_began,
    "uat.step": _uat_went,
    "uat.asserted": _uat_went,
    "uat.call_ended": _uat_went,
    "uat.ended": _uat_ended,
    "reindex.finished": _indexed,
}
