"""What people ask the gates: the status, what needs attention, why something was refused, what other rules would have refused."""

import dataclasses
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from holdfast.core.decision import Decision
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ids import session_alias
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.agent_events import TurnEnded
from holdfast.core.kinds.engine_events import AnswerUndelivered, DecisionMade
from holdfast.core.kinds.gates_events import GatePayload
from holdfast.core.ports import EventQuery, Reader, Ref
from holdfast.core.replay import fold_events
from holdfast.core.transaction import decision_event
from holdfast.features.gates import commands, events
from holdfast.features.gates.commands import settings_of
from holdfast.features.gates.events import EVERYWHERE, action_of, branch_ref, keys, repo_or_project
from holdfast.features.gates.jobs import find_main_branch, missing_skills
from holdfast.features.gates.kinds.base import resolution_text
from holdfast.features.gates.observations import look_at_content
from holdfast.features.gates.packages import package_requirements
from holdfast.features.gates.policy import DECISIONS, DERIVATIONS, REVIEWING, decide, derive
from holdfast.features.gates.rules.checker import Checker, RequestContext
from holdfast.features.gates.rules.messages import waiting_line
from holdfast.features.gates.rules.triggered import triggered_rules
from holdfast.features.gates.rules.triggers import Rule
from holdfast.features.gates.settings import GateSettings, presets
from holdfast.features.gates.state import ATTENTIONS, BRANCHES, FOLDED, PAUSES, Documents, details_of
from holdfast.features.gates.state.attention import Attention, Pause
from holdfast.features.gates.state.branches import BranchState, LiveSession

PAGE = 2_000


def state_before(reader: Reader, event: Event) -> Documents:
    """After the event itself, before what was answered to it: as `decide` saw it."""
    state, refs = Documents(), _refs_of(event)
    feature = dataclasses.replace(FOLDED, keys=lambda one: [ref for ref in keys(one) if ref in refs])
    # Both queries may give the same event; by number each is there once.
    once = {one.seq: one for one in _events_before(reader, event)}
    fold_events(feature, once.values(), state.docs)
    return state


def _events_before(reader: Reader, event: Event) -> Iterator[Event]:
    """What happened in this project, and what the gates themselves said anywhere: a branch is shared by worktrees."""
    here = EventQuery(
        # Events of the gates are read without the project, by the second query.
        kinds=tuple(sorted(events.SUBSCRIBED_KINDS - set(events.KINDS))),
        project=event.project,
        before=event.seq + 1,
        limit=PAGE,
    )
    gate_events = EventQuery(kinds=tuple(sorted(events.KINDS)), before=event.seq + 1, limit=PAGE)
    return heapq.merge(_paged_events(reader, here), _paged_events(reader, gate_events), key=lambda one: one.seq)


def _paged_events(reader: Reader, query: EventQuery) -> Iterator[Event]:
    after = 0
    while page := reader.events(msgspec.structs.replace(query, after=after)):
        yield from page
        after = page[-1].seq


def _refs_of(event: Event) -> set[Ref]:
    pauses = {Ref(events.PAUSE, where) for where in (EVERYWHERE, repo_or_project(event), f"session:{event.session}")}
    return {
        Ref(events.SESSION, event.session),
        Ref(events.FACTS, event.project),
        branch_ref(event),
        events.REGISTRY,
    } | pauses


SIMULATED_KINDS = tuple(
    sorted(
        {"tool.started", "prompt.expanded", "gates.measured", events.ANSWERED} | events.LIFE | events.TOOLS | events.UAT
    )
)
"""What the rules look at. What the gates themselves said back then is left out: these rules speak for themselves."""
CALLS = events.TOOLS | {"tool.started"}
BY_HAND = frozenset({"gates.satisfied", "gates.approved", "gates.cleared"})
JUDGED = frozenset({"tool.started", "turn.ended"})
MOST_CASES = 500


