"""What an event means for a run, by the rules of the moment. Recorded, so that replay needs no rules."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.ports import Doc
from holdfast.features.uat import detect, judge, run, steps
from holdfast.features.uat.match import Called, called, choose, is_browser, is_ours, short
from holdfast.features.uat.model import ACTIVE, CATALOGUE, DEFAULTS, ENDINGS, PLAN, RUN, SESSION, UatSettings, run_id
from holdfast.features.uat.places import root_of
from holdfast.features.uat.results import bounded, result_of

Following = Iterable[Event]


def derive(state: State, event: Event, settings: UatSettings | None) -> Following:
    step = STEPS.get(event.kind)
    if step is None or not event.session:
        return ()
    mine = state.get(SESSION, event.session)
    return step(state, event, mine, settings or DEFAULTS) if mine else ()


def said(event: Event, kind: str, **data: Any) -> Event:
    """`follow` is given its key by the engine."""
    return Event(
        key="", kind=kind, at=event.at, session=event.session, project=event.project, agent=event.agent,
        tool=event.tool if kind.startswith("uat.call") else "", data={**data, "of": event.seq},
    )  # fmt: skip


def started(plan: Mapping[str, Any], settings: UatSettings, project: str, **data: Any) -> dict[str, Any]:
    """The data of `uat.started`, whoever begins the run."""
    return {"plan": dict(plan), "mode": settings.mode, "root": root_of(project, settings.root), **data}


# ── a tool is about to run ─────────────────────────────────────────────────────────────────────────────────────────


def _tool_started(state: State, event: Event, mine: Doc, settings: UatSettings) -> Following:
    if mine["active"]:
        return _call_started(state, event, mine["active"])
    return _detected(state, event, mine, settings) if mine["prompt"] and settings.enabled else ()


def _call_started(state: State, event: Event, run_id: str) -> Following:
    doc, plan, call = state.get(RUN, run_id), state.get(PLAN, run_id) or {}, called(event)
    if doc is None or is_ours(call):
        return
    number = choose(plan, doc, call)
    if _recorded(number, call, plan):
        yield said(event, "uat.call_started", uat=run_id, **_begun(event, doc, number))


def _begun(event: Event, doc: Doc, number: int) -> dict[str, Any]:
    step = {"step": number or doc["current"], "matched": bool(number)}
    return {"n": doc["n"] + 1, "call": event.get("call", ""), "tool": event.tool, **step}


def _recorded(number: int, call: Called, plan: Mapping[str, Any]) -> bool:
    """Everything in the browser, and whatever is a step; without steps also what runs in the shell."""
    return bool(number) or is_browser(call.tool) or (not plan.get("steps") and call.action == "shell")


def _detected(state: State, event: Event, mine: Doc, settings: UatSettings) -> Following:
    scenarios = (state.get(CATALOGUE, event.project) or {}).get("scenarios") or {}
    call, text = called(event), mine["prompt"]["text"]
    left = {name: plan for name, plan in scenarios.items() if name not in mine["used"]}
    if mine["used"]:  # one prompt may order several scenarios, but then it has to name them
        left = {name: left[name] for name in detect.named(text, left)}
        if not left:
            return
    found = detect.assess(text, left, call)
    facts = {"confidence": min(found.score, 100), "reasons": list(found.reasons)}
    if found.score >= settings.start_at and found.scenario:
        new = run_id(event.at, event.key)
        plan = left[found.scenario]
        fresh = run.begun(said(event, "uat.started", uat=new, plan=plan))
        first = _begun(event, fresh, choose(plan, fresh, call))
        data = started(plan, settings, event.project, message=text, auto=True, first=first, **facts)
        yield said(event, "uat.started", uat=new, **data)
    elif found.score >= settings.suggest_at and not mine["prompt"]["suggested"] and not mine["used"]:
        yield said(event, "uat.suggested", scenario=found.scenario, score=found.score, reasons=list(found.reasons))


# ── a tool ran ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool_ended(state: State, event: Event, mine: Doc, _settings: UatSettings) -> Following:
    run_id = mine["active"] or (mine["tail"] if is_browser(event.tool) else "")
    doc = state.get(RUN, run_id) if run_id else None
    if doc is None:
        return
    plan, call = state.get(PLAN, run_id) or {}, called(event)
    begun = _open_entry(doc, event)
    if is_ours(call):
        return
    number = begun["step"] if begun else choose(plan, doc, call) if doc["status"] == ACTIVE else 0
    if begun is None and not _recorded(number, call, plan):
        return
    ended = said(event, "uat.call_ended", uat=run_id, **_ended(event, doc, plan, call, begun, number))
    yield ended
    after = run.reduced(doc, ended)
    if doc["status"] == ACTIVE and after and steps.all_over(after):
        over = said(event, "uat.ended", uat=run_id, reason="last-step")
        yield msgspec.structs.replace(over, data={**over.data, **run.verdict(after, over)})


def _open_entry(doc: Doc, event: Event) -> Doc | None:
    """By the agent's own id of the call; agents that give none run one call of a tool at a time."""
    call, entries = event.get("call", ""), doc["open"].values()
    same = [e for e in entries if (e["call"] == call if call else not e["call"] and e["tool"] == event.tool)]
    return same[-1] if same else None


