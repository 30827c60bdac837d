"""What people do to memory. Each is an event; what was said by whom stays in the log, except what was forgotten."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ports import Doc, EventQuery, Ref
from holdfast.features.memory import handoff, lookup
from holdfast.features.memory.model import (
    AGENT,
    CANDIDATE,
    FORGOTTEN,
    OBSERVATION,
    TYPES,
    USER,
    identity,
    line,
    observation_ref,
    project_ref,
    said,
    session_ref,
    settings_or_default,
    strings,
)  # fmt: skip
from holdfast.features.memory.observe import superseded
from holdfast.features.memory.rules.candidate import Candidate
from holdfast.features.memory.terms import files_in

IMPORTANCE = 8
SHORTEST_QUOTE, PROMPTS_LOOKED_AT = 3, 200


def add(call: Call) -> CommandResult:
    text, type_ = line(call.args.get("text")), str(call.args.get("type") or "discovery")
    if not text:
        raise CommandRefused("a memory needs a text", fix='For example: holdfast memory add "The API needs a token"')
    if type_ not in TYPES:
        raise CommandRefused(f"there is no type {type_!r}", fix=f"One of: {', '.join(TYPES)}")
    repo = lookup.repo(call, call.project)
    this = identity(repo or call.project, type_, text)
    _refuse_forgotten(call, this)
    files = strings(call.args.get("files")) or files_in(text)[:5]
    known = (call.reader.state(project_ref(repo or call.project)) or {"items": []})["items"]
    origin, evidence, uncertain = _whose_words(call, text)
    one = Candidate(
        type=type_,
        text=text,
        origin=origin,
        importance=IMPORTANCE,
        evidence=evidence,
        files=tuple(files),
        uncertain=uncertain,
    )
    event = said(
        "memory.observed", call.now, session=call.session, project=call.project, id=this, type=type_, text=text,
        detail="", origin=origin, importance=IMPORTANCE, files=files, evidence=list(evidence),
        pinned=bool(call.args.get("pin")) and not uncertain,
        supersedes=superseded(known, this, one, call.session, call.now), repo=repo,
        **({"status": CANDIDATE} if uncertain else {}),
    )  # fmt: skip
    return CommandResult((event,), answer=lambda reader: reader.state(observation_ref(this)))


def _whose_words(call: Call, text: str) -> tuple[str, tuple[int, ...], bool]:
    """Whose they are, where they were said, and whether a person decides first. Where agents are asked to propose, a
    proposal is the user's only if he is on record with these very words."""
    if not _by_agent(call):
        return USER, (), False
    if not settings_or_default(call.settings).agent_proposes:
        return AGENT, (), False
    said = _prompt_with(call, text)
    return (USER, (said,), False) if said else (AGENT, (), True)


def _prompt_with(call: Call, quote: str) -> int:
    """The number of a recent prompt that contains the quote; 0 when there is none, or the quote is too short to tell."""
    words = quote.lower().split()
    if len(words) < SHORTEST_QUOTE:
        return 0
    query = EventQuery(project=call.project, kinds=("prompt.submitted",), limit=PROMPTS_LOOKED_AT, newest=True)
    for event in reversed(call.reader.events(query)):
        if not event.get("synthetic") and " ".join(words) in " ".join(str(event.get("prompt") or "").lower().split()):
            return event.seq
    return 0


def _by_agent(call: Call) -> bool:
    return bool(call.session) or call.args.get("by") == "agent"


def _refuse_forgotten(call: Call, this: str) -> None:
    before = call.reader.state(observation_ref(this))
    if before and before["status"] == FORGOTTEN:
        raise CommandRefused("this was forgotten on purpose", fix="Say it in other words to have it remembered again.")


def pin(call: Call) -> CommandResult:
    doc = lookup.observation(call)
    return _about(call, doc, "memory.pinned", pinned=not call.args.get("off"))


def promote(call: Call) -> CommandResult:
    if _by_agent(call):
        raise CommandRefused("only a person can vouch for a memory", fix="Run it in your own terminal.")
    return _about(call, lookup.observation(call), "memory.promoted")


