"""What the gates decide, and what follows from an event: refusals, notices, what was satisfied, used up or got round."""

# Pure.

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.agent import known_agent
from holdfast.core.decision import Context, Decision, deny_decision
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.kinds import HookPayload, JsonObject, ToolEndPayload, ToolPayload
from holdfast.core.kinds.agent_events import PromptExpanded, PromptSubmitted, TurnEnded
from holdfast.core.kinds.gates_events import (
    GatePayload,
    GatesApproved,
    GatesAttempted,
    GatesCleared,
    GatesSatisfied,
    GatesTriggered,
    SatisfiedRequirement,
)
from holdfast.core.kinds.session_events import ToolExitRead
from holdfast.core.lazy import lazy_pattern
from holdfast.features.gates.bypasses import find_bypasses, passed_in
from holdfast.features.gates.events import TEAM_RULES, action_of, branch_of, repo_of
from holdfast.features.gates.jobs import wants_look, wants_measure, wants_usage
from holdfast.features.gates.kinds.base import Finding
from holdfast.features.gates.kinds.evidence import evidence_of
from holdfast.features.gates.observations import HEAD
from holdfast.features.gates.rules import messages
from holdfast.features.gates.rules.checker import Checker, RequestContext
from holdfast.features.gates.rules.in_force import any_in_force, note_in_force, review_rules, rules_in_force
from holdfast.features.gates.rules.proof import globs_key
from holdfast.features.gates.rules.triggered import triggered_rules
from holdfast.features.gates.rules.triggers import Rule, acts_of
from holdfast.features.gates.state import GateDetail, GateSession, live_sessions

if TYPE_CHECKING:
    from holdfast.features.gates.settings import GateSettings

replace = msgspec.structs.replace
# The beginning of a command → what a refusal calls it.
PERSONS_ACTS = {
    "holdfast gate approve": "approving",
    "holdfast gate accept": "accepting looser rules",
    "holdfast gate pause": "pausing the gates",
    "holdfast config set": "changing Holdfast's settings",
    "holdfast config trust": "trusting a project's settings",
    "holdfast daemon stop": "stopping Holdfast",
    "holdfast daemon restart": "stopping Holdfast",
    "holdfast uninstall": "removing Holdfast",
    "holdfast memory forget": "erasing what is on record",
    "holdfast forget": "erasing what is on record",
    "holdfast data erase": "erasing what is on record",
    "holdfast erase": "erasing what is on record",
    "holdfast gate codes": "looking at a person's codes",
    "holdfast dashboard": "the dashboard's way in",
}
# python -m holdfast.doors.cli
_OUR_MODULE = lazy_pattern(r"python\S* holdfast(?:\.|$)")
# What `ToolPayload.touches` names → how it is called in a refusal.
TOUCHED = {
    "state": "Holdfast's own files",
    "settings": "your person's rules",
    "hooks": "the hooks that Holdfast is called by",
    "daemon": "Holdfast's daemon",
    "pause": "whether an agent is checked at all",
}


def protect_itself(event: Event, settings: "GateSettings") -> Decision | None:
    data = event.data
    if not isinstance(data, ToolPayload) or settings.agents_may_approve:
        return None
    acts = [what for reading in acts_of(event).readings if (what := _persons_act(reading, settings))]
    if acts:
        return _refuse_act(
            f"Refused: {acts[0]} is for a person, in a terminal of their own or in the dashboard.", acts[0]
        )
    if data.touches:
        what = TOUCHED.get(data.touches[0], data.touches[0])
        return _refuse_act(f"Refused: this would change {what}. A person can do that; an agent cannot.", what)
    return None


def _persons_act(reading: str, settings: "GateSettings") -> str:
    """What a refusal calls it; empty for what an agent may do."""
    if "holdfast" not in reading:
        return ""
    # Options may stand anywhere; without them the verb is in a fixed place.
    words = [word for word in reading.split(" ") if not word.startswith("-")]
    if _OUR_MODULE.match(" ".join(words[:2])):
        words = ["holdfast", *words[2:]]
    text = " ".join(words[:3])
    if text == "holdfast gate satisfy":
        rules = filter(None, map(settings.by_name.get, words[3:]))
        return next((f"satisfying {rule.name}" for rule in rules if not _may_satisfy(rule)), "")
    return next((what for act, what in PERSONS_ACTS.items() if f"{text} ".startswith(f"{act} ")), "")


