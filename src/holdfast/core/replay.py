"""Rebuilds state from the log, shows it as it was, and proves that both agree (P5)."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence

import msgspec

from holdfast.core.document import encode
from holdfast.core.event import Event
from holdfast.core.feature import Feature, version_key
from holdfast.core.ports import Doc, Reader, Ref, StateQuery, Store
from holdfast.core.state import state_row

Progress = Callable[[int, int], None]
"""(events done, total)"""

EVERY = 1000


def fold_events(feature: Feature, events: Iterable[Event], docs: dict[Ref, Doc] | None = None) -> dict[Ref, Doc]:
    """Apply events to one feature's documents, without an engine."""
    docs = {} if docs is None else docs
    for event in events:
        if feature.subscribes_to(event.kind):
            _apply_event(feature, event, docs)
    return docs


def _apply_event(feature: Feature, event: Event, docs: dict[Ref, Doc]) -> None:
    try:
        for ref in feature.keys(event):
            after = feature.reduce(docs.get(ref), event, ref)
            if after is not None:
                docs[ref] = after
    except Exception:  # noqa: S110 - the engine left the document alone too, and reported it then
        pass


def document_at(feature: Feature, reader: Reader, ref: Ref, seq: int) -> Doc | None:
    """The document right after event `seq`."""
    # Skips other documents that these events touch.
    mine = dataclasses.replace(feature, keys=lambda event: [r for r in feature.keys(event) if r == ref])
    until = itertools.takewhile(lambda event: event.seq <= seq, _document_events(feature, reader, ref))
    return fold_events(mine, until).get(ref)


def _document_events(feature: Feature, reader: Reader, ref: Ref) -> Iterable[Event]:
    part = feature.stream(ref)
    return reader.replay(session=part.get("session", ""), project=part.get("project", ""))


class Rebuild:
    """Reads the log next to the running engine, then catches up inside one transaction and replaces the documents."""

    def __init__(self, features: Sequence[Feature], reader: Reader, progress: Progress | None = None) -> None:
        self.features, self.reader, self.progress = features, reader, progress
        self.docs: dict[str, dict[Ref, Doc]] = {f.name: {} for f in features}
        self.seq = 0

    def read(self, total: int | None = None) -> None:
        total = self.reader.head() if total is None else total
        for event in self.reader.replay(after=self.seq):
            self.apply_event(event)
            if self.progress and self.seq % EVERY == 0:
                self.progress(self.seq, max(total, self.seq))
        if self.progress:
            self.progress(self.seq, max(total, self.seq))

    def apply_event(self, event: Event) -> None:
        for feature in self.features:
            fold_events(feature, [event], self.docs[feature.name])
        self.seq = event.seq

    def write(self, store: Store, last: Event | None = None) -> None:
        """Write the documents, inside a transaction that adds `last`, which `reader` cannot see yet."""
        for event in self.reader.replay(after=self.seq):
            self.apply_event(event)
        with_it = [msgspec.structs.replace(last, seq=self.seq + 1)] if last else []
        for feature in self.features:
            docs = fold_events(feature, with_it, dict(self.docs[feature.name]))
            store.drop_states(feature.name)
            store.save([state_row(feature, ref, doc) for ref, doc in docs.items()])
            store.set_meta(version_key(feature), str(feature.version))

    def differences(self) -> list[str]:
        """Documents whose stored form differs from the log."""
        return [line for feature in self.features for line in self._differences(feature)]

    def _differences(self, feature: Feature) -> Iterable[str]:
        # Through JSON and back, as the store does: tuples become lists.
        expected = {ref: msgspec.json.decode(encode(doc)) for ref, doc in self.docs[feature.name].items()}
        for stored in self.reader.rows(feature.name):
            if expected.pop(stored.ref, None) != msgspec.json.decode(stored.doc):
                yield f"{feature.name}: {stored.ref.kind} {stored.ref.key} differs"
        yield from (f"{feature.name}: {ref.kind} {ref.key} is missing" for ref in expected)


def sample_differences(features: Sequence[Feature], reader: Reader, newest: int = 2) -> list[str]:
    """Compare the newest documents of each kind, for as much log as is read."""
    current = [feature for feature in features if reader.meta(version_key(feature)) == str(feature.version)]
    return [
        f"{feature.name}: {ref.kind} {ref.key} differs"
        for feature in current
        for kind in feature.documents
        for key, _doc in reader.documents(StateQuery(kind=kind.kind, limit=newest))
        if feature.stream(ref := Ref(kind.kind, key)) and _differs(feature, reader, ref)
    ]


def _differs(feature: Feature, reader: Reader, ref: Ref) -> bool:
    before = reader.document(ref)
    expected = document_at(feature, reader, ref, reader.head())
    # A document that changed meanwhile proves nothing.
    if before is None or before != reader.document(ref):
        return False
    return expected is None or msgspec.json.decode(encode(expected)) != msgspec.json.decode(before)


def outdated_features(features: Sequence[Feature], reader: Reader) -> list[Feature]:
    """Features whose rules changed since their documents were built."""
    return [f for f in features if reader.meta(version_key(f)) != str(f.version)]
