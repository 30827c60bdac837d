"""Commands of memory; each becomes an event, and everything stays in the log except forgotten text."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event, own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.kinds import memory_events
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.policy import handoff
from holdfast.features.memory.policy.candidate import Candidate
from holdfast.features.memory.policy.learn import contradicted_ids, remembered_payload, superseded_ids
from holdfast.features.memory.settings import settings_or_default
from holdfast.features.memory.state import documents, lookup
from holdfast.features.memory.state.quirk_book import COMMAND, QUIRKS, Quirk, as_row, quirks_ref
from holdfast.features.memory.state.words import files_in

# As for a decision or rule that the user states in a prompt.
IMPORTANCE = 8
# In words; and how many of the newest prompts are searched for the quote.
SHORTEST_QUOTE, PROMPTS_LOOKED_AT = 3, 200


def add(call: Call) -> CommandResult:
    text, type_ = documents.one_line(str(call.args.get("text") or "")), str(call.args.get("type") or "discovery")
    if not text:
        raise CommandRefused("a memory needs a text", fix='For example: holdfast memory add "The API needs a token"')
    _refuse_unknown_type(type_)
    repo = lookup.repo_of_project(call, call.project)
    location = repo or call.project
    this = documents.memory_id(location, type_, text)
    _refuse_forgotten(call, location, text)
    origin, evidence, uncertain = _whose_words(call, text)
    one = Candidate(
        type=type_, text=text, origin=origin, importance=IMPORTANCE, evidence=evidence, uncertain=uncertain,
        files=tuple(documents.string_list(call.args.get("files")) or files_in(text)[:5]),
    )  # fmt: skip
    gone = superseded_ids(_project_items(call, location), this, one, call.session, call.now)
    payload = remembered_payload(memory_events.MemoryObserved(), this, one, repo=repo, supersedes=gone)
    # Candidates cannot be pinned: a pin would protect unconfirmed words.
    pinned = replace(payload, pinned=bool(call.args.get("pin")) and not uncertain)
    return CommandResult((_own_event(call, pinned),), answer=_observation_answer(this))


def _refuse_unknown_type(type_: str) -> None:
    if type_ not in documents.TYPES:
        raise CommandRefused(f"there is no type {type_!r}", fix=f"One of: {', '.join(documents.TYPES)}")


def _whose_words(call: Call, text: str) -> tuple[str, tuple[int, ...], bool]:
    """Return the author, the source, and whether a person must confirm. If agents may propose, a proposal counts as
    the user's only if the user is on record with these words."""
    if not lookup.is_agent(call):
        return documents.USER, (), False
    # Without the setting an agent's addition is stored but never injected (`is_injectable`).
    if not settings_or_default(call.settings).agent_proposes:
        return documents.AGENT, (), False
    prompt_seq = _prompt_with(call, text)
    return (documents.USER, (prompt_seq,), False) if prompt_seq else (documents.AGENT, (), True)


def _prompt_with(call: Call, quote: str) -> int:
    """The number of a recent prompt that contains the quote; 0 if none does or the quote is too short."""
    words = quote.lower().split()
    if len(words) < SHORTEST_QUOTE:
        return 0
    query = EventQuery(project=call.project, kinds=("prompt.submitted",), limit=PROMPTS_LOOKED_AT, newest=True)
    for event in reversed(call.reader.events(query)):
        data: PromptSubmitted = event.data
        # Agents quote with other white space and case.
        if not data.synthetic and " ".join(words) in " ".join(data.prompt.lower().split()):
            return event.seq
    return 0


def _refuse_forgotten(call: Call, location: str, text: str) -> None:
    # As any type, or forgotten words could return as another one.
    before = (
        documents.OBSERVATION.load(call.reader, documents.memory_id(location, type_, text)) for type_ in documents.TYPES
    )
    statuses = {doc.status for doc in before if doc}
    if not statuses.isdisjoint((documents.FORGOTTEN, documents.DROPPED)):
        done = "forgotten" if documents.FORGOTTEN in statuses else "dropped"
        raise CommandRefused(f"this was {done} on purpose", fix="Say it in other words to have it remembered again.")


def _project_items(call: Call, location: str) -> list[documents.ProjectItem]:
    memory = documents.PROJECT.load(call.reader, documents.project_ref(location).key)
    return memory.items if memory else []


def pin(call: Call) -> CommandResult:
    doc = lookup.find_observation(call)
    return _observation_result(
        call, doc, memory_events.MemoryPinned(id=doc.id, repo=doc.repo, pinned=not call.args.get("off"))
    )


def promote(call: Call) -> CommandResult:
    doc = lookup.find_observation(call)
    return _observation_result(call, doc, memory_events.MemoryPromoted(id=doc.id, repo=doc.repo))


def keep(call: Call) -> CommandResult:
    """Turn a candidate into a memory, unchanged or with other words and another type."""
    doc = _find_candidate(call)
    text = documents.one_line(str(call.args.get("text") or "")) or doc.text
    type_ = str(call.args.get("type") or doc.type)
    _refuse_unknown_type(type_)
    # With the same words the candidate itself becomes the memory; other words make a new one.
    this = doc.id if text == doc.text else documents.memory_id(doc.place, type_, text)
    one = Candidate(
        type=type_,
        text=text,
        origin=documents.USER,
        importance=IMPORTANCE,
        evidence=tuple(doc.evidence),
        files=tuple(doc.files),
    )
    gone = contradicted_ids(_project_items(call, doc.place), this, text)
    kept = memory_events.MemoryKept(was=doc.id, words_of=_speaker(doc) if text == doc.text else "")
    payload = remembered_payload(kept, this, one, repo=doc.repo, supersedes=gone)
    event = own_event(payload, call.now, session=doc.session, project=doc.project)
    return CommandResult((event,), answer=_observation_answer(this))


