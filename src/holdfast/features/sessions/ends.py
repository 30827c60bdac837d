"""How a session ends, and what takes an end back."""

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import ACTIVE, COMPLETED, head
from holdfast.features.sessions.turns import close_turn

TOLD = ("exit", "clear")
DOUBTFUL = ("process-gone", "stale", "closed-by-user")
"""Ends the agent did not tell: activity after them proves that it lives."""


def end_session(doc: Doc, event: Event, reason: str, detail: str = "") -> None:
    """The first end counts; only what the agent itself says is better than what was concluded."""
    if doc["status"] == COMPLETED and not (reason in TOLD and doc["reason"] in DOUBTFUL):
        return
    close_turn(doc, event, "ended" if reason in TOLD else "lost")
    doc.update(status=COMPLETED, reason=reason, detail=head(detail), ended_at=doc["ended_at"] or event.at or 1)


def proves_life(doc: Doc, event: Event) -> bool:
    kind = event.kind
    if kind == "session.started":
        return event.at > doc["ended_at"] or event.get("source") == "resume"
    if kind == "prompt.submitted":
        return event.at > doc["ended_at"]
    return kind != "session.ended" and doc["reason"] in DOUBTFUL and event.at > doc["ended_at"]


def reactivate(doc: Doc) -> None:
    doc.update(status=ACTIVE, reason="", detail="", ended_at=0, restarts=doc["restarts"] + 1)
