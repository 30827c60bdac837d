"""Events → documents. Pure."""

from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.ports import Doc, Ref
from holdfast.features.memory import observation, project, session
from holdfast.features.memory.llm import meter, queue
from holdfast.features.memory.model import (
    HANDOFF,
    KINDS,
    OBSERVATION,
    PLACE,
    PROJECT,
    observation_ref,
    place_of,
    place_ref,
    project_ref,
    session_ref,
    strings,
)  # fmt: skip

SUBSCRIBED_KINDS = frozenset((*KINDS, *session.STEPS, "tool.started", "session.summarised"))
BEGINNINGS = frozenset(("session.started", "prompt.submitted"))
ASKING = frozenset(("memory.queued", "memory.asked", "memory.answered"))


def keys(event: Event) -> Iterable[Ref]:
    kind = event.kind
    if kind == "decision.made":
        yield from _told(event)
        return
    if kind in ASKING:
        yield from _asking(event)
    if event.session and kind in session.STEPS:
        yield session_ref(event.session)
    if kind in BEGINNINGS and event.project and event.get("repo"):
        yield place_ref(event.project)
    if kind in observation.STEPS:
        named = (str(event.get("id") or ""), str(event.get("was") or ""), *strings(event.get("supersedes")))
        for identity in dict.fromkeys(name for name in named if name):
            yield observation_ref(identity)
    if event.project and kind in project.STEPS:
        yield project_ref(place_of(event))


def _asking(event: Event) -> Iterable[Ref]:
    if event.kind != "memory.queued":
        yield meter.REF
    if event.kind != "memory.asked":
        yield queue.ref(event.project)


def _told(event: Event) -> Iterable[Ref]:
    contexts = session.told(event)
    if contexts and event.session:
        yield session_ref(event.session)
        if event.project and any(c.get("source") == HANDOFF for c in contexts):
            yield project_ref(place_of(event))


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == OBSERVATION:
        return observation.reduce(doc, event, ref.key)
    if ref.kind == PLACE:
        return _place(doc, event)
    if ref.kind in (meter.KIND, queue.KIND):
        return meter.reduce(doc, event) if ref.kind == meter.KIND else queue.reduce(doc, event)
    return project.reduce(doc, event) if ref.kind == PROJECT else session.reduce(doc, event)


def _place(doc: Doc | None, event: Event) -> Doc | None:
    repo = str(event.get("repo"))
    return doc if doc and doc["repo"] == repo else {"project": event.project, "repo": repo, "at": event.at}


def facets(ref: Ref, doc: Doc) -> tuple[str, str, int]:
    status = doc.get("status", "") if ref.kind in (OBSERVATION, queue.KIND) else ""
    place = doc.get("repo") if ref.kind == OBSERVATION else ""
    return place or doc.get("project", ""), status, doc.get("at", 0)
