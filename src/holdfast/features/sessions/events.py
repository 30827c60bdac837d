"""The events this feature subscribes to, and how it makes events of its own."""

from holdfast.core.event import Event, own_event
from holdfast.core.kinds import HOOK_KINDS, SESSION_KINDS, Payload
from holdfast.features.sessions.state.documents import Session

SUBSCRIBED_KINDS = frozenset((*HOOK_KINDS, *SESSION_KINDS, "decision.made", "gates.satisfied", "gates.approved")) - {
    "unknown",
    "message.displayed",
    "model.requested",
}


def session_event(session: Session, payload: Payload, at: int, once: object) -> Event:
    """An event of ours about a session. The same thing found twice (`once`) is one event."""
    return own_event(payload, at, session=session.id, project=session.project, once=once)
