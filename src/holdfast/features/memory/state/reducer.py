"""Reduces events to documents of memory; sessions are in `session_state`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.core.document import with_newest
from holdfast.core.erase import INSTEAD
from holdfast.core.event import Event
from holdfast.core.kinds import KINDS, MEMORY_KINDS, memory_events
from holdfast.core.kinds.session_events import SessionSummarised
from holdfast.core.ports import Ref
from holdfast.core.times import DAY
from holdfast.features.memory.state import documents, quirk_book, session_state
from holdfast.features.memory.state.words import search_terms

MOST_TERMS, MOST_OVERRULED, MOST_RECENT = 60, 40, 60
LONGEST_HANDOFF, LONGEST_NAME = 6_000, 80
SUBSCRIBED_KINDS = frozenset((*MEMORY_KINDS, *session_state.STEPS, "session.summarised"))
DERIVED_FROM = frozenset(("prompt.submitted", SessionSummarised.KIND))
ENQUEUED_FOR = frozenset(
    kind for kind, payload in KINDS.items() if issubclass(payload, memory_events.RememberedPayload)
)
BEGINNINGS = frozenset(("session.started", "prompt.submitted"))
DOCUMENTS = (
    documents.OBSERVATION,
    documents.SESSION,
    documents.PROJECT,
    documents.PLACE,
    documents.RECENT,
    quirk_book.QUIRKS,
)


def keys(event: Event) -> Iterable[Ref]:
    kind, data = event.kind, event.data
    # What was injected follows from the decision that went out, not from the plan.
    if kind == "decision.made":
        yield from _told_keys(event)
        return
    if event.session and kind in session_state.STEPS:
        yield documents.session_ref(event.session)
    if isinstance(data, memory_events.MemoryPayload) and kind in OBSERVATION_STEPS:
        yield from map(documents.observation_ref, dict.fromkeys(_named_ids(data)))
    if event.project:
        yield from _place_keys(event)


def _place_keys(event: Event) -> Iterable[Ref]:
    if event.kind in BEGINNINGS and documents.repo_of(event):
        yield documents.place_ref(event.project)
    if event.kind in PROJECT_STEPS:
        yield documents.project_ref(documents.place_of(event))
    if event.kind == "prompt.submitted" and event.session:
        yield documents.recent_ref(documents.place_of(event))
    if event.kind in quirk_book.STEPS and (event.kind not in quirk_book.TOOL_ENDS or quirk_book.touches_quirks(event)):
        yield quirk_book.quirks_ref(documents.place_of(event))


def _named_ids(data: memory_events.MemoryPayload) -> Iterable[str]:
    supersedes = data.supersedes if isinstance(data, memory_events.RememberedPayload) else []
    was = data.was if isinstance(data, memory_events.MemoryKept) else ""
    return (name for name in (data.id, was, *supersedes) if name)


def _told_keys(event: Event) -> Iterable[Ref]:
    contexts = session_state.memory_contexts(event)
    if contexts and event.session:
        yield documents.session_ref(event.session)
        if event.project and any(c.source == documents.HANDOFF for c in contexts):
            yield documents.project_ref(documents.place_of(event))


def reduce(doc: Any, event: Event, ref: Ref) -> Any:
    if ref.kind == documents.OBSERVATION.kind:
        return OBSERVATION_STEPS[event.kind](doc, event, ref.key)
    if ref.kind == documents.PLACE.kind:
        return _reduce_place(doc, event)
    if ref.kind == documents.PROJECT.kind:
        return _reduce_project(doc, event)
    if ref.kind == documents.RECENT.kind:
        return _reduce_recent(doc, event)
    if ref.kind == quirk_book.QUIRKS.kind:
        return quirk_book.reduce(doc, event)
    return session_state.reduce(doc, event)


def _reduce_recent(doc: documents.RecentSessions | None, event: Event) -> documents.RecentSessions | None:
    before = doc or documents.RecentSessions(project=event.project)
    if event.data.lane or next(reversed(before.sessions), "") == event.session:
        return doc
    return replace(before, sessions=with_newest(before.sessions, event.session, event.seq, MOST_RECENT), at=event.at)


def _reduce_place(doc: documents.FolderRepository | None, event: Event) -> documents.FolderRepository:
    repo = documents.repo_of(event)
    return (
        doc if doc and doc.repo == repo else documents.FolderRepository(project=event.project, repo=repo, at=event.at)
    )


def facets(_ref: Ref, doc: Any) -> tuple[str, str, int]:
    if isinstance(doc, documents.Observation):
        return doc.place, doc.status, doc.at
    return getattr(doc, "project", ""), "", doc.at


def _apply_observed(doc: documents.Observation | None, event: Event, identity: str) -> documents.Observation | None:
    data: memory_events.RememberedPayload = event.data
    # An event also names the memories it replaces; this document is one of those.
    if data.id != identity:
        return (
            replace(doc, status=documents.SUPERSEDED, superseded_by=data.id)
            if doc and doc.status == documents.ACTIVE
            else doc
        )
    if doc is None:
        return _new_observation(event, data)
    # A person decided against it: repetition does not bring it back.
    if doc.status in (documents.FORGOTTEN, documents.DROPPED):
        return doc
    evidence = list(dict.fromkeys((*doc.evidence, *data.evidence[: documents.MOST_EVIDENCE])))
    # `times`: reading the same event twice is no second time; only new evidence counts.
    return replace(
        doc, evidence=evidence[-documents.MOST_EVIDENCE:], times=doc.times + (evidence != doc.evidence), at=event.at,
        # Repeated without certainty: a candidate stays one, and replaced words stay replaced.
        status=doc.status if data.status == documents.CANDIDATE else documents.ACTIVE,
        superseded_by=doc.superseded_by if data.status == documents.CANDIDATE else "",
        importance=max(doc.importance, data.importance),
    )  # fmt: skip


def _new_observation(event: Event, data: memory_events.RememberedPayload) -> documents.Observation:
    return documents.Observation(
        id=data.id, type=data.type or "discovery", text=documents.one_line(data.text, documents.LONGEST_TEXT),
        detail=documents.one_line(data.detail, documents.LONGEST_TEXT), origin=data.origin, importance=data.importance or 1,
        words_of=documents.one_line(data.words_of, LONGEST_NAME),
        files=documents.shorten_strings(data.files), evidence=data.evidence[:documents.MOST_EVIDENCE], session=event.session,
        project=event.project, agent=event.agent, repo=data.repo, supersedes=documents.shorten_strings(data.supersedes),
        status=documents.CANDIDATE if data.status == documents.CANDIDATE else documents.ACTIVE, pinned=data.pinned,
        times=1, first_at=event.at, at=event.at, seq=event.seq,
    )  # fmt: skip


def _apply_kept(doc: documents.Observation | None, event: Event, identity: str) -> documents.Observation | None:
    """In the words the person chose; if they differ, the candidate itself is dropped."""
    data: memory_events.MemoryKept = event.data
    if data.was == identity != data.id:
        return replace(doc, status=documents.DROPPED) if doc else doc
    if data.id != identity:
        return _apply_observed(doc, event, identity)
    # A tombstone has no words left, so the memory is rebuilt from the event.
    observation = doc if doc and doc.status != documents.FORGOTTEN else _new_observation(event, data)
    return replace(observation, status=documents.ACTIVE, type=data.type or observation.type, at=event.at)


def _apply_dropped(doc: documents.Observation | None, _event: Event, _identity: str) -> documents.Observation | None:
    return replace(doc, status=documents.DROPPED) if doc and doc.status == documents.CANDIDATE else doc


def _apply_pinned(doc: documents.Observation | None, event: Event, _identity: str) -> documents.Observation | None:
    data: memory_events.MemoryPinned = event.data
    return replace(doc, pinned=data.pinned) if doc and doc.status != documents.FORGOTTEN else doc


def _apply_promoted(doc: documents.Observation | None, _event: Event, _identity: str) -> documents.Observation | None:
    return replace(doc, promoted=True) if doc and doc.status != documents.FORGOTTEN else doc


def _apply_ended(doc: documents.Observation | None, event: Event, _identity: str) -> documents.Observation | None:
    data: memory_events.MemoryEnded = event.data
    return (
        replace(doc, status=documents.SUPERSEDED, superseded_by=f"e{data.said}")
        if doc and doc.status == documents.ACTIVE
        else doc
    )


def _files_found(doc: documents.Observation | None, event: Event, _identity: str) -> documents.Observation | None:
    data: memory_events.MemoryFilesFound = event.data
    return (
        replace(doc, paths=documents.shorten_strings(data.paths)) if doc and doc.status != documents.FORGOTTEN else doc
    )


def _apply_forgotten(doc: documents.Observation | None, event: Event, identity: str) -> documents.Observation:
    """The tombstone keeps no words: only that something existed, and when it was removed."""
    first_at, seq = (doc.first_at, doc.seq) if doc else (event.at, event.seq)
    return documents.Observation(
        id=identity, type=doc.type if doc else "", project=doc.project if doc else event.project, status=documents.FORGOTTEN,
        first_at=first_at, at=event.at, seq=seq,
    )  # fmt: skip


OBSERVATION_STEPS: dict[str, Callable[[documents.Observation | None, Event, str], documents.Observation | None]] = {
    memory_events.MemoryObserved.KIND: _apply_observed,
    memory_events.MemoryKept.KIND: _apply_kept,
    "memory.dropped": _apply_dropped,
    memory_events.MemoryPinned.KIND: _apply_pinned,
    memory_events.MemoryPromoted.KIND: _apply_promoted,
    memory_events.MemoryEnded.KIND: _apply_ended,
    memory_events.MemoryFilesFound.KIND: _files_found,
    memory_events.MemoryForgotten.KIND: _apply_forgotten,
}


def _reduce_project(doc: documents.ProjectMemory | None, event: Event) -> documents.ProjectMemory | None:
    # Another folder of the same repository writes to this document too: its key is the place.
    before = doc or documents.ProjectMemory(project=event.project, at=event.at)
    after = PROJECT_STEPS[event.kind](before, event)
    return doc if after is before and doc is not None else replace(after, at=event.at)


def is_injectable(item: documents.ProjectItem) -> bool:
    """Words of a tool, file, page or agent are injected nowhere until a person vouches for them (P10)."""
    # Words that were forgotten elsewhere and quoted here leave nothing to inject.
    return (item.origin in documents.TRUSTED or item.promoted) and INSTEAD not in item.text


def item_worth(item: documents.ProjectItem, now: int) -> float:
    """Importance, slightly raised by repetition, fading over months."""
    # In days.
    age = max(0, now - item.at) / DAY
    # A pin outweighs everything else; age costs one point a month, four at most.
    return (100 if item.pinned else 0) + item.importance + min(item.times, 5) * 0.4 - min(age / 30, 4)


def _item_observed(doc: documents.ProjectMemory, event: Event) -> documents.ProjectMemory:
    data: memory_events.RememberedPayload = event.data
    existing = next((item for item in doc.items if item.id == data.id), None)
    if data.status == documents.CANDIDATE and existing is None:
        return doc
    gone = {data.id, *data.supersedes, *_summaries_quoting(doc, data.supersedes)}
    item = _new_item(event, data) if existing is None else replace(existing, times=existing.times + 1, at=event.at)
    said = [
        known.text.lower() for known in doc.items if known.id in data.supersedes and known.type != documents.SUMMARY
    ]
    # Said again, it holds again; a summary says nothing.
    again = "" if item.type == documents.SUMMARY else item.text.lower()
    overruled = [*(words for words in doc.overruled if words not in again), *said][-MOST_OVERRULED:]
    items = _best_items([*(i for i in doc.items if i.id not in gone), item], event.at)
    return replace(doc, items=items, overruled=overruled)


def _summaries_quoting(doc: documents.ProjectMemory, superseded: Sequence[str]) -> list[str]:
    """A summary that repeats overruled words is removed with them."""
    words = [item.text.lower() for item in doc.items if item.id in superseded]
    return [i.id for i in doc.items if i.type == documents.SUMMARY and any(text in i.text.lower() for text in words)]


def _new_item(event: Event, data: memory_events.RememberedPayload) -> documents.ProjectItem:
    text, files = documents.one_line(data.text, 300), documents.shorten_strings(data.files, 5)
    # Without an origin it counts as untrusted (OUTSIDE).
    return documents.ProjectItem(
        id=data.id, type=data.type, text=text, origin=data.origin or documents.OUTSIDE, importance=data.importance or 1,
        files=files, at=event.at, session=event.session, pinned=data.pinned,
        words_of=documents.one_line(data.words_of, LONGEST_NAME),
        terms=list(dict.fromkeys(search_terms(f"{text} {' '.join(files)}")))[:MOST_TERMS],
    )  # fmt: skip


def _best_items(items: list[documents.ProjectItem], now: int) -> list[documents.ProjectItem]:
    if len(items) <= documents.MOST_ITEMS:
        return items
    # One event adds one item, so at most one is too many.
    worst = min(items, key=lambda item: (item_worth(item, now), item.id))
    return [item for item in items if item is not worst]


def _item_changed(change: Callable[[documents.ProjectItem, Event], documents.ProjectItem]) -> "ProjectStep":
    def step(doc: documents.ProjectMemory, event: Event) -> documents.ProjectMemory:
        named: memory_events.MemoryPayload = event.data
        if not any(item.id == named.id for item in doc.items):
            return doc
        return replace(doc, items=[change(item, event) if item.id == named.id else item for item in doc.items])

    return step


def _item_gone(doc: documents.ProjectMemory, event: Event) -> documents.ProjectMemory:
    named: memory_events.MemoryPayload = event.data
    remaining = [item for item in doc.items if item.id != named.id]
    return replace(doc, items=remaining) if len(remaining) < len(doc.items) else doc


def _handed_over(doc: documents.ProjectMemory, event: Event) -> documents.ProjectMemory:
    data: memory_events.WorkHandedOver = event.data
    handoff = documents.Handoff(id=data.id, text=data.text[:LONGEST_HANDOFF], session=event.session, at=event.at)
    return replace(doc, handoff=handoff)


def _handoff_told(doc: documents.ProjectMemory, event: Event) -> documents.ProjectMemory:
    """Injected once, and so claimed: the text may go."""
    handoff = doc.handoff
    if (
        handoff
        and not handoff.claimed
        and any(c.source == documents.HANDOFF for c in session_state.memory_contexts(event))
    ):
        return replace(doc, handoff=replace(handoff, claimed=event.session, text=""))
    return doc


ProjectStep = Callable[[documents.ProjectMemory, Event], documents.ProjectMemory]
PROJECT_STEPS: dict[str, ProjectStep] = {
    memory_events.MemoryObserved.KIND: _item_observed,
    memory_events.MemoryKept.KIND: _item_observed,
    memory_events.MemoryPinned.KIND: _item_changed(lambda item, event: replace(item, pinned=event.data.pinned)),
    memory_events.MemoryPromoted.KIND: _item_changed(lambda item, _event: replace(item, promoted=True)),
    memory_events.MemoryFilesFound.KIND: _item_changed(
        lambda item, event: replace(item, paths=documents.shorten_strings(event.data.paths, 5))
    ),
    memory_events.MemoryEnded.KIND: _item_gone,
    memory_events.MemoryForgotten.KIND: _item_gone,
    memory_events.WorkHandedOver.KIND: _handed_over,
    "decision.made": _handoff_told,
}