def _ended(
    event: Event, doc: Doc, plan: Mapping[str, Any], call: Called, begun: Doc | None, number: int
) -> dict[str, Any]:
    result = result_of(event)
    ms = _ms(event, begun)
    at = begun["at"] if begun else max(0, event.at - ms)
    step = number or doc["current"]
    matched = begun["matched"] if begun else bool(number)
    code = event.get("exit_code")
    return {
        "n": begun["n"] if begun else doc["n"] + 1,
        "call": event.get("call", ""),
        "tool": event.tool,
        "step": step,
        "matched": matched,
        "parameters": bounded(event.get("input") or {}),
        "result": result.value,
        "ms": ms,
        "began": at,
        "ok": result.ok,
        "error": result.error,
        "problems": list(result.problems),
        "assertions": list(judge.assertions(plan, step, result, ms, code)),
        "health": list(judge.page_checks(plan, step if matched else 0, result, ms, code)),
        "shots": list(result.shots),
        "logs": [list(log) for log in result.logs],
        "cwd": event.get("cwd", ""),
        "framework": result.ok and _injects(call),
    }


def _ms(event: Event, begun: Doc | None) -> int:
    told = event.get("ms")
    if isinstance(told, int | float):
        return max(0, int(told))
    return max(0, event.at - begun["at"]) if begun else 0


def _injects(call: Called) -> bool:
    """S3-7 frameworkInjected: a script that brings the page a UAT framework."""
    script = call.arguments.get("function") or call.arguments.get("script") or call.arguments.get("code")
    return "evaluate" in short(call.tool) and isinstance(script, str) and "uat" in script.lower()


# ── a run is over ──────────────────────────────────────────────────────────────────────────────────────────────────


def _turn_ended(state: State, event: Event, mine: Doc, _settings: UatSettings) -> Following:
    """D11: the end of a turn ends no run; but a last step that failed and was not tried again is over with it."""
    doc = state.get(RUN, mine["active"]) if mine["active"] else None
    if doc and steps.gave_up(doc):
        yield said(event, "uat.ended", uat=doc["id"], reason="last-step-failed")


def _session_over(_state: State, event: Event, mine: Doc, _settings: UatSettings) -> Following:
    if mine["active"]:
        yield said(event, "uat.ended", uat=mine["active"], reason=ENDINGS[event.kind])


def _superseded(_state: State, event: Event, mine: Doc, _settings: UatSettings) -> Following:
    if mine["previous"]:
        yield said(event, "uat.ended", uat=mine["previous"], reason="superseded")


def _told(state: State, event: Event, mine: Doc, _settings: UatSettings) -> Following:
    """Numbered here, where nobody can come between: two hooks may tell of two calls at the same moment."""
    doc, call = state.get(RUN, str(event.get("uat"))), event.get("call")
    if doc is None or doc["id"] not in (mine["active"], mine["tail"]):
        return
    step = doc["current"] if call["step"] is None else call["step"]
    facts = {**call, "step": step, "n": doc["n"] + 1, "call": "", "matched": False, "began": event.at}
    yield said(event, "uat.call_ended", uat=doc["id"], **facts)


def _step_set(state: State, event: Event, mine: Doc, _settings: UatSettings) -> Following:
    doc = state.get(RUN, str(event.get("uat")))
    if doc and doc["id"] == mine["active"] and steps.all_over(doc):
        yield said(event, "uat.ended", uat=doc["id"], reason="last-step")


STEPS: dict[str, Callable[[State, Event, Doc, UatSettings], Following]] = {
    "tool.started": _tool_started,
    "tool.finished": _tool_ended,
    "tool.failed": _tool_ended,
    "turn.ended": _turn_ended,
    "uat.started": _superseded,
    "uat.step": _step_set,
    "uat.told": _told,
    **dict.fromkeys(ENDINGS, _session_over),
}
