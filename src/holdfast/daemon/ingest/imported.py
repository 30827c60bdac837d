"""Accepts imported events: which kinds and sessions are allowed."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import BODY_LIMIT, Event
from holdfast.core.feature import Feature
from holdfast.core.ids import bounded_name, is_identifier, shared_session_key, short_digest
from holdfast.core.kinds import ENGINE_KINDS, KINDS, current_version, decode_payload
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.transaction import Arrival

ScrubFields = Callable[[bytes], bytes]
Clean = Callable[[str], str]

MOST_EVENTS = 5_000
LONGEST_KEY = 64


class _Ids(msgspec.Struct):
    """The ids in a payload, which text redaction would take for secrets."""

    lane: Any = ""
    turn: Any = ""
    call: Any = ""
    answer: Any = ""


_decode_ids = msgspec.json.Decoder(_Ids).decode


class ReceivedEvent(msgspec.Struct, kw_only=True):
    """An event as sent. Its data is decoded once, when the kind is known, into the kind's type."""

    key: str
    kind: str
    at: int
    session: str = ""
    project: str = ""
    agent: str = ""
    tool: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")
    body: bytes = b""
    """A part of the hook's payload that `data` has only the ends of."""

    def as_event(self, scrub_fields: ScrubFields, clean_id: Clean, clean_word: Clean) -> Event:
        return Event(
            key=self.key, kind=self.kind, at=self.at, session=clean_id(self.session), project=clean_word(self.project),
            agent=clean_id(self.agent), tool=clean_id(self.tool), data=self._payload(scrub_fields, clean_id),
            **self._cleaned_body(scrub_fields),
        )  # fmt: skip

    def _cleaned_body(self, scrub_fields: ScrubFields) -> dict[str, Any]:
        if not self.body or len(self.body) > BODY_LIMIT:
            return {}
        body = scrub_fields(self.body)
        return {"body": body, "body_size": len(body)}

    def _payload(self, scrub_fields: ScrubFields, clean_id: Clean) -> Any:
        # Anything but an object has no fields and gives the kind's empty payload.
        if not (raw := bytes(self.data)).startswith(b"{"):
            return None
        # Before decoding: afterwards it would be encoded and decoded again.
        payload = decode_payload(self.kind, current_version(self.kind), scrub_fields(raw))
        for name, value in msgspec.structs.asdict(_decode_ids(raw)).items():
            if isinstance(value, str) and isinstance(before := getattr(payload, name, None), str) and value != before:
                setattr(payload, name, clean_id(value))
        return payload


decode_received = msgspec.json.Decoder(list[ReceivedEvent]).decode


def accept_imported_events(raw_events: Any, features: Sequence[Feature], scrub_fields: ScrubFields) -> list[Arrival]:
    """All or none: a batch with anything strange is the sender's mistake."""
    # The same folder and session come with every event.
    clean_id = cache(lambda text: clean_identifier(text, scrub_fields))
    clean_word = cache(lambda text: clean_text(text, scrub_fields))
    try:
        events = [one.as_event(scrub_fields, clean_id, clean_word) for one in decode_received(raw_events)]
    except (msgspec.DecodeError, msgspec.ValidationError, TypeError) as error:
        raise CommandRefused(f"these are no events: {error}") from error
    if len(events) > MOST_EVENTS:
        raise CommandRefused(f"more than {MOST_EVENTS} events at once", fix="Send them in smaller batches.")
    # Only the engine may write its own kinds, such as decisions.
    allowed_kinds = (KINDS.keys() - ENGINE_KINDS.keys()).union(*(feature.kinds for feature in features))
    for event in events:
        if event.kind not in allowed_kinds:
            raise CommandRefused(f"there is no kind of event {event.kind!r}")
        # Keys of derived events contain `/`, so an import cannot take the place of one.
        if not (event.key.isalnum() and event.key.isascii() and len(event.key) <= LONGEST_KEY):
            raise CommandRefused("a key is up to 64 letters and digits")
    return [Arrival(event) for event in events]


def clean_text(text: str, scrub_fields: ScrubFields) -> str:
    """Redact a single string, such as a folder."""
    cleaned: str = msgspec.json.decode(scrub_fields(msgspec.json.encode(text))) if text else text
    return cleaned


def clean_identifier(text: str, scrub_fields: ScrubFields) -> str:
    """Redact an id as an id, where only keys of known services are secrets.

    An id that loses a secret keeps a digest, so that two sessions never merge.
    """
    name = bounded_name(text)
    if not name:
        return name
    field = {"session_id": name} if is_identifier(name) else {"text": name}
    cleaned: str = next(iter(msgspec.json.decode(scrub_fields(msgspec.json.encode(field))).values()))
    return name if cleaned == name else f"{cleaned}#{short_digest(text)}"


def told_by_hooks(reader: Reader, agent: str, session: str) -> bool:
    """Return whether hooks of this agent reported the session, under its id or its own key."""
    for key in (session, shared_session_key(session, agent)):
        first = reader.events(EventQuery(session=key, limit=1))
        # Another agent's session with the same id says nothing about this one.
        if first and first[0].agent in ("", agent):
            return not first[0].data.get("imported")
    return False
