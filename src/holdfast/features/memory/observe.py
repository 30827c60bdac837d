"""A finished turn → observations, in the transaction that ended it: none is lost and none is made twice. Pure."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.ports import Doc
from holdfast.features.memory import session
from holdfast.features.memory.llm.settings import OFF
from holdfast.features.memory.model import (
    CANDIDATE,
    DEED,
    DROPPED,
    FORGOTTEN,
    MOST_PER_TURN,
    OBSERVATION,
    PLACE,
    PLANNING_CAP,
    PROJECT,
    SESSION,
    USER,
    MemorySettings,
    day_of,
    excluded,
    identity,
    line,
    place_ref,
    project_ref,
    session_ref,
    settings_or_default,
    strings,
)  # fmt: skip
from holdfast.features.memory.rules import actions, agent_text
from holdfast.features.memory.rules.candidate import Candidate
from holdfast.features.memory.terms import files_in
from holdfast.features.memory.validity.expiry import end_of
from holdfast.features.memory.validity.parse import parse_statement
from holdfast.features.memory.validity.relations import replaces
from holdfast.statements.observe import KEPT, observe_prompt

SUMMARY, MOST_SUPERSEDED = "session_summary", 5
IMPORTANCE = {"decision": 8, "rule": 8, "preference": 7, "gotcha": 7, "fact": 7, "trade_off": 6}


def derive(state: State, event: Event, given: AnySettings) -> Iterator[Event]:
    settings = settings_or_default(given)
    if not settings.enabled:
        return
    if event.kind == "session.summarised":
        yield from made(state, event, [_summary(event)])
        return
    if event.kind not in session.ENDS or event.get("lane") or not event.session:
        return
    doc = state.get(SESSION, session_ref(event.session).key)
    turn = session.finished_turn(doc) if doc else None
    if doc and turn:
        yield from made(state, event, _candidates(turn, settings))
        yield from _for_the_model(doc, turn, event, settings)


def _for_the_model(doc: Doc, turn: Doc, event: Event, settings: MemorySettings) -> Iterator[Event]:
    """Once for each turn, however often its end is told."""
    begin = turn["prompt_seq"]
    if settings.model.use != OFF and begin > doc["queued"] and not event.get("paused"):
        yield Event(
            key="", kind="memory.queued", at=event.at, session=event.session, project=event.project, agent=event.agent,
            data={"turn": begin, "repo": event.get("repo", "")},
        )  # fmt: skip


def _candidates(turn: Doc, settings: MemorySettings) -> Iterator[Candidate]:
    acts = [act for act in turn["acts"] if not excluded(act["paths"], act["command"], settings)]
    cap = PLANNING_CAP if turn["planning"] else 10
    found = (
        *actions.chosen(acts),
        *_said_by_user(turn),
        *actions.repaired(acts),
        *actions.worked_otherwise(acts),
        *agent_text.by_agent(turn["message"], turn["message_seq"]),
    )
    for one in found[:MOST_PER_TURN]:
        yield Candidate(
            type=one.type, text=one.text, origin=one.origin, importance=min(one.importance, cap), evidence=one.evidence,
            files=one.files, detail=one.detail, uncertain=one.uncertain,
        )  # fmt: skip


def _said_by_user(turn: Doc) -> Iterator[Candidate]:
    evidence = (turn["prompt_seq"],) if turn["prompt_seq"] else ()
    for one in observe_prompt(turn["prompt"], turn["context"]):
        yield Candidate(
            type=one.type, text=line(one.text), origin=USER, importance=IMPORTANCE[one.type], evidence=evidence,
            files=tuple(files_in(one.text)[:5]), uncertain=one.outcome != KEPT,
        )  # fmt: skip


def _summary(event: Event) -> Candidate:
    files = tuple(strings(event.get("files"), 5))
    text = line(event.get("outcome") or event.get("text"))
    return Candidate(type="session_summary", text=text, origin=DEED, importance=3, evidence=(event.seq,), files=files)


def made(state: State, event: Event, found: Iterable[Candidate]) -> Iterator[Event]:
    repo = _repo(state, event)
    place = repo or event.project
    known = (state.get(PROJECT, project_ref(place).key) or {"items": []})["items"]
    for one in found:
        this = identity(place, one.type, one.text)
        before = state.get(OBSERVATION, this)
        if not one.text or (before and before["status"] in (FORGOTTEN, DROPPED)):
            continue
        one = _against_pinned(known, this, one)
        gone = superseded(known, this, one, event.session, event.at)
        yield Event(
            key="", kind="memory.observed", at=event.at, session=event.session, project=event.project,
            agent=event.agent,
            data={
                "id": this, "type": one.type, "text": one.text, "detail": one.detail, "origin": one.origin,
                "importance": one.importance, "files": list(one.files), "evidence": list(one.evidence),
                "supersedes": gone, "repo": repo, **({"status": CANDIDATE} if one.uncertain else {}),
            },
        )  # fmt: skip


def _against_pinned(known: Iterable[Doc], this: str, one: Candidate) -> Candidate:
    """A person pinned the one and said the other: which holds is his to decide, so the newer waits in the inbox."""
    if one.origin != USER or one.uncertain or one.type == SUMMARY:
        return one
    pinned = [item for item in known if item["pinned"] and item["origin"] == USER and item["id"] != this]
    new = parse_statement(one.text) if pinned else None
    against = [item for item in pinned if new is not None and replaces(new, parse_statement(item["text"]))]
    if not against:
        return one
    return replace(one, uncertain=True, detail=f"contradicts what you pinned: {against[0]['text']}")


def _repo(state: State, event: Event) -> str:
    """An event of a job does not say: then as the folder was last seen."""
    known = state.get(PLACE, place_ref(event.project).key) if event.project and not event.get("repo") else None
    return str(event.get("repo") or (known["repo"] if known else ""))


def superseded(known: Iterable[Doc], this: str, one: Candidate, session: str, at: int) -> list[str]:
    """Older words of the user that these make void; of a session's summaries the older one. The agent's words replace nothing."""
    if one.type == SUMMARY:
        return [i["id"] for i in known if i["type"] == SUMMARY and i["session"] == session and i["id"] != this]
    if one.origin != USER or one.uncertain or end_of(one.text, day_of(at)):
        return []
    new = parse_statement(one.text)
    older = [i for i in known if i["id"] != this and i["origin"] == USER and not i["pinned"] and i["type"] != SUMMARY]
    return [i["id"] for i in older if replaces(new, parse_statement(i["text"]))][:MOST_SUPERSEDED]
