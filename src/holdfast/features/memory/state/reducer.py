"""Reduces events to documents of memory; sessions are in `session_state`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.core.erase import INSTEAD
from holdfast.core.event import Event
from holdfast.core.kinds import KINDS, MEMORY_KINDS
from holdfast.core.kinds.memory_events import (
    MemoryEnded,
    MemoryFilesFound,
    MemoryForgotten,
    MemoryKept,
    MemoryObserved,
    MemoryPayload,
    MemoryPinned,
    MemoryPromoted,
    ModelAsked,
    ModelCallEnded,
    RememberedPayload,
    TurnQueued,
    WorkHandedOver,
)
from holdfast.core.kinds.session_events import SessionSummarised
from holdfast.core.ports import Ref
from holdfast.core.times import DAY
from holdfast.features.memory.state import llm_state as model_state
from holdfast.features.memory.state import session_state
from holdfast.features.memory.state.documents import (
    ACTIVE,
    CANDIDATE,
    DROPPED,
    FORGOTTEN,
    HANDOFF,
    LONGEST_TEXT,
    MOST_EVIDENCE,
    MOST_ITEMS,
    OBSERVATION,
    OUTSIDE,
    PLACE,
    PROJECT,
    SESSION,
    SUMMARY,
    SUPERSEDED,
    TRUSTED,
    FolderRepository,
    Handoff,
    Observation,
    ProjectItem,
    ProjectMemory,
    observation_ref,
    one_line,
    place_of,
    place_ref,
    project_ref,
    repo_of,
    session_ref,
    shorten_strings,
)
from holdfast.features.memory.state.words import search_terms

MOST_TERMS = 60
LONGEST_HANDOFF, LONGEST_NAME = 6_000, 80
SUBSCRIBED_KINDS = frozenset((*MEMORY_KINDS, *session_state.STEPS, "tool.started", "session.summarised"))
_OF_MODEL = (TurnQueued, ModelAsked, ModelCallEnded)
DERIVED_FROM = session_state.ENDS | {SessionSummarised.KIND}
_WITH_JOBS = (RememberedPayload, *_OF_MODEL)
ENQUEUED_FOR = frozenset(kind for kind, payload in KINDS.items() if issubclass(payload, _WITH_JOBS))
BEGINNINGS = frozenset(("session.started", "prompt.submitted"))
DOCUMENTS = (OBSERVATION, SESSION, PROJECT, PLACE, model_state.METER, model_state.QUEUE)


def keys(event: Event) -> Iterable[Ref]:
    kind, data = event.kind, event.data
    # What was injected follows from the decision that went out, not from the plan.
    if kind == "decision.made":
        yield from _told_keys(event)
        return
    if event.session and kind in session_state.STEPS:
        yield session_ref(event.session)
    if kind in BEGINNINGS and event.project and repo_of(event):
        yield place_ref(event.project)
    if isinstance(data, _OF_MODEL):
        yield from model_state.keys(event)
    if isinstance(data, MemoryPayload) and kind in OBSERVATION_STEPS:
        for named in dict.fromkeys(_named_ids(data)):
            yield observation_ref(named)
    if event.project and kind in PROJECT_STEPS:
        yield project_ref(place_of(event))


def _named_ids(data: MemoryPayload) -> Iterable[str]:
    supersedes = data.supersedes if isinstance(data, RememberedPayload) else []
    was = data.was if isinstance(data, MemoryKept) else ""
    return (name for name in (data.id, was, *supersedes) if name)


def _told_keys(event: Event) -> Iterable[Ref]:
    contexts = session_state.memory_contexts(event)
    if contexts and event.session:
        yield session_ref(event.session)
        if event.project and any(c.source == HANDOFF for c in contexts):
            yield project_ref(place_of(event))


def reduce(doc: Any, event: Event, ref: Ref) -> Any:
    if ref.kind == OBSERVATION.kind:
        return OBSERVATION_STEPS[event.kind](doc, event, ref.key)
    if ref.kind == PLACE.kind:
        return _reduce_place(doc, event)
    if ref.kind == PROJECT.kind:
        return _reduce_project(doc, event)
    return session_state.reduce(doc, event) if ref.kind == SESSION.kind else model_state.reduce(doc, event, ref)


def _reduce_place(doc: FolderRepository | None, event: Event) -> FolderRepository:
    repo = repo_of(event)
    return doc if doc and doc.repo == repo else FolderRepository(project=event.project, repo=repo, at=event.at)


def facets(_ref: Ref, doc: Any) -> tuple[str, str, int]:
    if isinstance(doc, Observation):
        return doc.place, doc.status, doc.at
    status = doc.status if isinstance(doc, model_state.Queue) else ""
    return getattr(doc, "project", ""), status, doc.at


def _apply_observed(doc: Observation | None, event: Event, identity: str) -> Observation | None:
    data: RememberedPayload = event.data
    # An event also names the memories it replaces; this document is one of those.
    if data.id != identity:
        return replace(doc, status=SUPERSEDED, superseded_by=data.id) if doc and doc.status == ACTIVE else doc
    if doc is None:
        return _new_observation(event, data)
    # A person decided against it: repetition does not bring it back.
    if doc.status in (FORGOTTEN, DROPPED):
        return doc
    evidence = list(dict.fromkeys((*doc.evidence, *data.evidence[:MOST_EVIDENCE])))
    # `times`: reading the same event twice is no second time; only new evidence counts.
    return replace(
        doc, evidence=evidence[-MOST_EVIDENCE:], times=doc.times + (evidence != doc.evidence), at=event.at,
        # Repeated without certainty: a candidate stays one, and replaced words stay replaced.
        status=doc.status if data.status == CANDIDATE else ACTIVE,
        superseded_by=doc.superseded_by if data.status == CANDIDATE else "",
        importance=max(doc.importance, data.importance),
    )  # fmt: skip


def _new_observation(event: Event, data: RememberedPayload) -> Observation:
    return Observation(
        id=data.id, type=data.type or "discovery", text=one_line(data.text, LONGEST_TEXT),
        detail=one_line(data.detail, LONGEST_TEXT), origin=data.origin, importance=data.importance or 1,
        words_of=one_line(data.words_of, LONGEST_NAME),
        files=shorten_strings(data.files), evidence=data.evidence[:MOST_EVIDENCE], session=event.session,
        project=event.project, agent=event.agent, repo=data.repo, supersedes=shorten_strings(data.supersedes),
        pinned=data.pinned, times=1, status=CANDIDATE if data.status == CANDIDATE else ACTIVE, first_at=event.at,
        at=event.at, seq=event.seq,
    )  # fmt: skip


def _apply_kept(doc: Observation | None, event: Event, identity: str) -> Observation | None:
    """In the words the person chose; if they differ, the candidate itself is dropped."""
    data: MemoryKept = event.data
    if data.was == identity != data.id:
        return replace(doc, status=DROPPED) if doc else doc
    if data.id != identity:
        return _apply_observed(doc, event, identity)
    # A tombstone has no words left, so the memory is rebuilt from the event.
    observation = doc if doc and doc.status != FORGOTTEN else _new_observation(event, data)
    return replace(observation, status=ACTIVE, type=data.type or observation.type, at=event.at)


def _apply_dropped(doc: Observation | None, _event: Event, _identity: str) -> Observation | None:
    return replace(doc, status=DROPPED) if doc and doc.status == CANDIDATE else doc


def _apply_pinned(doc: Observation | None, event: Event, _identity: str) -> Observation | None:
    data: MemoryPinned = event.data
    return replace(doc, pinned=data.pinned) if doc and doc.status != FORGOTTEN else doc


def _apply_promoted(doc: Observation | None, _event: Event, _identity: str) -> Observation | None:
    return replace(doc, promoted=True) if doc and doc.status != FORGOTTEN else doc


def _apply_ended(doc: Observation | None, event: Event, _identity: str) -> Observation | None:
    data: MemoryEnded = event.data
    return replace(doc, status=SUPERSEDED, superseded_by=f"e{data.said}") if doc and doc.status == ACTIVE else doc


def _files_found(doc: Observation | None, event: Event, _identity: str) -> Observation | None:
    data: MemoryFilesFound = event.data
    return replace(doc, paths=shorten_strings(data.paths)) if doc and doc.status != FORGOTTEN else doc


def _apply_forgotten(doc: Observation | None, event: Event, identity: str) -> Observation:
    """The tombstone keeps no words: only that something existed, and when it was removed."""
    first_at, seq = (doc.first_at, doc.seq) if doc else (event.at, event.seq)
    return Observation(
        id=identity, type=doc.type if doc else "", project=doc.project if doc else event.project, status=FORGOTTEN,
        first_at=first_at, at=event.at, seq=seq,
    )  # fmt: skip


OBSERVATION_STEPS: dict[str, Callable[[Observation | None, Event, str], Observation | None]] = {
    MemoryObserved.KIND: _apply_observed,
    MemoryKept.KIND: _apply_kept,
    "memory.dropped": _apply_dropped,
    MemoryPinned.KIND: _apply_pinned,
    MemoryPromoted.KIND: _apply_promoted,
    MemoryEnded.KIND: _apply_ended,
    MemoryFilesFound.KIND: _files_found,
    MemoryForgotten.KIND: _apply_forgotten,
}


def _reduce_project(doc: ProjectMemory | None, event: Event) -> ProjectMemory | None:
    # Another folder of the same repository writes to this document too: its key is the place.
    before = doc or ProjectMemory(project=event.project, at=event.at)
    after = PROJECT_STEPS[event.kind](before, event)
    return doc if after is before and doc is not None else replace(after, at=event.at)


def is_injectable(item: ProjectItem) -> bool:
    """Words of a tool, file, page or agent are injected nowhere until a person vouches for them (P10)."""
    # Words that were forgotten elsewhere and quoted here leave nothing to inject.
    return (item.origin in TRUSTED or item.promoted) and INSTEAD not in item.text


def item_worth(item: ProjectItem, now: int) -> float:
    """Importance, slightly raised by repetition, fading over months."""
    # In days.
    age = max(0, now - item.at) / DAY
    # A pin outweighs everything else; age costs one point a month, four at most.
    return (100 if item.pinned else 0) + item.importance + min(item.times, 5) * 0.4 - min(age / 30, 4)


def _item_observed(doc: ProjectMemory, event: Event) -> ProjectMemory:
    data: RememberedPayload = event.data
    existing = next((item for item in doc.items if item.id == data.id), None)
    if data.status == CANDIDATE and existing is None:
        return doc
    gone = {data.id, *data.supersedes, *_summaries_quoting(doc, data.supersedes)}
    item = _new_item(event, data) if existing is None else replace(existing, times=existing.times + 1, at=event.at)
    return replace(doc, items=_best_items([*(i for i in doc.items if i.id not in gone), item], event.at))


def _summaries_quoting(doc: ProjectMemory, superseded: Sequence[str]) -> list[str]:
    """A summary that repeats overruled words is removed with them."""
    words = [item.text.lower() for item in doc.items if item.id in superseded]
    return [i.id for i in doc.items if i.type == SUMMARY and any(text in i.text.lower() for text in words)]


def _new_item(event: Event, data: RememberedPayload) -> ProjectItem:
    text, files = one_line(data.text, 300), shorten_strings(data.files, 5)
    # Without an origin it counts as untrusted (OUTSIDE).
    return ProjectItem(
        id=data.id, type=data.type, text=text, origin=data.origin or OUTSIDE, importance=data.importance or 1,
        files=files, at=event.at, session=event.session, pinned=data.pinned,
        words_of=one_line(data.words_of, LONGEST_NAME),
        terms=list(dict.fromkeys(search_terms(f"{text} {' '.join(files)}")))[:MOST_TERMS],
    )  # fmt: skip


def _best_items(items: list[ProjectItem], now: int) -> list[ProjectItem]:
    if len(items) <= MOST_ITEMS:
        return items
    # One event adds one item, so at most one is too many.
    worst = min(items, key=lambda item: (item_worth(item, now), item.id))
    return [item for item in items if item is not worst]


def _item_changed(change: Callable[[ProjectItem, Event], ProjectItem]) -> "ProjectStep":
    def step(doc: ProjectMemory, event: Event) -> ProjectMemory:
        named: MemoryPayload = event.data
        if not any(item.id == named.id for item in doc.items):
            return doc
        return replace(doc, items=[change(item, event) if item.id == named.id else item for item in doc.items])

    return step


def _item_gone(doc: ProjectMemory, event: Event) -> ProjectMemory:
    named: MemoryPayload = event.data
    remaining = [item for item in doc.items if item.id != named.id]
    return replace(doc, items=remaining) if len(remaining) < len(doc.items) else doc


def _handed_over(doc: ProjectMemory, event: Event) -> ProjectMemory:
    data: WorkHandedOver = event.data
    handoff = Handoff(id=data.id, text=data.text[:LONGEST_HANDOFF], session=event.session, at=event.at)
    return replace(doc, handoff=handoff)


def _handoff_told(doc: ProjectMemory, event: Event) -> ProjectMemory:
    """Injected once, and so claimed: the text may go."""
    handoff = doc.handoff
    if handoff and not handoff.claimed and any(c.source == HANDOFF for c in session_state.memory_contexts(event)):
        return replace(doc, handoff=replace(handoff, claimed=event.session, text=""))
    return doc


ProjectStep = Callable[[ProjectMemory, Event], ProjectMemory]
PROJECT_STEPS: dict[str, ProjectStep] = {
    MemoryObserved.KIND: _item_observed,
    MemoryKept.KIND: _item_observed,
    MemoryPinned.KIND: _item_changed(lambda item, event: replace(item, pinned=event.data.pinned)),
    MemoryPromoted.KIND: _item_changed(lambda item, _event: replace(item, promoted=True)),
    MemoryFilesFound.KIND: _item_changed(lambda item, event: replace(item, paths=shorten_strings(event.data.paths, 5))),
    MemoryEnded.KIND: _item_gone,
    MemoryForgotten.KIND: _item_gone,
    WorkHandedOver.KIND: _handed_over,
    "decision.made": _handoff_told,
}
