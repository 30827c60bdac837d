"""How a session begins and ends, and what takes an end back."""

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import SessionStarted
from holdfast.features.sessions.state.documents import ACTIVE, COMPLETED, MAX_CHILDREN, Session, one_line
from holdfast.features.sessions.state.turns import close_turn

TOLD_ENDS = ("exit", "clear")
CONCLUDED_ENDS = ("process-gone", "stale", "closed-by-user")
"""Ends the agent did not tell: activity after them proves that it lives."""


def new_session(event: Event) -> Session:
    return Session(
        id=event.session, agent=event.agent, project=event.project, since=event.at, started_at=event.at, at=event.at,
        first_seq=event.seq, seq=event.seq,
    )  # fmt: skip


def end_session(session: Session, event: Event, reason: str, detail: str = "") -> None:
    """The first end counts; only what the agent itself says is better than what was concluded."""
    told_at_last = reason in TOLD_ENDS and session.reason in CONCLUDED_ENDS
    if session.status == COMPLETED and not told_at_last:
        return
    close_turn(session, event, "ended" if reason in TOLD_ENDS else "lost")
    session.status, session.reason, session.detail = COMPLETED, reason, one_line(detail)
    session.ended_at = session.ended_at or event.at or 1


def proves_life(session: Session, event: Event) -> bool:
    """Whether an event of the agent takes back that its session has ended."""
    data, later = event.data, event.at > session.ended_at
    if isinstance(data, SessionStarted):
        return later or data.source == "resume"
    if event.kind == "prompt.submitted":
        return later
    return event.kind != "session.ended" and session.reason in CONCLUDED_ENDS and later


def reactivate(session: Session) -> None:
    session.status, session.reason, session.detail, session.ended_at = ACTIVE, "", "", 0
    session.restarts += 1


def link_parent(session: Session, parent: str, reason: str, parent_seq: int) -> None:
    """The first link stays. Parents are older than their children, so there can be no cycle."""
    if parent and parent != session.id and parent_seq < session.first_seq and not session.parent:
        session.parent, session.parent_reason = parent, reason


def add_child(session: Session, child: str) -> None:
    if child and child != session.id and child not in session.children:
        session.children = [*session.children, child][-MAX_CHILDREN:]
        session.children_seen += 1
