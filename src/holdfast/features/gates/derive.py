"""What an event means by the rules of the moment: triggered, satisfied, used up. Recorded, so replay needs no rules."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.features.gates.branches import entry_for, recent_of_others
from holdfast.features.gates.check import Checker, Here
from holdfast.features.gates.bypasses import find_bypasses
from holdfast.features.gates.in_force import review_rules, rules_in_force
from holdfast.features.gates.refs import SESSION, branch_ref
from holdfast.features.gates.rules import Rule
from holdfast.features.gates.triggers import triggered

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings


def derive(state: State, event: Event, settings: "GateSettings | None") -> Iterable[Event]:
    if settings is None or not event.session or event.data.get("claimed"):
        return
    if event.kind in REVIEWING:
        yield from review_rules(state, event, settings)
    rules = rules_in_force(state, event.project, settings)
    step = STEPS.get(event.kind)
    if step and rules.rules:
        yield from step(state, event, rules)


def asked(rule: Rule, at: int) -> dict[str, Any]:
    """A requirement as `gates.satisfied` names it: with the scope and the end it has by today's rules."""
    until = {"until": at + rule.spec.ttl * 1000} if rule.spec.ttl else {}
    return {"name": rule.name, "scope": rule.scope, **until}


def said(event: Event, kind: str, **data: Any) -> Event:
    where = {name: event.data[name] for name in ("branch", "repo") if event.data.get(name)}
    return Event(key="", kind=kind, at=event.at, session=event.session, project=event.project, agent=event.agent,
                 data={**where, **data, "of": event.seq})  # fmt: skip


def _triggered(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """Once it was done: a call that was refused asks for nothing later."""
    known = (state.get(SESSION, event.session) or {}).get("triggered", {})
    names = [rule.name for rule in triggered(settings, event) if rule.name not in known]
    if names and not event.data.get("paused") and not Checker(state, Here.of(event)).paused():
        yield said(event, "gates.triggered", requirements=names, tool=event.tool)


def _failed(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """A command that failed may have done the half of it."""
    if event.data.get("action") == "shell":
        yield from _triggered(state, event, settings)
        yield from find_bypasses(state, event, settings)


def _prompted(_state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """`/arch-review`, where the agent does not tell of skills that a person typed."""
    prompt = event.data.get("prompt") or ""
    if prompt.startswith("/") and not event.data.get("synthetic"):
        yield from _by_skill(event, settings, prompt[1:].split(maxsplit=1)[0] if prompt[1:].strip() else "")


def _finished(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    if event.data.get("ok") is False:
        return
    yield from _triggered(state, event, settings)
    yield from find_bypasses(state, event, settings)
    if skill := event.data.get("skill"):
        yield from _by_skill(event, settings, skill)
    yield from _used(state, event, settings)


def _expanded(_state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """A person typed `/arch-review`: no tool is called, the skill comes as the prompt."""
    if isinstance(command := event.data.get("command"), str):
        yield from _by_skill(event, settings, command.lstrip("/"))


def _by_skill(event: Event, settings: "GateSettings", skill: str) -> Iterable[Event]:
    rules = [rule for rule in settings.rules if rule.resolved_by(skill) and rule.type in ("blocking", "stop_only")]
    if rules:
        named = [asked(rule, event.at) for rule in rules]
        yield said(event, "gates.satisfied", requirements=named, method="skill", metadata={"skill": skill})


def _used(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """After the action succeeded, not before (S2-12): a commit that failed leaves the review standing."""
    if event.data.get("exit_code"):
        return
    single = [rule for rule in triggered(settings, event) if rule.scope == "single_use"]
    if not single:
        return
    ref = branch_ref(event)
    doc = state.get(ref.kind, ref.key)
    names = [r.name for r in single if r.type == "evidence" or entry_for(doc, r.name, event.session, event.at)]
    if names:
        yield said(event, "gates.cleared", requirements=names, method="used")


def _began(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """`carry_over`: a plan approved a moment ago holds for the next session on that branch, and it is said whose."""
    ref = branch_ref(event)
    doc = state.get(ref.kind, ref.key)
    for rule in settings.rules:
        if not rule.spec.carry_over or rule.type not in ("blocking", "stop_only") or rule.scope != "session":
            continue
        found = recent_of_others(doc, rule.name, event.session, event.at - rule.spec.carry_over * 1000)
        if found and not entry_for(doc, rule.name, event.session, event.at):
            source = {"from": found[0], "satisfied_at": found[1]["at"], "by": found[1]["by"]}
            yield said(
                event, "gates.satisfied", requirements=[asked(rule, event.at)], method="carry_over", metadata=source
            )


def _ended(_state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    if settings.hooks.session_end.clear_session_state:
        names = [rule.name for rule in settings.rules if rule.scope == "session"]
        yield said(event, "gates.cleared", requirements=names, method="session_end")


REVIEWING = frozenset({"session.started", "prompt.submitted", "tool.started", "tool.finished", "tool.failed", "turn.ended"})
STEPS = {
    "tool.finished": _finished,
    "tool.failed": _failed,
    "prompt.submitted": _prompted,
    "prompt.expanded": _expanded,
    "session.started": _began,
    "session.ended": _ended,
}
