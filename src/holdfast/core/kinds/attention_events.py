"""Kinds of the feature `attention`: what a person was notified of, and what they answered from elsewhere."""

from holdfast.core.kinds.base import Payload, event_kind


@event_kind("attention.answered")
class AttentionAnswered(Payload):
    """A person answered an agent's question outside of the agent's terminal."""

    of: int = 0
    """The event that asked."""
    verdict: str = ""
    """allow or deny."""
    reason: str = ""
    answers: dict[str, str] = {}
    """Question to answer, where the agent asked questions."""
    how: str = ""
    """dashboard, link or command line."""
    who: str = ""


@event_kind("attention.due")
class AttentionDue(Payload):
    """A notification is to be sent over one channel."""

    channel: str = ""
    needs: list[str] = []
    """The ids of what it is about."""
    test: bool = False


@event_kind("attention.sent")
class AttentionSent(Payload):
    """A notification was sent; `skipped` says why it was not, e.g. because it was answered meanwhile."""

    of: int = 0
    channel: str = ""
    needs: list[str] = []
    skipped: str = ""


@event_kind("attention.muted")
class AttentionMuted(Payload):
    """A person silenced notifications until a time, in ms; 0 ends it."""

    until: int = 0