def keep(call: Call) -> CommandResult:
    """A candidate becomes a memory, as it was or in other words and another type."""
    if _by_agent(call):
        raise CommandRefused("only a person can keep a candidate", fix="Run it in your own terminal.")
    doc = _candidate(call)
    text, type_ = line(call.args.get("text")) or doc["text"], str(call.args.get("type") or doc["type"])
    if type_ not in TYPES:
        raise CommandRefused(f"there is no type {type_!r}", fix=f"One of: {', '.join(TYPES)}")
    place = doc["repo"] or doc["project"]
    this = doc["id"] if text == doc["text"] else identity(place, type_, text)
    known = (call.reader.state(project_ref(place)) or {"items": []})["items"]
    one = Candidate(type=type_, text=text, origin=USER, importance=IMPORTANCE, evidence=(), files=tuple(doc["files"]))
    event = said(
        "memory.kept", call.now, session=doc["session"], project=doc["project"], id=this, was=doc["id"], type=type_,
        text=text, detail="", origin=USER, importance=IMPORTANCE, files=doc["files"], evidence=doc["evidence"],
        supersedes=superseded(known, this, one, doc["session"], call.now), repo=doc["repo"],
    )  # fmt: skip
    return CommandResult((event,), answer=lambda reader: reader.state(observation_ref(this)))


def drop(call: Call) -> CommandResult:
    """The same words are not proposed again."""
    return _about(call, _candidate(call), "memory.dropped")


def _candidate(call: Call) -> Doc:
    doc = lookup.observation(call)
    if doc["status"] != CANDIDATE:
        raise CommandRefused(
            f"{doc['id']} is {doc['status']}, not a candidate", fix="See: holdfast memory list --candidates"
        )
    return doc


def forget(call: Call) -> CommandResult:
    """The text leaves the database, all that quotes it and the backups; what is left is that there was something."""
    wanted = lookup.anything(call)
    if isinstance(wanted, Event):
        from holdfast.features.memory.index.catalogue import text_of

        event = said(
            "memory.forgotten", call.now, session=wanted.session, project=wanted.project, id=f"e{wanted.seq}",
            of=wanted.seq, repo=wanted.get("repo", ""),
        )  # fmt: skip
        return CommandResult((event,), answer={"id": f"e{wanted.seq}", "forgotten": True}, erase=(text_of(wanted),))
    texts = tuple(text for text in (wanted["text"], wanted["detail"]) if text)
    event = _said(call, wanted, "memory.forgotten", wanted["session"])
    return CommandResult((event,), answer={"id": wanted["id"], "forgotten": True}, erase=texts)


def _about(call: Call, doc: Doc, kind: str, **data: Any) -> CommandResult:
    event = _said(call, doc, kind, call.session, **data)
    return CommandResult((event,), answer=lambda reader: reader.state(Ref(OBSERVATION, doc["id"])))


def _said(call: Call, doc: Doc, kind: str, session: str, **data: Any) -> Event:
    return said(kind, call.now, session=session, project=doc["project"], id=doc["id"], repo=doc["repo"], **data)


def hand_over(call: Call) -> CommandResult:
    session = str(call.args.get("session") or call.session or lookup.newest_session(call))
    doc = call.reader.state(session_ref(session)) if session else None
    if not doc:
        raise CommandRefused("no session of this project is known to memory", fix="See: holdfast sessions list")
    summary = handoff.summarise_session(call.reader.replay(session=session))
    text = handoff.packet(doc, summary, handoff.is_file_of(doc["project"]), line(call.args.get("note"), 300))
    this = identity(doc["project"], "handoff", f"{session} {call.now}")
    repo = lookup.repo(call, doc["project"])
    event = said("memory.handed_over", call.now, session=session, project=doc["project"], id=this, text=text, repo=repo)
    return CommandResult((event,), answer={"id": this, "session": session, "project": doc["project"], "text": text})
