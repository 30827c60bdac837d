"""Events → documents. Pure: time is the event's, settings are not known here (what needs them was put into events)."""

from holdfast.core.event import Event
from holdfast.core.ports import Doc, Ref
from holdfast.features.gates import attention, branches, facts, registry, sessions
from holdfast.features.gates.refs import ATTENTION, BRANCH, CHECK, FACTS, LIVE, PAUSE, RULES, SESSION, TOOLS, UAT


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    return REDUCERS[ref.kind](doc, event)


def _facts(doc: Doc | None, event: Event) -> Doc | None:
    if event.kind in TOOLS:
        return facts.with_tool(doc, event)
    if event.kind == CHECK:
        return facts.with_check(doc, event)
    if event.kind in UAT:
        return facts.with_uat(doc, event)
    return facts.with_measure(doc, event) if event.kind == "gates.measured" else facts.with_look(doc, event)


def _pause(_doc: Doc | None, event: Event) -> Doc:
    paused = event.kind == "gates.paused"
    until = event.data.get("until", 0) if paused else -1
    return {
        "where": event.data.get("where", ""), "status": "paused" if paused else "", "at": event.at, "until": until,
        "why": str(event.data.get("why", ""))[:500],
    }  # fmt: skip


REDUCERS = {
    BRANCH: branches.changed,
    SESSION: sessions.changed,
    FACTS: _facts,
    LIVE: registry.changed,
    PAUSE: _pause,
    RULES: attention.with_rules,
    ATTENTION: attention.with_event,
}