def _may_satisfy(rule: Rule) -> bool:
    return rule.spec.manual and rule.spec.agent_may_satisfy


def _refuse_act(text: str, what: str) -> Decision:
    return deny_decision(text, details=_detail_dicts(GateDetail(gate="protected", what=what)))


def derive(state: State, event: Event, settings: "GateSettings | None") -> Iterable[Event]:
    if event.kind in TEAM_RULES:
        note_in_force()
    # Nobody ever asked for anything in most projects.
    if settings is None or not event.session or not (settings.rules or any_in_force()):
        return
    if is_claimed(event):
        yield from _note_claim(event, settings)
        return
    if event.kind in REVIEWING:
        yield from review_rules(state, event, settings)
    if event.kind in DERIVATIONS and (rules := rules_in_force(state, event.project, settings)).rules:
        yield from DERIVATIONS[event.kind](state, event, rules)


def _note_claim(event: Event, settings: "GateSettings") -> Iterable[Event]:
    """A hook called by hand is how an agent could make up facts."""
    if event.kind in CLAIMS and settings.rules:
        yield derived_event(event, GatesAttempted(act=CLAIMED_ACT, why="it is kept as a claim and proves nothing"))


def as_satisfied(rule: Rule, at: int) -> SatisfiedRequirement:
    """A requirement as `gates.satisfied` names it: with the scope and the end it has by today's rules."""
    return SatisfiedRequirement(
        name=rule.name, scope=rule.scope, until=at + rule.spec.ttl * 1000 if rule.spec.ttl else 0
    )


def gate_event(event: Event, payload: GatePayload) -> Event:
    """What follows from an event, on the branch that it happened on."""
    where = replace(payload, branch=branch_of(event), repo=repo_of(event), of=event.seq)
    return replace(derived_event(event, where), tool="")


