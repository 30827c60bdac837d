"""Derives run events from hooks by the current rules; they are recorded, so a replay needs no rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.kinds.uat_events import Plan
from holdfast.features.uat.drivers import assertions, hide_typed, is_unknown_driver, results
from holdfast.features.uat.drivers.answers import is_crash, page_text, without_fields
from holdfast.features.uat.drivers.evidence import WholeCall, clean_value, whole_call
from holdfast.features.uat.drivers.results import Result, bound_value, result_of, without_values
from holdfast.features.uat.folders import root_of
from holdfast.features.uat.settings import ACTIVE, CUTS_OFF, DEFAULTS, ENDINGS, REASONS, UatSettings, run_id
from holdfast.features.uat.state import (
    CATALOGUES,
    NO_PLAN,
    PLANS,
    RUNS,
    SESSION_RUNS,
    OpenCall,
    Prompt,
    Run,
    SessionRuns,
    detect,
    run,
    steps,
)
from holdfast.features.uat.state.step_match import (
    Called,
    call_of_event,
    choose_step,
    is_ours,
    short_tool_name,
    with_use,
)

Following = Iterable[Event]
# Characters of the page that are kept with each call.
LONGEST_PAGE = 6_000


def derive(state: State, event: Event, settings: UatSettings | None) -> Following:
    step = STEPS.get(event.kind)
    if step is None or not event.session:
        return ()
    mine = SESSION_RUNS.get(state, event.session)
    return step(state, event, mine, settings or DEFAULTS) if mine else ()


def derived_uat_event(event: Event, kind: str, **data: Any) -> Event:
    """`follow` is given its key by the engine."""
    return Event(
        key="", kind=kind, at=event.at, session=event.session, project=event.project, agent=event.agent,
        tool=event.tool if kind.startswith("uat.call") else "", data={**data, "of": event.seq},
    )  # fmt: skip


def run_start_data(plan: Plan, settings: UatSettings, project: str, **data: Any) -> dict[str, Any]:
    """The data of `uat.started`."""
    return {"plan": plan, "mode": settings.mode, "root": root_of(project, settings.root), **data}


def interrupted_calls(doc: Run, at: int, why: str) -> Iterator[dict[str, Any]]:
    """The data of `uat.call_ended` for each call that was under way when everything stopped."""
    for entry in doc.open.values():
        same = {name: getattr(entry, name) for name in ("n", "call", "tool", "step", "matched")}
        cut_off = {"ok": False, "interrupted": True, "error": f"interrupted: {why}", "parameters": {}, "result": {}}
        yield {**same, **cut_off, "uat": doc.id, "ms": max(0, at - entry.at), "began": entry.at}


def run_ending_events(doc: Run, at: int, reason: str, make: Callable[..., Event]) -> Iterator[Event]:
    """The end of a run: calls still under way are interrupted, and the verdict is said with it."""
    for data in interrupted_calls(doc, at, REASONS.get(reason, reason)):
        cut = make("uat.call_ended", **data)
        yield cut
        # The verdict below is that of the run after these calls.
        doc = run.reduce_run(doc, cut) or doc
    over = make("uat.ended", uat=doc.id, reason=reason)
    yield make("uat.ended", uat=doc.id, reason=reason, **run.verdict_of_ended_run(doc, over))


def _end_active_run(event: Event, doc: Run | None, reason: str) -> Following:
    if doc is not None and doc.status == ACTIVE:
        yield from run_ending_events(doc, event.at, reason, lambda kind, **data: derived_uat_event(event, kind, **data))


# ── a tool is about to run ─────────────────────────────────────────────────────────────────────────────────────────


def _tool_started(state: State, event: Event, mine: SessionRuns, settings: UatSettings) -> Following:
    if mine.active:
        return _call_started(state, event, mine.active, settings)
    if mine.prompt and settings.enabled:
        return _detect_scenario(state, event, mine, mine.prompt, settings)
    return ()


def _call_started(state: State, event: Event, run_id: str, settings: UatSettings) -> Following:
    doc, plan = RUNS.get(state, run_id), PLANS.get(state, run_id) or NO_PLAN
    call = call_of_event(event, settings.drivers, whole_call(event).given)
    if doc is None or is_ours(call):
        return
    number = choose_step(plan, doc, call)
    if _is_recorded_call(number, call, plan):
        yield derived_uat_event(event, "uat.call_started", uat=run_id, **_call_start_data(event, doc, number, call))
    elif is_unknown_driver(event.tool, call.arguments, settings.drivers) and event.tool not in doc.unknown_tools:
        message = f"{event.tool} looks like a browser tool that is not known; say what it does with `uat.drivers`"
        problem = {"level": "warning", "type": "driver", "message": message, "step": doc.current, "tool": event.tool}
        yield derived_uat_event(event, "uat.problem", uat=run_id, **problem)


def _call_start_data(event: Event, doc: Run, number: int, call: Called) -> dict[str, Any]:
    step = {"step": number or doc.current, "matched": bool(number), "address": call.use.address}
    return {"n": doc.n + 1, "call": event.data.call, "tool": event.tool, **step}


def _is_recorded_call(number: int, call: Called, plan: Plan) -> bool:
    """Everything in the browser, and whatever is a step; without steps also what runs in the shell."""
    return bool(number) or call.use.is_known or (not plan.steps and call.action == "shell")


def _detect_scenario(state: State, event: Event, mine: SessionRuns, prompt: Prompt, settings: UatSettings) -> Following:
    call = call_of_event(event, settings.drivers, whole_call(event).given)
    scenarios = _scenarios_left(state, event, mine, prompt)
    if mine.used and not scenarios:
        return
    found = detect.assess_prompt(prompt.text, scenarios, call)
    if found.score >= settings.start_at and found.scenario:
        # The id is made from the event's time and key: a replay makes the same one.
        new, plan = run_id(event.at, event.key), scenarios[found.scenario]
        fresh = run.new_run(derived_uat_event(event, "uat.started", uat=new, plan=plan))
        first = _call_start_data(event, fresh, choose_step(plan, fresh, call), call)
        facts = {"confidence": min(found.score, 100), "reasons": list(found.reasons), "first": first}
        data = run_start_data(plan, settings, event.project, message=prompt.text, auto=True, **facts)
        yield derived_uat_event(event, "uat.started", uat=new, **data)
    elif found.score >= settings.suggest_at and not prompt.suggested and not mine.used:
        suggestion = {"scenario": found.scenario, "score": found.score, "reasons": list(found.reasons)}
        yield derived_uat_event(event, "uat.suggested", **suggestion)


def _scenarios_left(state: State, event: Event, mine: SessionRuns, prompt: Prompt) -> dict[str, Plan]:
    """Scenarios that this prompt began already do not begin again. For another one it has to name it."""
    known = CATALOGUES.get(state, event.project)
    left = {name: plan for name, plan in (known.scenarios if known else {}).items() if name not in mine.used}
    return {name: left[name] for name in detect.named_scenarios(prompt.text, left)} if mine.used else left


# ── a tool ran ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool_ended(state: State, event: Event, mine: SessionRuns, settings: UatSettings) -> Following:
    whole = whole_call(event)
    call = call_of_event(event, settings.drivers, whole.given)
    # Browser calls of the turn in which the last step was done still belong to the run that ended.
    run_id = mine.active or (mine.tail if call.use.is_known else "")
    doc = RUNS.get(state, run_id) if run_id else None
    if doc is None or is_ours(call):
        return
    plan = PLANS.get(state, run_id) or NO_PLAN
    begun = _open_entry(doc, event)
    # A command line may do several things in a browser: each is a separate call with its own answer.
    uses = (call.use, *call.use.following)
    reported = results.split_result(result_of(event, whole.body, call.use, whole.page), uses)
    for use, result in zip(uses, reported, strict=False):
        data = _call_end_data(event, doc, plan, with_use(call, use), result, whole, begun)
        if data is None:
            continue
        ended = derived_uat_event(event, "uat.call_ended", uat=run_id, **data)
        yield ended
        # Only the first command of a line belongs to the call that was open.
        doc, begun = run.reduce_run(doc, ended) or doc, None
    if doc.status == ACTIVE and steps.all_over(doc):
        yield from _end_active_run(event, doc, "last-step")


def _open_entry(doc: Run, event: Event) -> OpenCall | None:
    """By the agent's own id of the call; agents that give none run one call of a tool at a time."""
    call, entries = event.data.call, doc.open.values()
    # Without an id the tool's name has to do, and only for calls that have no id either.
    same = [e for e in entries if (e.call == call if call else not e.call and e.tool == event.tool)]
    return same[-1] if same else None


