"""The event: the only truth. What its payload holds, by kind, is in `core.kinds`."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.ids import delivery_key
from holdfast.core.kinds import KINDS, Payload, UntypedPayload, build_payload, current_version

BODY_LIMIT = 256 * 1024
"""Bytes of the agent's own payload that are kept with an event."""

EventData = Any
"""Always a `Payload` once the event is made: a decoder cannot know the kind beforehand, so `__post_init__` reads it."""


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
        if not isinstance(data, Payload | UntypedPayload):
            typed = build_payload(self.kind, data) if isinstance(data, Mapping) else _empty(self.kind)
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


def _empty(kind: str) -> Payload | UntypedPayload:
    payload = KINDS.get(kind)
    return payload() if payload else UntypedPayload()
