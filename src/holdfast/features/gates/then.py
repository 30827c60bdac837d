"""The documents as they were when an event was decided: the log up to it, replayed for the few that matter."""

from holdfast.core.event import Event
from holdfast.core.ports import Doc, EventQuery, Reader, Ref
from holdfast.features.gates.kinds import LISTENS
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
    then, after = Then(), 0
    wanted = _wanted(event)
    while page := reader.events(EventQuery(kinds=tuple(LISTENS), after=after, before=event.seq + 1, limit=PAGE)):
        for one in page:
            for ref in keys(one):
                if ref in wanted and (doc := reduce(then.docs.get(ref), one, ref)) is not None:
                    then.docs[ref] = doc
        after = page[-1].seq
    return then


def _wanted(event: Event) -> set[Ref]:
    pauses = {Ref(PAUSE, where) for where in (EVERYWHERE, place(event), f"session:{event.session}")}
    mine = {Ref(SESSION, event.session), Ref(FACTS, event.project), branch_ref(event), REGISTRY}
    return mine | pauses
