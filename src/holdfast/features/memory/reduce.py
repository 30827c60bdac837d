"""Events → documents. Pure."""

from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.ports import Doc, Ref
from holdfast.features.memory import observation, project, session
from holdfast.features.memory.model import (
    HANDOFF,
    KINDS,
    OBSERVATION,
    PROJECT,
    observation_ref,
    project_ref,
    session_ref,
    strings,
)  # fmt: skip

LISTENS = frozenset((*KINDS, *session.STEPS, "tool.started", "session.summarised"))


def keys(event: Event) -> Iterable[Ref]:
    kind = event.kind
    if kind == "decision.made":
        yield from _told(event)
        return
    if event.session and kind in session.STEPS:
        yield session_ref(event.session)
    if kind in observation.STEPS:
        for identity in dict.fromkeys((str(event.get("id") or ""), *strings(event.get("supersedes")))):
            yield observation_ref(identity)
    if event.project and kind in project.STEPS:
        yield project_ref(event.project)


def _told(event: Event) -> Iterable[Ref]:
    contexts = session.told(event)
    if contexts and event.session:
        yield session_ref(event.session)
        if event.project and any(c.get("source") == HANDOFF for c in contexts):
            yield project_ref(event.project)


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == OBSERVATION:
        return observation.reduce(doc, event, ref.key)
    return project.reduce(doc, event) if ref.kind == PROJECT else session.reduce(doc, event)


def facets(ref: Ref, doc: Doc) -> tuple[str, str, int]:
    status = doc.get("status", "") if ref.kind == OBSERVATION else ""
    return doc.get("project", ""), status, doc.get("at", 0)
