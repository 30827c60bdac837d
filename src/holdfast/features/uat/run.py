"""The document of one run: counters, steps, and the last of everything. The whole lists are queries on the log."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.uat import steps
from holdfast.features.uat.model import (
    ACTIVE,
    COMPLETED,
    FAILED,
    LARGEST_OVERLAY,
    MOST_CHECKS,
    MOST_OPEN,
    MOST_PROBLEMS,
    MOST_RECENT,
    MOST_SIGNALS,
    PASSED,
    UNKNOWN,
    line,
)
from holdfast.features.uat.patch import merged, size

PAPERWORK = ("uat.reported", "uat.restored", "uat.archived")
"""Nothing happened in the run itself."""
_COUNTED = ("calls", "ok", "failed", "errors", "warnings", "shots", "checks", "bad_checks", "restored")


def begun(event: Event) -> Doc:
    plan, data = event.get("plan") or {}, event.data
    return {
        "id": data["uat"],
        "session": event.session,
        "project": event.project,
        "scenario": str(plan.get("name", "")),
        "status": ACTIVE,
        "start": event.at,
        "at": event.at,
        "end": None,
        "reason": "",
        "outcome": "",
        "first_seq": event.seq,
        "last_seq": event.seq,
        "of": data.get("of", 0),
        "mode": data.get("mode", ""),
        "root": data.get("root", ""),
        "base_url": plan.get("base_url", ""),
        "message": line(data.get("message"), 1000),
        "confidence": data.get("confidence", 0),
        "reasons": list(data.get("reasons") or ())[:MOST_RECENT],
        "auto": bool(data.get("auto")),
        "current": 0,
        "steps": [steps.fresh(wanted) for wanted in plan.get("steps", ())],
        "assertions": [_open_assertion(wanted) for wanted in plan.get("assertions", ())],
        "asserted": [],
        "open": {},
        "n": 0,
        **dict.fromkeys(_COUNTED, 0),
        "touched": event.at,
        "last": [],
        "last_errors": [],
        "last_warnings": [],
        "last_shots": [],
        "last_checks": [],
        "reports": [],
        "hooks": {},
        "overlay": {},
        "framework": False,
        "archived": 0,
    }


def _open_assertion(wanted: Mapping[str, Any]) -> Doc:
    return {"step": wanted.get("step") or 0, "result": UNKNOWN, "actual": "", "at": None}


def reduced(doc: Doc | None, event: Event) -> Doc | None:
    if event.kind == "uat.started":
        return doc or _first_call(begun(event), event)
    change = CHANGES.get(event.kind)
    if doc is None or change is None:
        return doc
    at = doc["at"] if event.kind in PAPERWORK else max(doc["at"], event.at)
    after = {**doc, "at": at, "last_seq": event.seq or doc["last_seq"]}
    change(after, event)
    return after


def _first_call(doc: Doc, event: Event) -> Doc:
    """The call by which a run was noticed is the first one of it."""
    first = event.get("first")
    if isinstance(first, Mapping):
        _call_started(doc, event, first)
    return doc


def _started(doc: Doc, event: Event) -> None:
    _call_started(doc, event, event.data)


def _call_started(doc: Doc, event: Event, call: Mapping[str, Any]) -> None:
    if len(doc["open"]) >= MOST_OPEN:
        doc["open"] = dict(list(doc["open"].items())[1 - MOST_OPEN :])
    entry = {"n": call["n"], "tool": call.get("tool", ""), "step": call.get("step", 0), "at": event.at}
    matched = bool(call.get("matched", True))
    doc["open"] = {**doc["open"], str(call["n"]): {**entry, "call": call.get("call", ""), "matched": matched}}
    doc["n"] = max(doc["n"], call["n"])
    doc["touched"] = max(doc["touched"], event.at)
    if matched and doc["status"] == ACTIVE:
        steps.began(doc, call.get("step", 0), event.at)


def _ended_call(doc: Doc, event: Event) -> None:
    data = event.data
    doc["open"] = {n: entry for n, entry in doc["open"].items() if n != str(data["n"])}
    doc["n"] = max(doc["n"], data["n"])
    doc["calls"] += 1
    doc["ok" if data["ok"] else "failed"] += 1
    doc["touched"] = max(doc["touched"], event.at)
    short = {"n": data["n"], "tool": data["tool"], "step": data["step"], "ms": data["ms"], "ok": data["ok"]}
    doc["last"] = [*doc["last"], {**short, "at": event.at, "error": line(data.get("error"), 200)}][-MOST_RECENT:]
    if data.get("framework"):
        doc["framework"] = True
    if data.get("matched", True) and doc["status"] == ACTIVE:
        steps.began(doc, data["step"], data["began"])
        steps.called(doc, data["step"], event.at, ok=data["ok"])
    if not data["ok"]:
        _note(doc, event, "error", "tool", data.get("error") or "failed", data["step"])
    for found in data.get("problems") or ():
        _note(doc, event, "warning", found["type"], found["message"], data["step"])
    _judged(doc, event, data.get("assertions") or ())
    for check in data.get("health") or ():
        _check(doc, event, check)


def _judged(doc: Doc, event: Event, judged: Any) -> None:
    """What was met stays met unless it is broken; what is not met yet may still be; what is broken stays broken."""
    known = list(doc["assertions"])
    for one in judged:
        before = known[one["index"]]["result"] if one["index"] < len(known) else FAILED
        if before == FAILED or (before == PASSED and not one["broken"]):
            continue
        result = FAILED if one["broken"] else PASSED if one["met"] else UNKNOWN
        known[one["index"]] = {**known[one["index"]], "result": result, "actual": one["actual"], "at": event.at}
    doc["assertions"] = known


def _step(doc: Doc, event: Event) -> None:
    doc["touched"] = max(doc["touched"], event.at)
    steps.put(doc, event.get("step"), event.get("status"), event.at)


def _asserted(doc: Doc, event: Event) -> None:
    """By hand: new, or instead of one of the scenario's."""
    index, result = event.get("index"), event.get("result")
    if isinstance(index, int) and 0 <= index < len(doc["assertions"]):
        known = list(doc["assertions"])
        known[index] = {**known[index], "result": result, "actual": event.get("actual", ""), "at": event.at}
        doc["assertions"] = known
    elif len(doc["asserted"]) < MOST_CHECKS:
        doc["asserted"] = [*doc["asserted"], result]


