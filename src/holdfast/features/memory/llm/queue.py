"""Turns of a project that wait for the model. The queue itself is the log (`memory.queued`); here is how far it was read.

Pure. A failure moves nothing: the same turns are asked about again, later.
"""

from holdfast.core.event import Event
from holdfast.core.ids import bounded
from holdfast.core.ports import Doc, Ref

KIND, WAITING = "memory.queue", "waiting"


def ref(project: str) -> Ref:
    return Ref(KIND, bounded(project))


def born(event: Event) -> Doc:
    return {
        "project": event.project, "status": "", "last": 0, "cursor": 0, "waiting": 0, "failures": 0, "bad": 0,
        "error": "", "next_at": 0, "at": event.at,
    }  # fmt: skip


def reduce(doc: Doc | None, event: Event) -> Doc | None:
    doc = doc or born(event)
    if event.kind == "memory.queued":
        return {**doc, "last": event.seq, "waiting": doc["waiting"] + 1, "status": WAITING, "at": event.at}
    return _read(doc, event) if event.get("ok") or event.get("given_up") else _failed(doc, event)


def _read(doc: Doc, event: Event) -> Doc:
    until = max(doc["cursor"], int(event.get("until") or 0))
    error = str(event.get("error") or "")[:300]
    waiting = max(0, doc["waiting"] - int(event.get("turns") or 0)) if until < doc["last"] else 0
    return {
        **doc, "cursor": until, "waiting": waiting, "status": WAITING if waiting else "", "failures": 0, "bad": 0,
        "error": error, "next_at": 0, "at": event.at,
    }  # fmt: skip


def _failed(doc: Doc, event: Event) -> Doc:
    return {
        **doc, "failures": doc["failures"] + 1, "bad": doc["bad"] + bool(event.get("bad")),
        "error": str(event.get("error") or "")[:300], "next_at": int(event.get("next_at") or 0), "at": event.at,
    }  # fmt: skip