class Simulation(Documents):
    """What these rules would have said, event by event, with documents in memory."""

    def __init__(self, settings: GateSettings) -> None:
        super().__init__()
        self.settings = settings

    def apply_event(self, event: Event) -> Decision | None:
        if event.kind in CALLS and self._of_no_concern(event):
            return None
        fold_events(FOLDED, [event], self.docs)
        if event.kind in DERIVATIONS or event.kind in REVIEWING:
            # Folded as if they had the number of their cause, because they were never stored.
            made = [msgspec.structs.replace(one, seq=event.seq) for one in derive(self, event, self.settings)]
            fold_events(FOLDED, made, self.docs)
        if event.kind not in DECISIONS:
            return None
        decision = decide(self, event, self.settings)
        if decision is not None and decision.details:
            fold_events(FOLDED, [msgspec.structs.replace(decision_event(event, decision), seq=event.seq)], self.docs)
        return decision

    def _of_no_concern(self, event: Event) -> bool:
        """Most calls of most sessions only look; they leave no fact and no rule asks about them."""
        return action_of(event) not in events.LEAVE_FACTS and not self.settings.index.of(event)


def simulate_rules(reader: Reader, settings: GateSettings, *, since: int = 0, project: str = "") -> dict[str, Any]:
    """Cases in full up to a limit, counts of all. A session is judged whole only if it began inside that time."""
    stage = Simulation(settings)
    seen, refused, cases = Counter[str](), Counter[str](), list[dict[str, Any]]()
    for event in recorded_events(reader, since, project):
        decision = stage.apply_event(event)
        if event.kind in JUDGED:
            seen[event.kind] += 1
            if decision is not None and decision.verdict == "deny":
                refused[event.kind] += 1
                if len(cases) < MOST_CASES:
                    cases.append(_refused_case(event, decision))
    return {
        "events": reader.head(), "calls": seen["tool.started"], "stops": seen["turn.ended"],
        "refused_calls": refused["tool.started"], "refused_stops": refused["turn.ended"], "cases": cases,
    }  # fmt: skip


def recorded_events(reader: Reader, since: int, project: str) -> Iterator[Event]:
    query = EventQuery(kinds=(*SIMULATED_KINDS, *BY_HAND), since=since, project=project, limit=PAGE)
    return (event for event in _paged_events(reader, query) if event.kind not in BY_HAND or _is_by_hand(event))


def _is_by_hand(event: Event) -> bool:
    """What people did holds under any rules; what followed from the rules of then does not."""
    return isinstance(event.data, GatePayload) and event.data.method in ("person", "agent")


def _refused_case(event: Event, decision: Decision) -> dict[str, Any]:
    details = details_of(DecisionMade(details=list(decision.details)))
    names = [one.name for detail in details for one in detail.requirements]
    return {"seq": event.seq, "at": event.at, "session": event.session, "kind": event.kind, "tool": event.tool,
            "what": what_of(event)[:200], "requirements": names, "reason": "\n".join(decision.reasons)}  # fmt: skip


def what_of(event: Event | None) -> str:
    """What a call was about to do, or what a turn ended with."""
    data = event.data if event else None
    if isinstance(data, ToolPayload):
        return data.command or ", ".join(data.paths)
    return data.message if isinstance(data, TurnEnded) else ""


MOST_PLACES = 30
LOOKED_THROUGH = 500
RECENT_EVENTS = 20_000
"""Events: further back nobody looks for what was refused lately, however rare refusals are."""
MOST_REFUSALS = 100


