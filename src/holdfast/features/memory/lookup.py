"""From what a person types to the thing meant."""

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, StateQuery
from holdfast.features.memory.model import FORGOTTEN, OBSERVATION, SESSION, observation_ref, place_ref

SAID = ("prompt.submitted", "turn.ended")
FIX = "Look for it with: holdfast memory search WORDS"


def anything(call: Call) -> Event | Doc:
    """`m…` is an observation, `e…` (or a bare number) something that was said."""
    wanted = str(call.args.get("id") or "").strip().strip("[]")
    number = wanted.removeprefix("e")
    if number.isdecimal() and len(number) < 19:
        event = call.reader.event(int(number))
        if event and event.kind in SAID:
            return event
        raise CommandRefused(f"nothing was said at {wanted}", fix=FIX)
    return observation(call)


def observation(call: Call) -> Doc:
    wanted = str(call.args.get("id") or "").strip().strip("[]")
    doc = call.reader.state(observation_ref(wanted)) if wanted else None
    if doc is None and len(wanted) >= 4:
        found = call.reader.states(StateQuery(kind=OBSERVATION, prefix=wanted, limit=2))
        doc = found[0][1] if len(found) == 1 else None
    if doc is None:
        raise CommandRefused(f"there is no memory {wanted!r}", fix=FIX)
    if doc["status"] == FORGOTTEN:
        raise CommandRefused(f"{doc['id']} was forgotten", fix=FIX)
    return doc


def repo(call: Call, project: str) -> str:
    """The repository this folder belongs to, as an agent in it last said; empty when none did."""
    known = call.reader.state(place_ref(project)) if project else None
    return known["repo"] if known else ""


def places(call: Call) -> list[str]:
    """Where the memories of the asking project are; none when all are wanted."""
    project = "" if call.args.get("everywhere") else str(call.args.get("project") or call.project)
    return list(dict.fromkeys(place for place in (repo(call, project), project) if place))


def newest_session(call: Call) -> str:
    found = call.reader.states(StateQuery(kind=SESSION, project=call.project, limit=1))
    return found[0][1]["id"] if found else ""
