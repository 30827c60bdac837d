"""Documents in memory: a bounded cache of committed ones, and the working set of one transaction."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from holdfast.core.document import PLAIN, DocumentType, encode
from holdfast.core.feature import Feature
from holdfast.core.ports import Doc, Ref, StateRow, Store

HOT_DOCUMENTS = 1500
NO_FEATURES: Mapping[str, Any] = MappingProxyType({})


class HotDocuments:
    """A least-recently-used cache. Missing documents are cached as None: most lookups of a new session find nothing."""

    def __init__(self, limit: int = HOT_DOCUMENTS) -> None:
        self._limit = limit
        self.docs: OrderedDict[Ref, Doc | None] = OrderedDict()

    def put(self, ref: Ref, doc: Doc | None) -> None:
        self.docs[ref] = doc
        self.docs.move_to_end(ref)
        if len(self.docs) > self._limit:
            self.docs.popitem(last=False)

    def forget(self, refs: Iterable[Ref] | None = None) -> None:
        if refs is None:
            self.docs.clear()
            return
        for ref in refs:
            self.docs.pop(ref, None)


class WorkingSet:
    """The documents as they will be if this transaction commits. Nothing enters the cache before."""

    def __init__(
        self, store: Store, hot: HotDocuments, types: Mapping[str, DocumentType[Any]] = MappingProxyType({})
    ) -> None:
        self._store, self._hot, self._types = store, hot, types
        self.docs: dict[Ref, Doc | None] = {}
        self.changed: dict[Ref, Feature] = {}

    def prefetch(self, refs: Iterable[Ref]) -> None:
        # Each document once, though many events of a batch concern the same ones.
        missing = dict.fromkeys(refs).keys() - self.docs.keys() - self._hot.docs.keys()
        if missing:
            rows = self._store.load(list(missing))
            for ref in missing:
                raw = rows.get(ref)
                self.docs[ref] = None if raw is None else self._types.get(ref.kind, PLAIN).decode(raw)

    def get(self, ref: Ref) -> Doc | None:
        docs, hot = self.docs, self._hot.docs
        if ref in docs:
            return docs[ref]
        if ref in hot:
            hot.move_to_end(ref)
            docs[ref] = hot[ref]
        else:
            self.prefetch((ref,))
        return docs[ref]

    def put(self, ref: Ref, doc: Doc, feature: Feature) -> None:
        self.docs[ref] = doc
        self.changed[ref] = feature

    def rows(self) -> list[StateRow]:
        return [state_row(feature, ref, self.docs[ref]) for ref, feature in self.changed.items()]

    def documents(self) -> list[tuple[Feature, Ref, Doc]]:
        return [(feature, ref, self.docs[ref]) for ref, feature in self.changed.items()]

    def keep_committed(self) -> None:
        """After the commit, move the working documents to the cache."""
        for ref, doc in self.docs.items():
            self._hot.put(ref, doc)


def state_row(feature: Feature, ref: Ref, doc: Doc) -> StateRow:
    project, status, at = feature.facets(ref, doc)
    return StateRow(ref, feature.name, feature.version, project or "", status or "", int(at or 0), encode(doc))


class FeatureState:
    """A feature's view of the working set (`State` in `decide` and `enqueue`)."""

    def __init__(
        self,
        work: WorkingSet,
        owners: Mapping[str, str] = NO_FEATURES,
        behind: Mapping[str, Any] = NO_FEATURES,
        catch_up: Callable[[str], None] | None = None,
    ) -> None:
        self._work, self._owners, self._behind, self._catch_up = work, owners, behind, catch_up

    def get(self, kind: str, key: str) -> Doc | None:
        # A document without a declared owner may be anybody's.
        if self._behind and self._catch_up and ((owner := self._owners.get(kind, "")) in self._behind or not owner):
            self._catch_up(owner)
        ref = Ref(kind, key)
        docs = self._work.docs
        # Looked up here: every decision reads some twenty documents.
        return docs[ref] if ref in docs else self._work.get(ref)
