"""Which gates stand in the way of a session: those that refused something, until they are satisfied or what they refused
was done after all."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.gates_events import SatisfiedPayload
from holdfast.features.sessions.state.documents import MAX_OPEN_GATES, OpenGate, Session, one_line
from holdfast.features.sessions.state.running_calls import about_call

END_OF_TURN = "end_of_turn"
REFUSALS = {"refused": "", "stop": END_OF_TURN, "let_go": END_OF_TURN}
"""How the feature `gates` says in a decision's details what it did → what it blocks, where that is no tool."""
NAME_LENGTH = 100


def open_gates(session: Session, event: Event) -> None:
    """The call that a denial is about is still known as running when the decision comes."""
    data: DecisionMade = event.data
    call = session.running.get(data.call or f"#{data.of}")
    gates = dict(session.open_gates)
    for how, name in _refusals(data):
        blocks = REFUSALS[how] or event.tool
        gates[name] = OpenGate(blocks=blocks, about=call.about if call else "", at=event.at)
    if gates != session.open_gates:
        session.open_gates = dict(list(gates.items())[-MAX_OPEN_GATES:])


def _refusals(data: DecisionMade) -> Iterator[tuple[str, str]]:
    for detail in data.details:
        how = str(detail.get("gate"))
        if how in REFUSALS:
            yield from ((how, name) for name in _names(detail.get("requirements")))


def _names(listed: Any) -> Iterator[str]:
    for one in listed or ():
        name = one.get("name") if isinstance(one, Mapping) else one
        if name:
            yield one_line(name, NAME_LENGTH)


def gates_satisfied(session: Session, event: Event) -> None:
    data: SatisfiedPayload = event.data
    _close(session, set(_names(data.requirements)))


def call_done(session: Session, event: Event) -> None:
    """The same call went through: whatever refused it has let it pass."""
    if session.open_gates:
        about = about_call(event)
        _close(
            session, [k for k, gate in session.open_gates.items() if (gate.blocks, gate.about) == (event.tool, about)]
        )


def turn_let_go(session: Session) -> None:
    """A new prompt after a refused stop: the turn did end."""
    if session.open_gates:
        _close(session, [k for k, gate in session.open_gates.items() if gate.blocks == END_OF_TURN])


def _close(session: Session, names: Iterable[str]) -> None:
    gone = set(names)
    if gone & session.open_gates.keys():
        session.open_gates = {name: gate for name, gate in session.open_gates.items() if name not in gone}