def _checked(doc: Doc, event: Event) -> None:
    _check(doc, event, event.data)


def _check(doc: Doc, event: Event, check: Mapping[str, Any]) -> None:
    doc["checks"] += 1
    doc["bad_checks"] += check.get("result") != "success"
    entry = {"type": line(check.get("type"), 100), "result": check.get("result"), "at": event.at}
    doc["last_checks"] = [*doc["last_checks"], entry][-MOST_RECENT:]


def _shot(doc: Doc, event: Event) -> None:
    if not event.get("success"):
        _note(doc, event, "warning", "screenshot", event.get("problem"), event.get("step", 0))
        return
    doc["shots"] += 1
    entry = {name: event.get(name) for name in ("name", "path", "size", "step", "action")}
    doc["last_shots"] = [*doc["last_shots"], {**entry, "at": event.at}][-MOST_RECENT:]


def _problem(doc: Doc, event: Event) -> None:
    level = "error" if event.get("level") == "error" else "warning"
    _note(doc, event, level, event.get("type", "note"), event.get("message"), event.get("step", 0))


def _note(doc: Doc, event: Event, level: str, kind: str, message: Any, step: int) -> None:
    doc[f"{level}s"] += 1
    entry = {"at": event.at, "type": line(kind, 50), "message": line(message, 300), "step": step}
    doc[f"last_{level}s"] = [*doc[f"last_{level}s"], entry][-MOST_PROBLEMS:]


def _signal(doc: Doc, event: Event) -> None:
    name = event.get("name")
    known = {n: v for n, v in doc["hooks"].items() if n != name}
    kept = dict(list(known.items())[1 - MOST_SIGNALS :]) if len(known) >= MOST_SIGNALS else known
    doc["hooks"] = {**kept, name: {"data": event.get("data"), "at": event.at}}


def _patched(doc: Doc, event: Event) -> None:
    patch = event.get("patch")
    after = merged(doc["overlay"], patch) if isinstance(patch, Mapping) else doc["overlay"]
    if size(after) <= LARGEST_OVERLAY:
        doc["overlay"] = after
    else:
        _note(doc, event, "warning", "update", "an update was left out: the document would become too large", 0)


def _reported(doc: Doc, event: Event) -> None:
    made = [r for r in event.get("reports") or () if r not in doc["reports"]]
    doc["reports"] = [*doc["reports"], *made][-MOST_RECENT:]


def _restored(doc: Doc, event: Event) -> None:
    doc["restored"] += event.get("was") != "good"


def _archived(doc: Doc, event: Event) -> None:
    doc["archived"] = event.at


def _over(doc: Doc, event: Event) -> None:
    if doc["status"] != ACTIVE:
        return
    doc["status"], doc["end"], doc["reason"] = COMPLETED, event.at, str(event.get("reason", ""))
    steps.close(doc)
    doc["assertions"] = [_final(doc, one) for one in doc["assertions"]]
    doc["outcome"] = outcome(doc)


def _final(doc: Doc, assertion: Doc) -> Doc:
    """What was never seen to hold has failed: nothing is believed. What was never reached is left open."""
    at = [doc["steps"][assertion["step"] - 1]] if assertion["step"] else doc["steps"]
    reached = all(step["status"] in (COMPLETED, FAILED) for step in at)
    return {**assertion, "result": FAILED} if reached and assertion["result"] == UNKNOWN else assertion


def verdict(doc: Doc, ending: Event) -> dict[str, str]:
    """What the end of this run says to those who only hear events (gates ask for proof by them)."""
    over = reduced(doc, ending) or doc
    return {"scenario": over["scenario"], "outcome": over["outcome"]}


def outcome(doc: Doc) -> str:
    stood = [s["status"] for s in doc["steps"]]
    if FAILED in stood or FAILED in doc["asserted"] or any(a["result"] == FAILED for a in doc["assertions"]):
        return FAILED
    done = all(s == COMPLETED for s in stood) and all(a["result"] == PASSED for a in doc["assertions"])
    return PASSED if done else "incomplete"


CHANGES: dict[str, Callable[[Doc, Event], None]] = {
    "uat.call_started": _started,
    "uat.call_ended": _ended_call,
    "uat.step": _step,
    "uat.asserted": _asserted,
    "uat.checked": _checked,
    "uat.shot": _shot,
    "uat.problem": _problem,
    "uat.signal": _signal,
    "uat.patched": _patched,
    "uat.reported": _reported,
    "uat.restored": _restored,
    "uat.archived": _archived,
    "uat.ended": _over,
}