def list_places(call: Call) -> dict[str, Any]:
    """Each branch with the sessions that live on it; places with a live session first, then the latest."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for sid, one in sorted(commands.live_here(call).items(), key=lambda item: -item[1].active):
        row = rows.setdefault((one.place, one.branch), _describe_place(call, one, one.active))
        row["sessions"].append({**_live_session_fields(sid, one), "started": one.started})
    for _, doc in BRANCHES.list(call.reader, limit=MOST_PLACES):
        if doc.status != "pruned":
            rows.setdefault((doc.place, doc.branch), _describe_place(call, doc, doc.at))
    project = str(call.args.get("project") or "")
    # Rows are in the order of insertion: live ones were added first.
    shown = [row for row in rows.values() if not project or row["project"] == project]
    return {"places": shown[:MOST_PLACES], "everywhere": _pause_of(call, EVERYWHERE), "now": call.now}


def _describe_place(call: Call, of: LiveSession | BranchState, at: int) -> dict[str, Any]:
    return {"project": of.project, "repo": of.place, "branch": of.branch, "at": at, "sessions": [],
            "pause": _pause_of(call, of.place)}  # fmt: skip


def _pause_of(call: Call, where: str) -> dict[str, Any] | None:
    pause = PAUSES.load(call.reader, where)
    return {"until": pause.until, "why": pause.why} if pause and pause.holds(call.now) else None


def list_refused(call: Call) -> dict[str, Any]:
    """The latest refusals, newest first: what was to be done, which requirements were open, and why."""
    limit = max(1, min(int(call.args.get("limit") or 20), MOST_REFUSALS))
    # Bounded by number, because refusals may be rare and the search would read the whole log.
    query = EventQuery(
        kinds=("decision.made",), project=str(call.args.get("project") or ""), limit=LOOKED_THROUGH, newest=True,
        after=max(0, call.reader.head() - RECENT_EVENTS),
    )  # fmt: skip
    made = [(event, event.data) for event in reversed(call.reader.events(query))]
    denials = [(event, data) for event, data in made if isinstance(data, DecisionMade) and data.verdict == "deny"]
    lost = _undelivered_events(call)
    return {"refused": [_refusal_fields(call, event, data, lost) for event, data in denials[:limit]], "now": call.now}


def _undelivered_events(call: Call) -> set[int]:
    """Events whose answer did not reach the agent."""
    query = EventQuery(kinds=(AnswerUndelivered.KIND,), newest=True, limit=MOST_REFUSALS)
    return {one.data.of for one in call.reader.events(query) if isinstance(one.data, AnswerUndelivered)}


def _refusal_fields(call: Call, event: Event, data: DecisionMade, lost: set[int]) -> dict[str, Any]:
    return {
        "seq": event.seq, "of": data.of, "at": event.at, "session": event.session, "agent": event.agent,
        "project": event.project, "branch": data.branch, "kind": data.of_kind, "tool": event.tool,
        "reasons": data.reasons, "what": what_of(call.reader.event(data.of)), "delivered": data.of not in lost,
        "open": [msgspec.structs.asdict(one) for detail in details_of(data) for one in detail.requirements],
    }  # fmt: skip


LOOK_AHEAD = 200


def list_attention(call: Call) -> dict[str, Any]:
    """What a person should see: pauses, rules that wait, ways round a requirement, attempts. For `status` too."""
    pauses = [pause for _, pause in PAUSES.list(call.reader, limit=50) if pause.holds(call.now)]
    lines = [f"gates are paused {_pause_text(pause)}" for pause in pauses]
    differences = list(dict.fromkeys(text for _, _, looser in commands.loosened_settings(call) for text in looser))
    waiting = [waiting_line(text) for text in differences]
    seen = ATTENTIONS.load(call.reader, events.ATTENTION_REF.key) or Attention()
    lines += [*waiting, *(one.text for one in seen.recent(call.now))]
    return {"lines": list(dict.fromkeys(lines))[:30], "waiting": waiting, "differences": differences}


def _changed_tests(checker: Checker, settings: GateSettings) -> list[str]:
    proven = [rule for rule in settings.rules if rule.kind.is_proven and checker.check(rule).ok]
    changed = [(rule.name, files) for rule in proven if (files := checker.proof_question(rule).changed_tests())]
    return [f"{name}: proved by tests that changed before that: {', '.join(files[:3])}" for name, files in changed]


def _pause_text(pause: Pause) -> str:
    where = "in all projects" if pause.where == EVERYWHERE else f"in {pause.where.removesuffix('/.git')}"
    until = f"until {time.strftime('%H:%M', time.localtime(pause.until / 1000))}" if pause.until else "until resumed"
    return f"{where}, {until}" + (f" ({pause.why})" if pause.why else "")


def gate_status(call: Call) -> dict[str, Any]:
    settings = commands.rules_for(call)
    session = commands.session_of(call, needed=False)
    checker = Checker(commands.Stored(call.reader), _context_now(call, session, settings))
    doc, shown = checker.session, list_attention(call)
    return {
        "session": session, "agent": doc.agent, "project": call.project, "branch": checker.context.branch,
        "paused": checker.paused(), "stops": doc.stops, "refused": doc.refused,
        "requirements": [_requirement_status(checker, rule, doc.triggered, settings) for rule in settings.rules],
        "sessions": [
            _live_session_fields(sid, one)
            for sid, one in commands.live_here(call).items() if one.place == checker.context.worktree
        ],
        "attention": [*shown["lines"], *_changed_tests(checker, settings)], "waiting": shown["waiting"],
        "notices": [*settings.notices, *(f"no skill named {s} was found" for s in checker.facts.missing)],
    }  # fmt: skip


def _context_now(call: Call, session: str, settings: GateSettings) -> RequestContext:
    """Looks at the files, so that the status says what the next refusal would say."""
    context = commands.locate_caller(call, session)
    if not context.worktree.endswith("/.git") or not any(rule.kind.is_proven for rule in settings.rules):
        return context
    return dataclasses.replace(context, content=look_at_content(call.project, settings))


def _requirement_status(checker: Checker, rule: Rule, used: dict[str, int], settings: GateSettings) -> dict[str, Any]:
    finding = checker.check(rule)
    entry = checker.entry(rule)
    latest = checker.proof_question(rule).latest() if rule.kind.is_proven else []
    facts = [{"seq": fact.seq, "at": fact.at, "ok": fact.passed} for fact in latest]
    return {**_rule_fields(rule, settings), "ok": finding.ok, "why": finding.why, "triggered": rule.name in used,
            "until": entry.until if entry else 0, "entry": msgspec.to_builtins(entry) if entry else {},
            "facts": facts}  # fmt: skip


def _rule_fields(rule: Rule, settings: GateSettings) -> dict[str, Any]:
    at_stop = rule.asked_at_stop(settings.hooks.stop.verify_scopes)
    return {"name": rule.name, "type": rule.type, "scope": rule.kind.scope_of(rule), "resolve": resolution_text(rule),
            "at_tool": rule.at_tool, "at_stop": at_stop, "description": rule.spec.description}  # fmt: skip


def _live_session_fields(sid: str, one: LiveSession) -> dict[str, Any]:
    return {"id": sid, "alias": session_alias(sid), "agent": one.agent, "branch": one.branch, "active": one.active}


def list_requirements(call: Call) -> dict[str, Any]:
    """Everything the settings name, and what could be switched on."""
    settings = settings_of(call)
    on = [_rule_fields(rule, settings) for rule in settings.rules]
    off = sorted(set(settings.requirements) - set(settings.by_name))
    return {"requirements": on, "disabled": off, "built_in": sorted(set(presets().built_in) - set(settings.requirements)),
            "presets": {name: sorted(preset) for name, preset in presets().presets.items()}}  # fmt: skip


def list_presets(call: Call) -> dict[str, Any]:
    missing = {
        name: missing_skills(GateSettings.of({"requirements": {name: {}}}), call.project) for name in presets().built_in
    }
    fitted = _fitting_rules(call.project)
    return {
        "presets": {
            "fitting": {name: rule for name, rule in fitted.items() if not missing.get(name)},
            **{
                preset: {name: {**rule, **fitted.get(name, {})} for name, rule in rules.items()}
                for preset, rules in presets().presets.items()
            },
        },
        "built_in": presets().built_in,
        "missing": {name: skills for name, skills in missing.items() if skills},
    }


def _fitting_rules(project: str) -> dict[str, dict[str, Any]]:
    """What the files of this project ask for: its tests, its main branch, the reviews whose skills are there."""
    requirements: dict[str, dict[str, Any]] = {}
    if main := find_main_branch(project):
        requirements["protected_branch"] = {"enabled": True, "protected_branches": [main]}
        requirements["branch_size_limit"] = {"enabled": True}
    requirements |= package_requirements(project)
    return requirements | {name: {"enabled": True} for name in ("commit_plan", "pre_commit_review", "pre_pr_review")}


def verify_settings(call: Call) -> dict[str, Any]:
    """Would it all work? What is wrong with the settings, and skills that nobody has."""
    settings = settings_of(call)
    problems = [*settings.notices]
    problems += [f"no skill named {skill} was found" for skill in missing_skills(settings, call.project)]
    return {"good": not problems, "requirements": len(settings.rules), "problems": problems}


def explain_decision(call: Call) -> dict[str, Any]:
    """Why a call was refused or allowed: what was said then, and how each rule of today sees what was known then."""
    event = _asked_about(call)
    made = _answer_to(call, event)
    settings = settings_of(call)
    findings = _as_then(call, event, settings)
    decision = made.data if made and isinstance(made.data, DecisionMade) else DecisionMade(verdict="allow")
    return {
        "seq": event.seq, "at": event.at, "kind": event.kind, "session": event.session, "tool": event.tool,
        "what": what_of(event), "verdict": decision.verdict or "allow", "reasons": decision.reasons, "notices": decision.notices,
        "recorded": [detail.as_dict() for detail in details_of(decision)], "delivered": event.seq not in _undelivered_events(call),
        "requirements": findings,
    }  # fmt: skip


def _asked_about(call: Call) -> Event:
    event = call.reader.event(int(call.args["seq"]))
    if event and isinstance(event.data, DecisionMade | AnswerUndelivered):
        event = call.reader.event(event.data.of)
    if not event:
        raise CommandRefused(f"there is no event {call.args['seq']}")
    return event


def _answer_to(call: Call, event: Event) -> Event | None:
    # The answer follows its event closely; further away it is not looked for.
    query = EventQuery(session=event.session, kinds=("decision.made",), after=event.seq, limit=LOOK_AHEAD)
    made = call.reader.events(query)
    return next((one for one in made if isinstance(one.data, DecisionMade) and one.data.of == event.seq), None)


def _as_then(call: Call, event: Event, settings: GateSettings) -> list[dict[str, Any]]:
    state = state_before(call.reader, event)
    checker = Checker(state, RequestContext.of(event))
    about = {rule.name for rule in triggered_rules(settings, event)} if event.kind.startswith("tool.") else set()
    return [
        {**_rule_fields(rule, settings), "ok": finding.ok, "why": finding.why, "about": rule.name in about}
        for rule, finding in ((rule, checker.check(rule)) for rule in settings.rules)
    ]


def replay_rules(call: Call) -> dict[str, Any]:
    raw_settings = call.args.get("settings")
    settings = GateSettings.of(raw_settings) if raw_settings is not None else settings_of(call)
    since = call.now - int(call.args.get("seconds") or 0) * 1000 if call.args.get("seconds") else 0
    began = time.perf_counter()
    simulated = simulate_rules(
        call.reader, settings, since=since, project="" if call.args.get("everywhere") else call.project
    )
    return {**simulated, "rules": [rule.name for rule in settings.rules], "seconds": time.perf_counter() - began}


VIEWS: dict[str, Callable[[Call], Any]] = {
    "attention": list_attention,
    "status": gate_status,
    "list": list_requirements,
    "presets": list_presets,
    "verify": verify_settings,
    "explain": explain_decision,
    "replay": replay_rules,
    "places": list_places,
    "codes": commands.list_codes,
    "refused": list_refused,
}
