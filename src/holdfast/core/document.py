"""State documents: how each kind is addressed, decoded and listed."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from holdfast.core.ports import Reader, Ref, StateQuery

if TYPE_CHECKING:
    from holdfast.core.feature import State

D = TypeVar("D")

encode = msgspec.json.Encoder(enc_hook=str).encode


class DocumentType(Generic[D]):
    """How documents of one kind are addressed, decoded and listed: `SESSION = DocumentType("session", Session)`.

    A feature declares its types in `Feature.documents`; undeclared kinds are plain dicts.
    """

    def __init__(self, kind: str, type_: type[D]) -> None:
        self.kind, self.type = kind, type_
        self._decoder = msgspec.json.Decoder(type_)

    def ref(self, key: str) -> Ref:
        return Ref(self.kind, key)

    def decode(self, raw: bytes) -> D:
        return self._decoder.decode(raw)

    def get(self, state: "State", key: str) -> D | None:
        """Return the document as it is after the event being handled."""
        document: D | None = state.get(self.kind, key)
        return document

    def load(self, reader: Reader, key: str) -> D | None:
        """Return the document as committed."""
        raw = reader.document(self.ref(key))
        return None if raw is None else self.decode(raw)

    def list(self, reader: Reader, *, limit: int = 50, **query: Any) -> list[tuple[str, D]]:
        """Return (key, document) pairs, newest first; `query` as in `StateQuery`."""
        rows = reader.documents(StateQuery(kind=self.kind, limit=limit, **query))
        return [(key, self.decode(raw)) for key, raw in rows]


PLAIN = DocumentType("", dict)
"""For kinds whose feature declares no type."""


# Small dicts that keep the newest entries: documents are bounded, lists are queries on the log (decision 7).


def with_newest(entries: dict[str, Any], name: str, value: Any, most: int) -> dict[str, Any]:
    """Return a new dict with `name` last; the oldest entries are dropped. Order is age."""
    updated = {key: one for key, one in entries.items() if key != name} if name in entries else dict(entries)
    updated[name] = value
    while len(updated) > most:
        del updated[next(iter(updated))]
    return updated


def without_keys(entries: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    gone = set(names)
    return {key: one for key, one in entries.items() if key not in gone}


def map_values(entries: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    return {key: change(one) for key, one in entries.items()}
