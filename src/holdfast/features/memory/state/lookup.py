"""Finds the memory, session or project that a person means."""

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds.agent_events import PromptSubmitted, TurnEnded
from holdfast.core.kinds.memory_events import RememberedPayload
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.features.memory.state.documents import FORGOTTEN, OBSERVATION, PLACE, SESSION, Observation, place_ref

SAID = ("prompt.submitted", "turn.ended", "turn.answer_read")
FIX = "Look for it with: holdfast memory search WORDS"


def find_memory_or_event(call: Call) -> Event | Observation:
    """`m…` is an observation, `e…` (or a bare number) something that was said."""
    wanted_id = str(call.args.get("id") or "").strip().strip("[]")
    number = wanted_id.removeprefix("e")
    # 19 digits and more do not fit SQLite's 64-bit row numbers.
    if number.isdecimal() and len(number) < 19:
        event = call.reader.event(int(number))
        if event and event.kind in SAID:
            return event
        raise CommandRefused(f"nothing was said at {wanted_id}", fix=FIX)
    return find_observation(call)


def find_observation(call: Call) -> Observation:
    wanted_id = str(call.args.get("id") or "").strip().strip("[]")
    doc = OBSERVATION.load(call.reader, wanted_id) if wanted_id else None
    if doc is None and len(wanted_id) >= 4:
        # Two, to see whether the prefix is ambiguous.
        matches = OBSERVATION.list(call.reader, prefix=wanted_id, limit=2)
        doc = matches[0][1] if len(matches) == 1 else None
    if doc is None:
        raise CommandRefused(f"there is no memory {wanted_id!r}", fix=FIX)
    if doc.status == FORGOTTEN:
        raise CommandRefused(f"{doc.id} was forgotten", fix=FIX)
    return doc


def text_of(event: Event) -> str:
    """The words of a prompt, an answer or an observation."""
    data = event.data
    if isinstance(data, PromptSubmitted):
        return data.prompt
    if isinstance(data, TurnEnded | TurnAnswerRead):
        return data.message
    return data.text if isinstance(data, RememberedPayload) else ""


def repo_of_project(call: Call, project: str) -> str:
    """The repository of this folder, as an agent in it last reported; empty if none did."""
    doc = PLACE.load(call.reader, place_ref(project).key) if project else None
    return doc.repo if doc else ""


def memory_places(call: Call) -> list[str]:
    """Where the asking project's memories are; none if all are wanted."""
    project = "" if call.args.get("everywhere") else str(call.args.get("project") or call.project)
    return list(dict.fromkeys(location for location in (repo_of_project(call, project), project) if location))


def newest_session(call: Call) -> str:
    rows = SESSION.list(call.reader, project=call.project, limit=1)
    return rows[0][1].id if rows else ""


def is_agent(call: Call) -> bool:
    """If the settings require a code, an unidentified caller counts as the agent."""
    if call.args.get("by") == "agent":
        return True
    unsure = not call.who.certain and call.surroundings().code_without_terminal
    return call.who.is_agent or unsure