def _started_call(event: Event, doc: Run, plan: Plan, call: Called) -> OpenCall | None:
    """A call whose start was not seen; None where it does not belong to the run."""
    number = choose_step(plan, doc, call) if doc.status == ACTIVE else 0
    # Of a command line with several commands only the whole is timed; the first one has its time.
    ms = 0 if call.is_later else max(0, int(event.data.ms or 0))
    entry = OpenCall(n=doc.n + 1, step=number or doc.current, at=max(0, event.at - ms), matched=bool(number))
    return entry if _is_recorded_call(number, call, plan) else None


def _call_end_data(
    event: Event, doc: Run, plan: Plan, call: Called, result: Result, whole: WholeCall, begun: OpenCall | None
) -> dict[str, Any] | None:
    entry = begun or _started_call(event, doc, plan, call)
    if entry is None:
        return None
    step = entry.step or doc.current
    ms = max(0, int(event.data.ms)) if begun and event.data.ms is not None else max(0, event.at - entry.at)
    result = replace(result, ms=ms, exit_code=event.data.exit_code)
    judged = list(assertions.judge_assertions(plan, step, result, call.use.meaning))
    health = list(assertions.page_checks(plan, step if entry.matched else 0, result))
    shown: Mapping[str, Any] = whole.given
    # What is typed is judged above and then taken out, unless the step says that it is public.
    if not _is_public(plan, step):
        shown, typed = hide_typed(call.use, shown, result.text)
        shown = clean_value(shown, typed)
        result, judged, health = without_values((result, judged, health), typed)
    same = {name: getattr(result, name) for name in ("ms", "ok", "error", "url", "title")}
    return {
        **same,
        "n": entry.n,
        "call": event.data.call,
        "tool": event.tool,
        "step": step,
        "matched": entry.matched,
        "address": call.use.address,
        "parameters": bound_value(shown),
        "result": result.value,
        "began": entry.at,
        "problems": list(result.problems),
        "assertions": judged,
        "health": health,
        "shots": list(result.shots),
        "logs": [list(log) for log in result.logs],
        "cwd": event.data.cwd,
        "framework": result.ok and _injects_framework(call),
        "driver": call.use.driver,
        "meaning": call.use.meaning,
        "page": without_fields(whole.page or page_text(call.use, result.text))[:LONGEST_PAGE],
        "returning": _return_cause(call, result.ok, result.error),
    }