def _speaker(doc: documents.Observation) -> str:
    """Keeping words makes nobody their author: a teammate's and an agent's stay theirs."""
    return doc.words_of or ("agent" if doc.origin == documents.AGENT else "")


def drop(call: Call) -> CommandResult:
    """The same words are not proposed again."""
    doc = _find_candidate(call)
    return _observation_result(call, doc, memory_events.MemoryDropped(id=doc.id, repo=doc.repo))


def _find_candidate(call: Call) -> documents.Observation:
    doc = lookup.find_observation(call)
    if doc.status != documents.CANDIDATE:
        raise CommandRefused(f"{doc.id} is {doc.status}, not a candidate", fix="See: holdfast memory list --candidates")
    return doc


def forget(call: Call) -> CommandResult:
    """Remove the text and its quotations from the database and the backups; only the fact that it existed remains."""
    target = lookup.find_memory_or_event(call)
    if isinstance(target, Event):
        name, text = f"e{target.seq}", lookup.text_of(target)
        payload = memory_events.MemoryForgotten(id=name, of=target.seq, repo=documents.repo_of(target))
        event = own_event(payload, call.now, session=target.session, project=target.project)
        return CommandResult((event,), answer={"id": name, "forgotten": True}, erase=(text,))
    texts = tuple(text for text in (target.text, target.detail) if text)
    payload = memory_events.MemoryForgotten(id=target.id, repo=target.repo)
    event = own_event(payload, call.now, session=target.session, project=target.project)
    return CommandResult((event,), answer={"id": target.id, "forgotten": True}, erase=texts)


def _observation_result(call: Call, doc: documents.Observation, payload: memory_events.MemoryPayload) -> CommandResult:
    event = own_event(payload, call.now, session=call.session, project=doc.project)
    return CommandResult((event,), answer=_observation_answer(doc.id))


def _own_event(call: Call, payload: memory_events.MemoryPayload) -> Event:
    return own_event(payload, call.now, session=call.session, project=call.project)


def _observation_answer(this: str) -> Callable[[Reader], Any]:
    return lambda reader: msgspec.to_builtins(documents.OBSERVATION.load(reader, this))


def hand_over(call: Call) -> CommandResult:
    session = str(call.args.get("session") or call.session or lookup.newest_session(call))
    doc = documents.SESSION.load(call.reader, documents.session_ref(session).key) if session else None
    if not doc:
        raise CommandRefused("no session of this project is known to memory", fix="See: holdfast session list")
    summary = handoff.summarise_session(call.reader.replay(session=session))
    note = documents.one_line(str(call.args.get("note") or ""), 300)
    gates = handoff.gate_names(documents.SESSION_GATES.load(call.reader, session))
    text = handoff.handoff_packet(doc, summary, gates, handoff.is_file_of(doc.project), note)
    # The time distinguishes several hand-overs of one session.
    this = documents.memory_id(doc.project, "handoff", f"{session} {call.now}")
    payload = memory_events.WorkHandedOver(id=this, text=text, repo=lookup.repo_of_project(call, doc.project))
    event = own_event(payload, call.now, session=session, project=doc.project)
    # If another person continues, no session of this machine is informed.
    events = () if call.args.get("only_text") else (event,)
    return CommandResult(events, answer={"id": this, "session": session, "project": doc.project, "text": text})


def edit_quirk(call: Call) -> CommandResult:
    """What a person wrote is injected from the first failure on, and no observation replaces it."""
    quirk, place = _find_quirk(call)
    instead = documents.one_line(str(call.args.get("text") or ""), COMMAND)
    if not instead:
        raise CommandRefused("say what to use instead", fix=f'For example: holdfast quirks edit {quirk.id} "use pnpm"')
    event = _own_event(call, memory_events.QuirkEdited(id=quirk.id, repo=place, instead=instead))
    return CommandResult((event,), answer={**as_row(quirk), "instead": instead, "edited": True})


def forget_quirk(call: Call) -> CommandResult:
    quirk, place = _find_quirk(call)
    event = _own_event(call, memory_events.QuirkForgotten(id=quirk.id, repo=place))
    return CommandResult((event,), answer={"id": quirk.id, "forgotten": True})


def _find_quirk(call: Call) -> tuple[Quirk, str]:
    wanted = str(call.args.get("id") or "").strip().strip("[]")
    repo = lookup.repo_of_project(call, call.project)
    for place in lookup.memory_places(call):
        book = QUIRKS.load(call.reader, quirks_ref(place).key)
        matches = [one for name, one in book.quirks.items() if wanted and name.startswith(wanted)] if book else []
        if len(matches) == 1:
            return matches[0], repo if place == repo else ""
    raise CommandRefused(f"there is no quirk {wanted!r}", fix="See: holdfast quirks --all")
