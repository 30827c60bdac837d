"""The documents as they were when an event was decided: what the log says of this project up to it, replayed."""

import heapq
from collections.abc import Iterator

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import Doc, EventQuery, Reader, Ref
from holdfast.features.gates.kinds import KINDS, SUBSCRIBED_KINDS
from holdfast.features.gates.reduce import reduce
from holdfast.features.gates.refs import EVERYWHERE, FACTS, PAUSE, REGISTRY, SESSION, branch_ref, keys, place

PAGE = 2_000


class Then:
    def __init__(self) -> None:
        self.docs: dict[Ref, Doc] = {}

    def get(self, kind: str, key: str) -> Doc | None:
        return self.docs.get(Ref(kind, key))


def state_before(reader: Reader, event: Event) -> Then:
    """After the event itself, before what was answered to it: as `decide` saw it."""
    then, wanted, last = Then(), _wanted(event), 0
    for one in _told_before(reader, event):
        if one.seq == last:
            continue
        last = one.seq
        for ref in keys(one):
            if ref in wanted and (doc := reduce(then.docs.get(ref), one, ref)) is not None:
                then.docs[ref] = doc
    return then


def _told_before(reader: Reader, event: Event) -> Iterator[Event]:
    """What happened in this project, and what the gates themselves said anywhere: a branch is shared by worktrees."""
    here = EventQuery(
        kinds=tuple(sorted(SUBSCRIBED_KINDS - set(KINDS))), project=event.project, before=event.seq + 1, limit=PAGE
    )
    said = EventQuery(kinds=tuple(sorted(KINDS)), before=event.seq + 1, limit=PAGE)
    return heapq.merge(_pages(reader, here), _pages(reader, said), key=lambda one: one.seq)


def _pages(reader: Reader, query: EventQuery) -> Iterator[Event]:
    after = 0
    while page := reader.events(msgspec.structs.replace(query, after=after)):
        yield from page
        after = page[-1].seq


def _wanted(event: Event) -> set[Ref]:
    pauses = {Ref(PAUSE, where) for where in (EVERYWHERE, place(event), f"session:{event.session}")}
    return {Ref(SESSION, event.session), Ref(FACTS, event.project), branch_ref(event), REGISTRY} | pauses
