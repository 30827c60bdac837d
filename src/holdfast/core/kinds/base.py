"""What an event kind is: a typed payload with a version, registered once under its name."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import msgspec

JsonObject = dict[str, Any]


class Record(msgspec.Struct, omit_defaults=True):
    """A part of a payload. A field at its default is not stored, and counts as absent."""

    def as_dict(self) -> JsonObject:
        """The fields that are set, under the names they have in the log."""
        fields: JsonObject = msgspec.to_builtins(self)
        return fields

    def get(self, name: str, default: Any = None) -> Any:
        """One field by name, where the name is data itself (a template, a search); `default` where it is absent."""
        value = getattr(self, name, None)
        # Every default is empty or None: an empty value is set only where None is the default (`ok`, `exit_code`).
        return value if value or (value is not None and name in _nullable_fields(type(self))) else default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __getitem__(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def keys(self) -> list[str]:
        return [name for name in self.__struct_fields__ if name in self]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def items(self) -> list[tuple[str, Any]]:
        return [(name, self[name]) for name in self.keys()]


class Payload(Record, omit_defaults=True, kw_only=True):
    """The small normalised fields of one event."""

    KIND: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1


class UntypedPayload(dict[str, Any]):
    """Of a kind that this version does not know: kept as it was written. Answers like a `Payload`."""

    KIND: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1

    def as_dict(self) -> JsonObject:
        return dict(self)


P = TypeVar("P", bound=Payload)
AnyPayload = Payload | UntypedPayload

KINDS: dict[str, type[Payload]] = {}
"""Every kind that can be written, by name. `docs/events.md` is generated from it."""

Upcaster = Callable[[Mapping[str, Any]], Mapping[str, Any]]
UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""(kind, version it was written in) → how its fields read one version later. Old rows are never rewritten."""


def event_kind(name: str, version: int = 1) -> Callable[[type[P]], type[P]]:
    """Registers a payload type. Its docstring is the kind's description in `docs/events.md`.

    Raise `version` when the stored fields change their meaning, and add the upcaster from the version before.
    """

    def register(payload: type[P]) -> type[P]:
        payload.KIND, payload.VERSION = name, version
        KINDS[name] = payload
        return payload

    return register


def current_version(kind: str) -> int:
    payload = KINDS.get(kind)
    return payload.VERSION if payload else 1


def build_payload(kind: str, fields: Mapping[str, Any]) -> AnyPayload:
    """From plain fields, e.g. of an adapter. A field that does not fit its type is left out, never an error:
    agents send odd values, and an event with a gap is better than none."""
    payload = KINDS.get(kind)
    if payload is None:
        return UntypedPayload(fields)
    try:
        return msgspec.convert(fields, payload)
    except (msgspec.ValidationError, TypeError):
        return _build_leniently(payload, fields)


def decode_payload(kind: str, version: int, raw: bytes) -> AnyPayload:
    """As the log has it; what was written by an older version is brought up to date first."""
    payload = KINDS.get(kind)
    if payload is None:
        return UntypedPayload(msgspec.json.decode(raw))
    if version == payload.VERSION:
        try:
            return _payload_decoder(payload).decode(raw)
        except msgspec.ValidationError:
            # A field does not fit today's type: below it is left out and the others stay.
            pass
    return build_payload(kind, upcast_fields(kind, version, msgspec.json.decode(raw)))


def upcast_fields(kind: str, version: int, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only from the version that wrote it up to today's: never on what is up to date already."""
    for written in range(version, current_version(kind)):
        step = UPCASTERS.get((kind, written))
        fields = step(fields) if step else fields
    return fields


encode_payload = msgspec.json.Encoder(enc_hook=str).encode
_DECODERS: dict[type[Payload], msgspec.json.Decoder[Any]] = {}


def _payload_decoder(payload: type[P]) -> msgspec.json.Decoder[P]:
    decoder = _DECODERS.get(payload)
    if decoder is None:
        decoder = _DECODERS[payload] = msgspec.json.Decoder(payload)
    return decoder


@lru_cache(None)
def _nullable_fields(record: type[Record]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(record) if field.default is None)


def _build_leniently(payload: type[P], fields: Mapping[str, Any]) -> P:
    valid_fields: JsonObject = {}
    for field in msgspec.structs.fields(payload):
        if field.encode_name not in fields:
            continue
        try:
            valid_fields[field.name] = msgspec.convert(fields[field.encode_name], field.type, str_keys=True)
        except (msgspec.ValidationError, TypeError):
            continue
    return payload(**valid_fields)