def _derive_triggered(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """Once it was done: a call that was refused asks for nothing later."""
    checker = Checker(state, RequestContext.of(event))
    # Once per session is enough: what was triggered stays so.
    names = [rule.name for rule in triggered_rules(settings, event) if rule.name not in checker.session.triggered]
    if names and not is_paused(event) and not checker.paused():
        yield gate_event(event, GatesTriggered(requirements=names, tool=event.tool))


def _derive_failed(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """A command that failed may have done the half of it."""
    if action_of(event) == "shell":
        yield from _derive_triggered(state, event, settings)
        yield from find_bypasses(state, event, settings)


def _derive_prompted(_state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """`/arch-review`, where the agent does not tell of skills that a person typed."""
    data = event.data
    if isinstance(data, PromptSubmitted) and data.prompt.startswith("/") and not data.synthetic:
        yield from _by_skill(event, settings, next(iter(data.prompt[1:].split(maxsplit=1)), ""))


def _derive_finished(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    data = event.data
    if not isinstance(data, ToolEndPayload) or data.ok is False:
        return
    yield from _derive_triggered(state, event, settings)
    yield from find_bypasses(state, event, settings)
    if data.skill:
        yield from _by_skill(event, settings, data.skill)
    yield from _use_up(state, event, settings)


def _derive_expanded(_state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """A person typed `/arch-review`: no tool is called, the skill comes as the prompt."""
    if isinstance(event.data, PromptExpanded):
        yield from _by_skill(event, settings, event.data.command.lstrip("/"))


def _by_skill(event: Event, settings: "GateSettings", skill: str) -> Iterable[Event]:
    rules = [rule for rule in settings.rules if rule.resolved_by(skill) and rule.kind.is_task]
    if rules:
        named = [as_satisfied(rule, event.at) for rule in rules]
        yield gate_event(event, GatesSatisfied(requirements=named, method="skill", metadata={"skill": skill}))


def _use_up(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """After the action succeeded, not before (S2-12): a commit that failed leaves the review standing."""
    if isinstance(event.data, ToolEndPayload) and event.data.exit_code:
        return
    checker = Checker(state, RequestContext.of(event))
    passed = passed_in(checker.session, event.data.call) if isinstance(event.data, ToolEndPayload) else set()
    shown = [rule for rule in triggered_rules(settings, event) if _is_used(checker, event, rule)]
    done = [*shown, *(rule for rule in settings.rules if rule.name in passed and rule not in shown)]
    names = [rule.name for rule in done if rule.scope == "single_use"]
    if names:
        yield gate_event(event, GatesCleared(requirements=names, method="used"))


def _is_used(checker: Checker, event: Event, rule: Rule) -> bool:
    """Proven rules have no entry to clear; their proof is marked as used."""
    entry = rule.kind.is_proven or checker.branch.entry_for(rule.name, event.session, event.at)
    return bool(entry) and not _did_not_commit(checker.session, event, rule)


def _did_not_commit(before: GateSession, event: Event, rule: Rule) -> bool:
    """Where the agent reports no exit code (Codex), git shows it: the branch has not moved, so nothing was committed."""
    data = event.data
    if not isinstance(data, ToolEndPayload) or data.exit_code is not None or not rule.is_about("git commit"):
        return False
    was, now = before.refs.get(HEAD), data.refs.get(HEAD)
    others = [one for one in acts_of(event).readings if rule.is_about(one) and not one.startswith("git commit")]
    return bool(was and now) and was == now and not others


def _give_back(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """A call that used something up turns out to have failed, by an exit code that was read later."""
    data = event.data
    if not isinstance(data, ToolExitRead) or not data.exit_code:
        return
    requirements = Checker(state, RequestContext.of(event)).branch.requirements
    for rule in settings.rules:
        used = (
            requirements[rule.name].used.get(event.session)
            if rule.scope == "single_use" and rule.name in requirements
            else None
        )
        # A newer entry of the session counts already, and must not be replaced by the old one.
        if used is None or used.of != data.of or event.session in requirements[rule.name].sessions:
            continue
        entry = used.entry
        restored = SatisfiedRequirement(name=rule.name, scope=rule.scope, until=entry.until)
        made = GatesApproved if entry.approved else GatesSatisfied
        metadata = {**entry.metadata, "given_back": data.of}
        yield gate_event(event, made(requirements=[restored], method=entry.by, metadata=metadata))


def _carry_over(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """`carry_over`: a plan approved a moment ago holds for the next session on that branch, and it is said whose."""
    branch = Checker(state, RequestContext.of(event)).branch
    for rule in settings.rules:
        if not rule.spec.carry_over or not rule.kind.is_task or rule.scope != "session":
            continue
        recent = branch.recent_of_others(rule.name, event.session, event.at - rule.spec.carry_over * 1000)
        if recent and not branch.entry_for(rule.name, event.session, event.at):
            source = {"from": recent[0], "satisfied_at": recent[1].at, "by": recent[1].by}
            named = [as_satisfied(rule, event.at)]
            yield gate_event(event, GatesSatisfied(requirements=named, method="carry_over", metadata=source))


def _session_ended(_state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    if settings.hooks.session_end.clear_session_state:
        names = [rule.name for rule in settings.rules if rule.scope == "session"]
        yield gate_event(event, GatesCleared(requirements=names, method="session_end"))


CLAIMS = frozenset({"tool.finished", "tool.failed", "prompt.submitted", "prompt.expanded", "session.ended"})
CLAIMED_ACT = "a hook that was called by a command of the agent, not by the agent"
REVIEWING = frozenset(
    {"session.started", "prompt.submitted", "tool.started", "tool.finished", "tool.failed", "turn.ended"}
)
DERIVATIONS = {
    "tool.finished": _derive_finished,
    "tool.failed": _derive_failed,
    "tool.exit_read": _give_back,
    "prompt.submitted": _derive_prompted,
    "prompt.expanded": _derive_expanded,
    "session.started": _carry_over,
    "session.ended": _session_ended,
}


# In milliseconds: parallel calls of one turn get the long text only once.
SAME_MOMENT_MS = 5_000
MOST_NOTICES = 10


def can_decide(kind: str, settings: "GateSettings | None") -> bool:
    return kind in DECISIONS and settings is not None and (bool(settings.rules or settings.notices) or any_in_force())


def decide(state: State, event: Event, settings: "GateSettings | None") -> Decision | None:
    if settings is None or is_paused(event):
        return None
    settings = rules_in_force(state, event.project, settings)
    checker = Checker(state, RequestContext.of(event))
    if event.kind == "tool.started":
        # The cheap questions come first, because most calls concern no rule.
        if not settings.rules:
            return None
        # Before any rule: with these acts a session could switch the rules off.
        if refusal := protect_itself(event, settings):
            return refusal
        if not triggered_rules(settings, event) and not checker.session.bypassed:
            return None
    return None if checker.paused() else DECISIONS[event.kind](checker, event, settings)


def _decide_tool(checker: Checker, event: Event, settings: "GateSettings") -> Decision | None:
    # Where it is unknown whether something was bypassed, it is shown to the person and nothing is refused.
    if seen := [one for one in checker.session.bypassed if "unknown" not in one.what]:
        return deny_decision(messages.bypass_message(seen), details=_detail_dicts(GateDetail(gate="bypass")))
    findings = [checker.check(rule) for rule in triggered_rules(settings, event) if rule.at_tool]
    refused = [one for one in findings if not one.ok]
    if refused and all(one.rule.kind.asks for one in refused) and _can_ask(event):
        return Decision(verdict="ask", reasons=(messages.question(refused),), details=_open_details("asked", refused))
    return _refuse_tool(checker, event, refused) if refused else _warn_of_amounts(checker, findings)


def _can_ask(event: Event) -> bool:
    """Whether this agent asks its person when a hook says so."""
    agent = known_agent(event.agent)
    question = Decision(verdict="ask", reasons=("?",))
    return agent is not None and agent.carried(event, question).verdict == "ask"


def _refuse_tool(checker: Checker, event: Event, refused: Sequence[Finding]) -> Decision:
    before = checker.session.denied
    names = sorted([one.rule.name for one in refused])
    same = before.names == names and 0 <= event.at - before.at < SAME_MOMENT_MS
    text = (
        messages.repeated_refusal(refused) if same else messages.refusal_message(refused, checker.context, event.tool)
    )
    return deny_decision(text, details=_open_details("refused", refused))


def _warn_of_amounts(checker: Checker, findings: Sequence[Finding]) -> Decision | None:
    warned = checker.session.warned
    large = [
        one for one in findings
        if one.amount >= (kind := one.rule.kind).warn_from(one.rule)
        and one.amount >= warned.get(one.rule.name, -kind.warn_step) + kind.warn_step
    ]  # fmt: skip
    if not large:
        return None
    details = [GateDetail(gate="warned", name=one.rule.name, lines=one.amount) for one in large]
    return Decision(
        contexts=(Context("gates", "\n".join(one.rule.kind.warning(one) for one in large)),),
        details=_detail_dicts(*details),
    )


def _decide_stop(checker: Checker, event: Event, settings: "GateSettings") -> Decision | None:
    stop, doc = settings.hooks.stop, checker.session
    again = isinstance(event.data, TurnEnded) and event.data.again
    # The second: somebody else's hook refused, and we do not add to their loop.
    if not stop.verify_requirements or (again and not doc.stops):
        return None
    refused = _open_at_stop(checker, event, settings)
    if not refused:
        return None
    # Where something refused before is done now, the count starts again.
    times = doc.stops if {one.rule.name for one in refused}.issuperset(doc.stop_names) else 0
    if times >= stop.max_refusals:
        return Decision(notices=(messages.let_go(refused, times),), details=_open_details("let_go", refused))
    text = messages.not_done(refused, checker.context, stop.max_refusals - times - 1)
    return deny_decision(text, details=_open_details("stop", refused))


def _open_at_stop(checker: Checker, event: Event, settings: "GateSettings") -> list[Finding]:
    asked = (rule for rule in settings.rules if rule.asked_at_stop(settings.hooks.stop.verify_scopes))
    findings = [checker.check(rule) for rule in asked if _concerns_session(rule, checker, event)]
    return [one for one in findings if not one.ok]


def _concerns_session(rule: Rule, checker: Checker, event: Event) -> bool:
    """A session is asked for what it did: by its tool calls, or by the content that it leaves. What was undone again
    needs no proof."""
    used = rule.name in checker.session.triggered
    changed = _changed_content(rule, checker)
    if changed is None:
        return used
    # Another session in the same folder may have made the change.
    return changed and (used or not live_sessions(checker.state).others(event.session, event.project))


def _changed_content(rule: Rule, checker: Checker) -> bool | None:
    """Whether the session leaves other content than it found; None where that is unknown or no question."""
    evidence = evidence_of(rule.spec)
    # Skills, commits and scenarios are not about content.
    if not rule.kind.is_proven or not all(one.is_run for one in evidence):
        return None
    keys = [globs_key(rule.spec.paths or one.after_edit) for one in evidence]
    began, now = (list(map(content.get, keys)) for content in (checker.session.began, checker.context.content))
    if not all(began + now):
        return None
    return began != now or checker.proof_question(rule).proved_other_content()


def _decide_start(checker: Checker, event: Event, settings: "GateSettings") -> Decision:
    decision = _decide_notices(checker, event, settings) or Decision()
    if not settings.rules or not settings.hooks.session_start.inject_context:
        return decision
    others = live_sessions(checker.state).others(event.session, event.project)
    findings = [checker.check(rule) for rule in settings.rules]
    text = messages.at_start(findings, others, settings.hooks.stop.verify_scopes)
    return Decision(contexts=(Context("gates", text, 70),), notices=decision.notices, details=decision.details)


def _decide_notices(checker: Checker, _event: Event, settings: "GateSettings") -> Decision | None:
    """What is wrong with the settings, to the person, once per session and change."""
    missing = [f"Gates: no skill named {skill} was found." for skill in checker.facts.missing]
    shown_digests = checker.session.told
    seen = [f"Gates: {messages.bypass_line(one)}" for one in checker.session.bypassed]
    waits = [f"Gates: {messages.waiting_line(text)}" for text in settings.waiting]
    notices = [f"Gates: {notice}" for notice in settings.notices]
    by_digest = {messages.text_digest(text): text for text in [*waits, *notices, *missing, *seen]}
    # Digests and not texts are kept, so a notice that changes is shown again.
    unseen = [(digest, text) for digest, text in by_digest.items() if digest not in shown_digests]
    fresh = dict(unseen[:MOST_NOTICES])
    details = _detail_dicts(GateDetail(gate="told", digests=list(fresh)))
    return Decision(notices=tuple(fresh.values()), details=details) if fresh else None


def _open_details(gate: str, findings: Sequence[Finding]) -> tuple[JsonObject, ...]:
    return _detail_dicts(GateDetail(gate=gate, requirements=[one.as_open() for one in findings]))


def _detail_dicts(*details: GateDetail) -> tuple[JsonObject, ...]:
    return tuple(map(GateDetail.as_dict, details))


def is_claimed(event: Event) -> bool:
    return isinstance(event.data, HookPayload) and event.data.claimed


def is_paused(event: Event) -> bool:
    return isinstance(event.data, HookPayload) and event.data.paused


DECISIONS = {
    "tool.started": _decide_tool,
    "turn.ended": _decide_stop,
    "session.started": _decide_start,
    "prompt.submitted": _decide_notices,
}


def enqueue(state: State, event: Event, settings: "GateSettings | None") -> Iterable[Job]:
    if not settings or not settings.rules:
        return ()
    jobs = (*wants_measure(state, event, settings), *wants_look(state, event, settings))
    return (*jobs, *wants_usage(event, settings))
