"""The event, the only source of truth; the payload of each kind is in `core.kinds`."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.ids import delivery_key, shared_session_key
from holdfast.core.kinds import KINDS, HookPayload, Payload, UntypedPayload, build_payload, current_version

BODY_LIMIT = 256 * 1024
"""Bytes of the agent's payload kept with an event."""

EventData = Any
"""Always a `Payload` after construction; a decoder cannot know the kind beforehand, so `__post_init__` parses it."""

PAYLOADS = (Payload, UntypedPayload)


class Event(msgspec.Struct, kw_only=True, frozen=True):
    """`data` holds the normalised fields that reducers read and that are kept for ever; `body` expires."""

    key: str
    kind: str
    at: int
    session: str = ""
    project: str = ""
    agent: str = ""
    tool: str = ""
    data: EventData = None
    body: bytes = b""
    body_size: int = 0
    body_hash: str = ""
    seq: int = 0

    def __post_init__(self) -> None:
        """Plain fields from adapters, importers and decoders become the payload of the kind."""
        data = self.data
        if not isinstance(data, PAYLOADS):
            typed = build_payload(self.kind, data) if isinstance(data, Mapping) else _empty_payload(self.kind)
            msgspec.structs.force_setattr(self, "data", typed)

    @property
    def version(self) -> int:
        """The current payload version of its kind."""
        return current_version(self.kind)

    def get(self, name: str, default: Any = None) -> Any:
        return self.data.get(name, default)


def derived_event(of: Event, payload: Payload) -> Event:
    """Build an event that follows from another. The engine assigns its key and appends both together."""
    return Event(
        key=f"{of.key}/{payload.KIND}", kind=payload.KIND, at=of.at, session=of.session, project=of.project,
        agent=of.agent, tool=of.tool, data=payload,
    )  # fmt: skip


def own_event(
    payload: Payload, at: int, *, session: str = "", project: str = "", agent: str = "", once: object = None
) -> Event:
    """Build an event of a command or job. Events with the same `once` are stored once."""
    return Event(
        key=delivery_key(at) if once is None else _once_key(payload.KIND, session or project, once),
        kind=payload.KIND, at=at, session=session, project=project, agent=agent, data=payload,
    )  # fmt: skip


def _once_key(kind: str, about: str, once: object) -> str:
    digest = hashlib.sha256(about.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return f"{kind}/{digest}/{once}"


def _empty_payload(kind: str) -> Payload | UntypedPayload:
    payload = KINDS.get(kind)
    return payload() if payload else UntypedPayload()


# Deduplication of one happening that two registrations of our hooks report.


def dedupe_key(event: Event) -> str:
    """Identify the happening; events without a key are never duplicates."""
    return event.data.dedupe_key if isinstance(event.data, HookPayload) else ""


WINDOW_MS = 10_000
"""Two hooks of one happening start together, but may arrive this far apart on a busy machine."""

AT_ONCE, AT_ONCE_MS = "~", 100
"""Prefix of happenings that may really repeat. No model answers within this time."""

KEPT = 4_096
REMEMBERED = 256
"""How many of the newest events are read when the memory is rebuilt."""


def is_within_window(same: str, before: int | None, at: int) -> bool:
    return before is not None and abs(at - before) <= (AT_ONCE_MS if same[0] == AT_ONCE else WINDOW_MS)


class Deduplicator:
    """Remembers committed happenings. A transaction keeps its own until it commits."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def knows(self, same: str, at: int) -> bool:
        return is_within_window(same, self._seen.get(same), at)

    def add(self, keys: Iterable[tuple[str, int]]) -> None:
        self._seen.update(keys)
        # Dicts keep insertion order, so the oldest goes first.
        while len(self._seen) > KEPT:
            del self._seen[next(iter(self._seen))]

    def begin_anew(self, events: Iterable[Event]) -> None:
        self._seen.clear()
        self.add((key, event.at) for event in events if (key := dedupe_key(event)))


# Two agents may use the same session id (numbered sessions, copied settings). The first keeps it; the others get a key
# of their own, so that records are never mixed.

AgentsOfSessions = Callable[[list[str]], Mapping[str, str]]
"""Sessions mapped to the agent of their first event in the log; unknown sessions are absent."""


class SessionOwners:
    """Knows which agent owns each session. A session not yet in the log belongs to the first that uses it."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}

    def learn(self, events: Iterable[Event], look_up: AgentsOfSessions) -> None:
        """Look up all new sessions of a batch in one query."""
        new = {event.session: event.agent for event in events if event.session not in self._agents and is_owned(event)}
        if new:
            # The log takes precedence over the order within this batch.
            self._agents |= {**new, **look_up(list(new))}
            while len(self._agents) > KEPT:
                del self._agents[next(iter(self._agents))]

    def keep_apart(self, event: Event) -> Event:
        owner = self._agents.get(event.session)
        if owner is None or owner == event.agent or not is_owned(event):
            return event
        return msgspec.structs.replace(event, session=shared_session_key(event.session, event.agent))

    def forget(self) -> None:
        self._agents.clear()


def is_owned(event: Event) -> bool:
    """Return whether the agent itself reported it. Our own events already carry the session's key."""
    data = event.data
    if not event.session or not event.agent or not isinstance(data, HookPayload):
        return False
    # Read from a transcript by our own job, unless an importer delivered it.
    return bool(data.imported) or event.kind != "model.answered"
