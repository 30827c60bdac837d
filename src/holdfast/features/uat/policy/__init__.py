"""Context for the agent: that a run is recorded, how to begin one, how far it is."""

# UAT never refuses anything.

from collections.abc import Callable

from holdfast.core.decision import Context, Decision
from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.kinds.uat_events import Plan
from holdfast.features.uat.settings import COMPLETED, DEFAULTS, FAILED, UatSettings, clean_line
from holdfast.features.uat.state import (
    CATALOGUES,
    NO_PLAN,
    PLANS,
    RUNS,
    SESSION_RUNS,
    RecentCall,
    Run,
    SessionRuns,
    detect,
)
from holdfast.features.uat.state.step_match import use_of_event

MOST_TOLD = 12
WEIGHT = 60


def can_decide(kind: str, _settings: UatSettings | None) -> bool:
    return kind in TELL


def decide(state: State, event: Event, settings: UatSettings | None) -> Decision | None:
    mine = SESSION_RUNS.get(state, event.session) if event.session else None
    tell = TELL.get(event.kind)
    return tell(state, event, mine, settings or DEFAULTS) if tell and mine else None


def _suggest_scenario(state: State, event: Event, mine: SessionRuns, settings: UatSettings) -> Decision | None:
    prompt = mine.prompt
    if not prompt or mine.active or not settings.enabled or event.data.synthetic:
        return None
    known = CATALOGUES.get(state, event.project)
    scenarios = known.scenarios if known else {}
    assessment = detect.assess_prompt(prompt.text, scenarios)
    if assessment.score < settings.suggest_at or not assessment.scenario:
        return None
    plan = scenarios[assessment.scenario]
    head = f"This looks like a UAT run of the scenario “{clean_line(assessment.scenario, 80)}”: it is recorded from the first call"
    return _context_decision(
        f"{head} of one of its steps on (or: holdfast uat start {assessment.scenario}). {_describe_steps(plan)}"
    )


def _tool_started(state: State, event: Event, mine: SessionRuns, settings: UatSettings) -> Decision | None:
    doc = RUNS.get(state, mine.active) if mine.active else None
    if doc and doc.of == event.seq and doc.auto:
        plan = PLANS.get(state, doc.id) or NO_PLAN
        scenario = clean_line(doc.scenario, 80)
        text = f"UAT run {doc.id} of “{scenario}” is being recorded. {_describe_steps(plan)} Take a screenshot whenever one fails."
        why = f"UAT run {doc.id} of {scenario} began ({doc.confidence} of 100)."
        return Decision(contexts=(Context("uat", text, WEIGHT),), notices=(why,))
    if doc is not None:
        return _ask_for_picture(doc, event, settings)
    if mine.prompt and mine.prompt.suggested == event.seq:
        return _context_decision(
            "This looks like UAT, but no scenario fits it surely. To keep proof of it: `holdfast uat start NAME` "
            "(`holdfast uat list --scenarios` names them, `holdfast uat init NAME` writes a first one)."
        )
    return None


def _ask_for_picture(doc: Run, event: Event, settings: UatSettings) -> Decision | None:
    """A call or an assertion has failed and this is the next call: once for each failure.

    Not at the end of the failed call: an agent's hook there is answered before anything decides."""
    last = doc.last[-1] if doc.last else None
    # Another call has begun since: the reminder was given with that one.
    if last is None or doc.n > last.n + 1 or not (_missed(doc, last) or not last.ok):
        return None
    use = use_of_event(event, settings.drivers)
    if not use.is_known or use.meaning == "screenshot":
        return None
    return _context_decision(
        f"Step {last.step} of UAT run {doc.id} failed. Take a screenshot now, so that the report shows it; then try the "
        "step again or go on."
    )


def _missed(doc: Run, call: RecentCall) -> bool:
    """Whether an assertion failed with this call."""
    return any(a.step == call.step and a.result == FAILED and a.at == call.at for a in doc.assertions)


def _session_started(state: State, _event: Event, mine: SessionRuns, _settings: UatSettings) -> Decision | None:
    doc = RUNS.get(state, mine.active) if mine.active else None
    if doc is None:
        return None
    plan = PLANS.get(state, doc.id) or NO_PLAN
    done = sum(step.status == COMPLETED for step in doc.steps)
    head = f"UAT run {doc.id} of “{clean_line(doc.scenario, 80)}” is going on: {done} of {len(doc.steps)} steps done."
    return _context_decision(
        f"{head} {_describe_steps(plan, doc.current)} It ends with its last step, or: holdfast uat end."
    )


def _describe_steps(plan: Plan, current: int = 0) -> str:
    steps = [clean_line(step.description or step.action, 80) for step in plan.steps]
    listed = [f"{n}. {text}" for n, text in enumerate(steps, 1) if n >= current]
    more = f" (and {len(listed) - MOST_TOLD} more)" if len(listed) > MOST_TOLD else ""
    # The assertion fails where axe never ran, and nothing else would make the agent run it.
    asks_axe = any(one.max_violations is not None for one in plan.assertions)
    axe = " Also run axe-core in the page and return its violations." if asks_axe else ""
    first = "" if current else _describe_preconditions(plan)
    return f"{first}Steps: {'; '.join(listed[:MOST_TOLD])}{more}.{axe}" if listed else first


def _describe_preconditions(plan: Plan) -> str:
    before = "; ".join(clean_line(one, 80) for one in plan.preconditions[:MOST_TOLD])
    return f"First make sure: {before}. " if before else ""


def _context_decision(text: str) -> Decision:
    return Decision(contexts=(Context("uat", text, WEIGHT),))


TELL: dict[str, Callable[[State, Event, SessionRuns, UatSettings], Decision | None]] = {
    "prompt.submitted": _suggest_scenario,
    "tool.started": _tool_started,
    "session.started": _session_started,
}
