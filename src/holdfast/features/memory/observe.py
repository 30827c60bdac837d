"""A finished turn → observations, in the transaction that ended it: none is lost and none is made twice. Pure."""

import re
from collections.abc import Iterable, Iterator

from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.ports import Doc
from holdfast.features.memory import session
from holdfast.features.memory.asking.settings import OFF
from holdfast.features.memory.model import (
    DEED,
    FORGOTTEN,
    MOST_PER_TURN,
    OBSERVATION,
    PLACE,
    PLANNING_CAP,
    PROJECT,
    SESSION,
    MemorySettings,
    excluded,
    identity,
    line,
    place_ref,
    project_ref,
    session_ref,
    settings_or_default,
    strings,
)  # fmt: skip
from holdfast.features.memory.rules import deeds, spoken
from holdfast.features.memory.rules.candidate import Candidate
from holdfast.features.memory.words import STOPWORDS, plain, stem

SAME_SUBJECT, SAME_FILE, TAKEN_BACK = 0.5, 0.4, 0.2
_SAYING = {stem(word) for word in plain("use always never prefer want decided decision chose go let now please keep")}
_INSTEAD = re.compile(r"\b(?:instead of|rather than|no longer|not|drop|replaces?)\b(.{0,60})", re.IGNORECASE)
SUPERSEDING = ("decision", "preference", "gotcha")


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
        *deeds.chosen(acts),
        *spoken.by_user(turn["prompt"], turn["prompt_seq"], turn["n"] > 1),
        *deeds.repaired(acts),
        *deeds.worked_otherwise(acts),
        *spoken.by_agent(turn["message"], turn["message_seq"]),
    )
    for one in found[:MOST_PER_TURN]:
        yield Candidate(
            type=one.type, text=one.text, origin=one.origin, importance=min(one.importance, cap), evidence=one.evidence,
            files=one.files, detail=one.detail,
        )  # fmt: skip


def _summary(event: Event) -> Candidate:
    files = tuple(strings(event.get("files"), 5))
    text = line(event.get("text"), 400)
    return Candidate(type="session_summary", text=text, origin=DEED, importance=3, evidence=(event.seq,), files=files)


def made(state: State, event: Event, found: Iterable[Candidate]) -> Iterator[Event]:
    repo = _repo(state, event)
    place = repo or event.project
    known = (state.get(PROJECT, project_ref(place).key) or {"items": []})["items"]
    for one in found:
        this = identity(place, one.type, one.text)
        before = state.get(OBSERVATION, this)
        if not one.text or (before and before["status"] == FORGOTTEN):
            continue
        yield Event(
            key="", kind="memory.observed", at=event.at, session=event.session, project=event.project,
            agent=event.agent,
            data={
                "id": this, "type": one.type, "text": one.text, "detail": one.detail, "origin": one.origin,
                "importance": one.importance, "files": list(one.files), "evidence": list(one.evidence),
                "supersedes": [] if before else superseded(known, this, one.type, one.text, one.files), "repo": repo,
            },
        )  # fmt: skip


def _repo(state: State, event: Event) -> str:
    """An event of a job does not say: then as the folder was last seen."""
    known = state.get(PLACE, place_ref(event.project).key) if event.project and not event.get("repo") else None
    return str(event.get("repo") or (known["repo"] if known else ""))


def superseded(known: Iterable[Doc], this: str, type_: str, text: str, files: Iterable[str] = ()) -> list[str]:
    """Older ones on the same subject: half of the words are shared, or what they were about is taken back by name."""
    if type_ not in SUPERSEDING:
        return []
    mine, of_files = _subject(text), set(files)
    taken_back = _subject(" ".join(_INSTEAD.findall(text)))
    found = []
    for item in known:
        theirs = _subject(item["text"])
        enough = SAME_FILE if of_files & set(item["files"]) else SAME_SUBJECT
        enough = TAKEN_BACK if taken_back & theirs else enough
        if item["id"] != this and item["type"] == type_ and not item["pinned"] and _shared(mine, theirs) >= enough:
            found.append(item["id"])
    return found[:5]


def _subject(text: str) -> set[str]:
    """Whole words: `library4` and `library5` are two things."""
    return {stem(word) for word in re.findall(r"\w+", text.lower()) if word not in STOPWORDS} - _SAYING


def _shared(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))
