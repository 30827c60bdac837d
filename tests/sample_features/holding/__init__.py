"""A room that refuses a session's first end of a turn, so that a test can see an agent go on."""

from holdfast.core.decision import Decision, deny_decision
from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.ports import Doc, Ref


def keys(event: Event) -> list[Ref]:
    return [Ref("holding", event.session)] if event.session and not event.get("lane") else []


def reduce(doc: Doc | None, _event: Event, _ref: Ref) -> Doc:
    return {"ends": (doc or {"ends": 0})["ends"] + 1}


def decide(state: State, event: Event, _settings: object) -> Decision | None:
    ends = (state.get("holding", event.session) or {}).get("ends", 0)
    return deny_decision("NOT-YET: say it again.") if ends == 1 else None


FEATURE = Feature(name="holding", subscribed_kinds=frozenset({"turn.ended"}), keys=keys, reduce=reduce, decide=decide)