def _is_public(plan: Plan, number: int) -> bool:
    return 0 < number <= len(plan.steps) and plan.steps[number - 1].public


def _return_cause(call: Called, ok: bool, error: str) -> str:
    """After these the next call may belong to an earlier step."""
    if call.use.is_known and not ok and is_crash(error):
        return "crash"
    return {"close": "restart", "back": "back"}.get(call.use.meaning, "") if ok else ""


def _injects_framework(call: Called) -> bool:
    """S3-7 frameworkInjected: a script that brings the page a UAT framework."""
    script = call.arguments.get("function") or call.arguments.get("script") or call.arguments.get("code")
    return "evaluate" in short_tool_name(call.tool) and isinstance(script, str) and "uat" in script.lower()


# ── a run is over ──────────────────────────────────────────────────────────────────────────────────────────────────


def _turn_ended(state: State, event: Event, mine: SessionRuns, _settings: UatSettings) -> Following:
    """D11: the end of a turn ends no run; but a last step that failed and was not tried again is over with it."""
    doc = RUNS.get(state, mine.active) if mine.active else None
    if doc and steps.gave_up(doc):
        yield from _end_active_run(event, doc, "last-step-failed")


def _turn_cut_off(state: State, event: Event, mine: SessionRuns, _settings: UatSettings) -> Following:
    """The calls of the turn were interrupted with it."""
    doc = RUNS.get(state, mine.active) if mine.active else None
    for data in interrupted_calls(doc, event.at, "the turn was cut off") if doc else ():
        yield derived_uat_event(event, "uat.call_ended", **data)


def _session_over(state: State, event: Event, mine: SessionRuns, _settings: UatSettings) -> Following:
    return _end_active_run(event, RUNS.get(state, mine.active) if mine.active else None, ENDINGS[event.kind])


def _end_superseded_run(state: State, event: Event, mine: SessionRuns, _settings: UatSettings) -> Following:
    return _end_active_run(event, RUNS.get(state, mine.previous) if mine.previous else None, "superseded")


def _record_told_call(state: State, event: Event, mine: SessionRuns, _settings: UatSettings) -> Following:
    """Numbered here, in one transaction: two hooks may report two calls at the same moment."""
    doc, call = RUNS.get(state, event.data.uat), event.data.call
    if doc is None or doc.id not in (mine.active, mine.tail):
        return
    step = doc.current if call["step"] is None else call["step"]
    facts = {**call, "step": step, "n": doc.n + 1, "call": "", "matched": False, "began": event.at}
    yield derived_uat_event(event, "uat.call_ended", uat=doc.id, **facts)


def _step_set(state: State, event: Event, mine: SessionRuns, _settings: UatSettings) -> Following:
    doc = RUNS.get(state, event.data.uat)
    if doc and doc.id == mine.active and steps.all_over(doc):
        yield from _end_active_run(event, doc, "last-step")


STEPS: dict[str, Callable[[State, Event, SessionRuns, UatSettings], Following]] = {
    "tool.started": _tool_started,
    "tool.finished": _tool_ended,
    "tool.failed": _tool_ended,
    **dict.fromkeys(CUTS_OFF, _turn_cut_off),
    "turn.ended": _turn_ended,
    "uat.started": _end_superseded_run,
    "uat.step": _step_set,
    "uat.told": _record_told_call,
    **dict.fromkeys(ENDINGS, _session_over),
}
