"""Kinds that Holdfast itself writes: answers, the daemon's life, repairs."""

from holdfast.core.kinds.base import JsonObject, Payload, Record, event_kind


class InjectedContext(Record):
    """A text that was put into the agent's context, and what it cost."""

    source: str = ""
    text: str = ""
    tokens: int = 0


@event_kind("decision.made")
class DecisionMade(Payload):
    """Holdfast refused, asked, or put context before the agent; `of` is the event it answers."""

    of: int = 0
    of_kind: str = ""
    verdict: str = ""
    reasons: list[str] = []
    contexts: list[InjectedContext] = []
    notices: list[str] = []
    details: list[JsonObject] = []
    call: str = ""
    lane: str = ""
    branch: str = ""
    repo: str = ""


@event_kind("answer.undelivered")
class AnswerUndelivered(Payload):
    """An answer did not reach the agent: it came too late, the hook was ended, or the daemon could not be reached."""

    of: int = 0
    of_kind: str = ""
    verdict: str = ""
    """What was answered; where nobody could be asked, what would have been answered when it was found."""
    reasons: list[str] = []
    instead: str = ""
    """What the agent received: `deny` (a requirement with `when_unsure: deny`); empty: nothing, the call was let through."""
    call: str = ""
    branch: str = ""
    repo: str = ""


@event_kind("daemon.started")
class DaemonStarted(Payload):
    """The daemon began to serve."""

    version: str = ""
    pid: int = 0
    failing_since: int = 0
    """When the first start before this one failed, in ms; 0 where none did."""


@event_kind("daemon.stopped")
class DaemonStopped(Payload):
    """The daemon stopped in good order."""

    reason: str = ""


@event_kind("spool.drained")
class SpoolDrained(Payload):
    """Deliveries that waited in the spool were taken in."""

    taken: int = 0
    known: int = 0
    torn: int = 0


@event_kind("store.restored")
class StoreRestored(Payload):
    """The database was set aside and a backup restored; `lost` counts the events that are gone."""

    quarantine: str = ""
    backup: str = ""
    backup_head: int = 0
    shared_head: int = -1
    """The last event that the log before has too; -1 if that is unknown."""
    salvaged: int = 0
    lost: int = 0
    asked: bool = False
    """By a person, and not because the database was damaged."""
    tombstones: int = 0
    """Events of the restored log whose content is erased: what recorded their erasure may be lost."""

    @property
    def kept(self) -> int:
        """The last event from before that is still in the log."""
        return self.backup_head if self.shared_head < 0 else self.shared_head


@event_kind("state.rebuilt")
class StateRebuilt(Payload):
    """Documents were rebuilt from the log."""

    features: list[str] = []
    events: int = 0


class Trouble(Record):
    """Something that keeps Holdfast from doing all its work."""

    name: str = ""
    text: str = ""
    fix: str = ""
    since: int = 0
    """In ms."""


@event_kind("health.changed")
class HealthChanged(Payload):
    """What is wrong with Holdfast has changed; no troubles: all is well again."""

    troubles: list[Trouble] = []


@event_kind("job.failed")
class JobFailed(Payload):
    """A background job failed for good."""

    job: str = ""
    id: int = 0
    error: str = ""


@event_kind("event.erased")
class EventErased(Payload):
    """An event that was erased: its number, key and time are left."""


@event_kind("erase.finished")
class EraseFinished(Payload):
    """Something was erased for good, and the store was searched for it afterwards. Says how much, never what."""

    id: str = ""
    what: str = ""
    events: int = 0
    rows: int = 0
    copies: int = 0
    files: int = 0
    removed: int = 0
    tombstones: int = 0
    """Events of the whole log whose content is erased, those of earlier erasures included."""


@event_kind("note.added")
class NoteAdded(Payload):
    """A person left a note in the log."""

    text: str = ""
