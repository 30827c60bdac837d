"""Events into documents. Pure."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc, Ref
from holdfast.features.uat import run
from holdfast.features.uat.detect import WORTH_KEEPING
from holdfast.features.uat.model import CATALOGUE, ENDINGS, MOST_RUNS, PLAN, RUN
from holdfast.features.uat.orders import read

KEPT_OF_PROMPT = 2_000


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == RUN:
        return run.reduced(doc, event)
    if ref.kind == PLAN:
        return doc or {**(event.get("plan") or {}), "project": event.project, "at": event.at}
    if ref.kind == CATALOGUE:
        return {**event.data, "project": event.project, "at": event.at}
    return session(doc, event)


def session(doc: Doc | None, event: Event) -> Doc | None:
    """What a session has going: its run, its last prompt that may be about one."""
    change = _OF_SESSION.get(event.kind, _quiet)
    changed = change(doc or _new(event), event)
    if doc is None and not (changed["prompt"] or changed["runs"]):
        return None
    if doc is not None and all(doc[name] == changed[name] for name in doc):
        return doc
    return {**changed, "at": event.at, "status": "active" if changed["active"] else "", "project": event.project}


def _new(event: Event) -> Doc:
    empty: dict[str, Any] = {"active": "", "tail": "", "previous": "", "runs": [], "prompt": None, "used": []}
    return {**empty, "at": event.at, "status": "", "project": event.project}


def _prompted(doc: Doc, event: Event) -> Doc:
    """Ordinary prompts leave nothing here."""
    if event.get("synthetic") or not event.get("prompt"):
        return doc
    text = str(event.get("prompt"))[:KEPT_OF_PROMPT]
    reading = read(text)
    prompt = {"text": text, "score": reading.score, "suggested": 0} if reading.score >= WORTH_KEEPING else None
    return {**doc, "prompt": prompt, "used": [], "tail": ""}


def _suggested(doc: Doc, event: Event) -> Doc:
    return {**doc, "prompt": {**doc["prompt"], "suggested": event.get("of", 0)}} if doc["prompt"] else doc


def _started(doc: Doc, event: Event) -> Doc:
    name = (event.get("plan") or {}).get("name", "")
    return {
        **doc,
        "previous": doc["active"],
        "active": event.get("uat"),
        "tail": "",
        "runs": [*doc["runs"], event.get("uat")][-MOST_RUNS:],
        "used": [*doc["used"], name][-MOST_RUNS:],
    }


def _ended(doc: Doc, event: Event) -> Doc:
    """After a last step the agent may still take a picture of where it arrived: the turn's calls belong to the run."""
    run_id = event.get("uat")
    previous = "" if doc["previous"] == run_id else doc["previous"]
    if doc["active"] != run_id:
        return {**doc, "previous": previous}
    return {**doc, "active": "", "previous": previous, "tail": run_id if event.get("reason") == "last-step" else ""}


def _turned(doc: Doc, _event: Event) -> Doc:
    return {**doc, "tail": ""}


def _quiet(doc: Doc, _event: Event) -> Doc:
    return doc


_OF_SESSION = {
    "prompt.submitted": _prompted,
    "turn.ended": _turned,
    "uat.suggested": _suggested,
    "uat.started": _started,
    "uat.ended": _ended,
    **dict.fromkeys(ENDINGS, _turned),
}
