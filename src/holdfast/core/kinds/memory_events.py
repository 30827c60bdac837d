"""Kinds of the feature `memory`: what is remembered and what people do to it."""

from holdfast.core.kinds.base import Payload, event_kind


class MemoryPayload(Payload):
    """About one memory."""

    id: str = ""
    repo: str = ""
    """The repository it belongs to; empty outside of git."""


class RememberedPayload(MemoryPayload):
    """Words that may be injected into later sessions."""

    type: str = ""
    text: str = ""
    detail: str = ""
    """Quotes tools; shown on request, never injected."""
    origin: str = ""
    """Whose words: user, agent, deed, outside."""
    words_of: str = ""
    """Who said it, where that is not the person of this machine: a teammate, or the agent whose proposal a person kept."""
    importance: int = 0
    files: list[str] = []
    evidence: list[int] = []
    """Numbers of the events it rests on."""
    supersedes: list[str] = []
    pinned: bool = False
    status: str = ""
    """`candidate` where a person decides first; empty otherwise."""


@event_kind("memory.observed")
class MemoryObserved(RememberedPayload):
    """Something is worth remembering."""


@event_kind("memory.kept")
class MemoryKept(RememberedPayload):
    """A person kept a candidate, as it was or in other words; `was` is the candidate."""

    was: str = ""


@event_kind("memory.pinned")
class MemoryPinned(MemoryPayload):
    """A person wants a memory injected at every start, or no longer."""

    pinned: bool = False


@event_kind("memory.promoted")
class MemoryPromoted(MemoryPayload):
    """A person vouches for a memory made of words from outside."""


@event_kind("memory.dropped")
class MemoryDropped(MemoryPayload):
    """A person dropped a candidate; the same words are not proposed again."""


@event_kind("memory.ended")
class MemoryEnded(MemoryPayload):
    """The user said that what a memory waited for has happened; `said` is the prompt."""

    said: int = 0


@event_kind("memory.files_found")
class MemoryFilesFound(MemoryPayload):
    """Files that a memory names and that were there soon after it was made."""

    paths: list[str] = []


@event_kind("memory.forgotten")
class MemoryForgotten(MemoryPayload):
    """A person had a memory removed; its text is gone. `of` is the number of a prompt or an answer, if it was one."""

    of: int = 0


@event_kind("memory.handed_over")
class WorkHandedOver(MemoryPayload):
    """A session's work was made ready for another agent."""

    text: str = ""


@event_kind("memory.quirk_edited")
class QuirkEdited(MemoryPayload):
    """A person wrote what to use instead where a quirk of the place gets in the way."""

    instead: str = ""


@event_kind("memory.quirk_forgotten")
class QuirkForgotten(MemoryPayload):
    """A person had a quirk of the place forgotten; it is not learned again."""
