"""Decides what becomes a memory: explicit requests, corrections made twice, and summaries of sessions."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.kinds import memory_events
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.kinds.session_events import SessionSummarised
from holdfast.features.memory.policy.candidate import Candidate, said_by_user
from holdfast.features.memory.requests import Request, corrections_in, explicit_requests
from holdfast.features.memory.settings import settings_or_default
from holdfast.features.memory.state import documents
from holdfast.features.memory.validity import end_of, replaces, subject_words

MOST_SUPERSEDED = 5
PLANNING_CAP, HIGHEST = 5, 10
UNFINISHED, FINISHED = 5, 3
"""Importance of a session's summary. Only one that left something unfinished is injected."""
# Of the subject words of both corrections; sessions in which the earlier one is looked for.
SAME_CORRECTION, LOOKED_THROUGH = 0.8, 20
STOPPED_PROMPT = "the last prompt was not finished"
OPEN_PARTS = ("Failing", "Refused", "Next, the agent said")
TWICE = "corrected twice, in different sessions"


def derive(state: State, event: Event, raw_settings: AnySettings) -> Iterator[Event]:
    if not settings_or_default(raw_settings).enabled:
        return
    if isinstance(event.data, SessionSummarised):
        yield from observed_events(state, event, [_summary_candidate(event.data, event.seq)])
    elif isinstance(event.data, PromptSubmitted) and event.session and _is_said(event.data):
        # In plan mode nothing was done yet, so statements weigh less.
        most = PLANNING_CAP if event.data.mode == "plan" else HIGHEST
        said = list(_said(state, event, event.data.prompt))[: documents.MOST_PER_TURN]
        yield from observed_events(state, event, [replace(one, importance=min(one.importance, most)) for one in said])


def _is_said(data: PromptSubmitted) -> bool:
    """In a person's own words."""
    return not (data.lane or data.synthetic or data.is_plan)


def _said(state: State, event: Event, prompt: str) -> Iterator[Candidate]:
    requests = explicit_requests(prompt)
    yield from (said_by_user(request, event.seq) for request in requests)
    known = {request.text for request in requests}
    for words in corrections_in(prompt):
        if words not in known and _corrected_before(state, event, words):
            yield said_by_user(Request("rule", words), event.seq, detail=TWICE)


def _corrected_before(state: State, event: Event, words: str) -> bool:
    """In another session here, in nearly the same words."""
    subject = subject_words(words)
    recent = documents.RECENT.get(state, documents.recent_ref(documents.place_of(event)).key)
    others = [one for one in (recent.sessions if recent else ()) if one != event.session][-LOOKED_THROUGH:]
    docs = (documents.SESSION.get(state, documents.session_ref(one).key) for one in others)
    return any(_is_same(subject, subject_words(before)) for doc in docs if doc for before in doc.corrections)


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= max(2, SAME_CORRECTION * max(len(one), len(other)))


def _summary_candidate(data: SessionSummarised, seq: int) -> Candidate:
    text = documents.one_line(data.outcome or data.text)
    files = tuple(documents.shorten_strings(data.files, 5))
    importance = UNFINISHED if _left_unfinished(data, text) else FINISHED
    return Candidate(
        type=documents.SUMMARY, text=text, origin=documents.DEED, importance=importance, evidence=(seq,), files=files
    )


def _left_unfinished(data: SessionSummarised, text: str) -> bool:
    """A failing check, a stated next step, open tasks, or edits that nothing committed. A stopped prompt is over."""
    still_open = [one for one in data.open if not one.startswith(STOPPED_PROMPT)]
    return bool(still_open) or any(f"{name}: " in text for name in OPEN_PARTS) or (data.edits > 0 and not data.commits)


def observed_events(state: State, event: Event, candidates: Iterable[Candidate]) -> Iterator[Event]:
    """Compare observations with what is known: equal words are one memory, a newer statement replaces an older one."""
    repo = _event_repo(state, event)
    location = repo or event.project
    items = documents.project_memory(state, location).items
    for one in candidates:
        this = documents.memory_id(location, one.type, one.text)
        # A person forgot or dropped these words: no rule may bring them back.
        if not one.text or any(
            doc.status in (documents.FORGOTTEN, documents.DROPPED) for doc in _same_words(state, location, one.text)
        ):
            continue
        one = with_contradiction(items, this, one)
        gone = superseded_ids(items, this, one, event.session, event.at)
        yield derived_event(
            event, remembered_payload(memory_events.MemoryObserved(), this, one, repo=repo, supersedes=gone)
        )


def _same_words(state: State, location: str, text: str) -> Iterator[documents.Observation]:
    """As any type: dropped words must not return as another type."""
    for type_ in documents.TYPES:
        if doc := documents.OBSERVATION.get(state, documents.memory_id(location, type_, text)):
            yield doc


def remembered_payload(
    payload: memory_events.RememberedPayload, this: str, one: Candidate, *, repo: str, supersedes: list[str]
) -> memory_events.RememberedPayload:
    return replace(
        payload, id=this, type=one.type, text=one.text, detail=one.detail, origin=one.origin, repo=repo,
        importance=one.importance, files=list(one.files), evidence=list(one.evidence), supersedes=supersedes,
        status=documents.CANDIDATE if one.uncertain else "",
    )  # fmt: skip


def with_contradiction(items: Iterable[documents.ProjectItem], this: str, one: Candidate) -> Candidate:
    """A person decides before words replace what they pinned."""
    pinned = (item for item in _replaced_items(items, this, one.text) if item.pinned)
    if one.origin != documents.USER or one.uncertain or not (item := next(pinned, None)):
        return one
    return replace(one, uncertain=True, detail=f"contradicts what you pinned: {item.text}")


def contradicted_ids(items: Iterable[documents.ProjectItem], this: str, text: str) -> list[str]:
    """What no longer holds once a person decides for these words."""
    return [item.id for item in _replaced_items(items, this, text)][:MOST_SUPERSEDED]


def _replaced_items(items: Iterable[documents.ProjectItem], this: str, text: str) -> Iterator[documents.ProjectItem]:
    said = (
        item for item in items if item.origin == documents.USER and item.id != this and item.type != documents.SUMMARY
    )
    return (item for item in said if replaces(text, item.text))


def _event_repo(state: State, event: Event) -> str:
    """Events of jobs have no repository: use the folder's last known one."""
    doc = (
        documents.PLACE.get(state, documents.place_ref(event.project).key)
        if event.project and not documents.repo_of(event)
        else None
    )
    return documents.repo_of(event) or (doc.repo if doc else "")


def _is_older_summary(item: documents.ProjectItem, this: str, session: str) -> bool:
    return item.type == documents.SUMMARY and item.session == session and item.id != this


def superseded_ids(
    items: Iterable[documents.ProjectItem], this: str, one: Candidate, session: str, at: int
) -> list[str]:
    """Return older words of the user that these replace, or a session's older summary. The agent's words replace
    nothing."""
    if one.type == documents.SUMMARY:
        return [item.id for item in items if _is_older_summary(item, this, session)]
    # A temporary statement must not end a permanent one.
    if one.origin != documents.USER or one.uncertain or end_of(one.text, documents.day_of(at)):
        return []
    return [item.id for item in _replaced_items(items, this, one.text) if not item.pinned][:MOST_SUPERSEDED]
