"""The event: the only truth. What its payload holds, by kind, is in `core.kinds`."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.ids import delivery_key, shared_session_key
from holdfast.core.kinds import KINDS, HookPayload, Payload, UntypedPayload, build_payload, current_version

BODY_LIMIT = 256 * 1024
"""Bytes of the agent's own payload that are kept with an event."""

EventData = Any
"""Always a `Payload` once the event is made: a decoder cannot know the kind beforehand, so `__post_init__` reads it."""

PAYLOADS = (Payload, UntypedPayload)


class Event(msgspec.Struct, kw_only=True, frozen=True):
    """`data` holds the small normalised fields that reducers read and that are kept for ever; `body` expires."""

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
        """Plain fields, as adapters, importers and decoders bring them, become the payload of the kind."""
        data = self.data
        if not isinstance(data, PAYLOADS):
            typed = build_payload(self.kind, data) if isinstance(data, Mapping) else _empty_payload(self.kind)
            msgspec.structs.force_setattr(self, "data", typed)

    @property
    def version(self) -> int:
        """Of the payload as it is written: today's version of its kind."""
        return current_version(self.kind)

    def get(self, name: str, default: Any = None) -> Any:
        return self.data.get(name, default)


def derived_event(of: Event, payload: Payload) -> Event:
    """What an event means, as an event of its own. The engine gives it its key and appends both together."""
    return Event(
        key=f"{of.key}/{payload.KIND}", kind=payload.KIND, at=of.at, session=of.session, project=of.project,
        agent=of.agent, tool=of.tool, data=payload,
    )  # fmt: skip


def own_event(
    payload: Payload, at: int, *, session: str = "", project: str = "", agent: str = "", once: object = None
) -> Event:
    """What a command or a job found out or was told. The same thing found twice (`once`) is one event."""
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


# The same happening told twice, by two registrations of our hooks, is one event: which ones were told just now.


def dedupe_key(event: Event) -> str:
    """Which happening an event tells of; events without one are never taken for another."""
    return event.data.dedupe_key if isinstance(event.data, HookPayload) else ""


WINDOW_MS = 10_000
"""Two hooks of one happening start together; how far apart they come is up to the agent and a busy machine."""

AT_ONCE, AT_ONCE_MS = "~", 100
"""How the name of a happening begins that may really happen again: no model answers within this time."""

KEPT = 4_096
REMEMBERED = 256
"""How many of the log's last events are looked at when memory begins anew."""


def is_within_window(same: str, before: int | None, at: int) -> bool:
    return before is not None and abs(at - before) <= (AT_ONCE_MS if same[0] == AT_ONCE else WINDOW_MS)


class Deduplicator:
    """What is committed. What a transaction is about to add it keeps itself until then."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def knows(self, same: str, at: int) -> bool:
        return is_within_window(same, self._seen.get(same), at)

    def add(self, keys: Iterable[tuple[str, int]]) -> None:
        self._seen.update(keys)
        # A dict keeps the order of insertion: the oldest goes first.
        while len(self._seen) > KEPT:
            del self._seen[next(iter(self._seen))]

    def begin_anew(self, events: Iterable[Event]) -> None:
        self._seen.clear()
        self.add((key, event.at) for event in events if (key := dedupe_key(event)))


# Two agents may use one session id (scripts that number their sessions, copied settings). The first keeps it, the others
# get a key of their own, so that no record is mixed.

AgentsOfSessions = Callable[[list[str]], Mapping[str, str]]
"""Sessions → the agent of the first event that each of them has in the log; those that have none are absent."""


class SessionOwners:
    """Which agent each session belongs to, as the log says; sessions that are in no log yet belong to who comes first."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}

    def learn(self, events: Iterable[Event], look_up: AgentsOfSessions) -> None:
        """One question for all sessions of a batch that were not met before."""
        new = {event.session: event.agent for event in events if event.session not in self._agents and is_owned(event)}
        if new:
            # What the log says goes before who comes first in this batch.
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
    """Whether the agent itself tells it. What Holdfast found out carries the key of its session already."""
    data = event.data
    if not event.session or not event.agent or not isinstance(data, HookPayload):
        return False
    # Read from a transcript by a job of ours, unless an importer brought it.
    return bool(data.imported) or event.kind != "model.answered"
