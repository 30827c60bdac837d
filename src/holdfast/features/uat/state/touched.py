"""Which documents an event touches."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import Facets, plain_facets
from holdfast.core.kinds.uat_events import UatPayload
from holdfast.core.ports import Doc, Ref
from holdfast.features.uat.settings import ARCHIVED, CATALOGUE, CUTS_OFF, ENDINGS, PLAN, RUN, SESSION
from holdfast.features.uat.state import Run

_SESSION_KINDS = frozenset(
    ("prompt.submitted", "turn.ended", "uat.started", "uat.ended", "uat.suggested", *ENDINGS, *CUTS_OFF)
)  # fmt: skip


def keys(event: Event) -> Iterator[Ref]:
    if event.kind == "uat.scenarios":
        yield Ref(CATALOGUE, event.project)
        return
    run = run_of(event)
    if run:
        yield Ref(RUN, run)
        if event.kind == "uat.started":
            yield Ref(PLAN, run)
    if event.kind in _SESSION_KINDS and event.session:
        yield Ref(SESSION, event.session)


def run_of(event: Event) -> str:
    """The run an event of this feature belongs to."""
    return event.data.uat if isinstance(event.data, UatPayload) else ""


def facets(ref: Ref, doc: Doc) -> Facets:
    project, status, at = plain_facets(ref, doc)
    return project, ARCHIVED if isinstance(doc, Run) and doc.archived else status, at


def stream(ref: Ref) -> dict[str, str]:
    """A run's events are those of its session, but its name does not say which: the whole log is looked through."""
    if ref.kind == SESSION:
        return {"session": ref.key}
    return {"project": ref.key} if ref.kind == CATALOGUE else {}
