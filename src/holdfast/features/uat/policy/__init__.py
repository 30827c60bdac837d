"""What an agent is told: that a run is recorded, how one could begin, where one stands. Nothing is ever refused."""

from collections.abc import Callable, Iterable, Iterator

from holdfast.core.decision import Context, Decision
from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.kinds import UAT_KINDS
from holdfast.core.kinds.uat_events import CallEnded, Plan
from holdfast.features.uat.drivers.results import IN_ANSWER
from holdfast.features.uat.files import root_of
from holdfast.features.uat.settings import COMPLETED, DEFAULTS, FAILED, UatSettings, clean_line
from holdfast.features.uat.state import CATALOGUES, NO_PLAN, PLANS, RUNS, SESSION_RUNS, Run, SessionRuns, detect
from holdfast.features.uat.state.reduce import run_of
from holdfast.features.uat.state.steps import use_of_event

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

    Not at the end of the failed call: an agent's hook there is answered before anybody thinks about it."""
    last = doc.last[-1] if doc.last else None
    # Another call has begun since: the reminder was given with that one.
    if last is None or doc.n > last.n + 1:
        return None
    missed = any(a.step == last.step and a.result == FAILED and a.at == last.at for a in doc.assertions)
    use = use_of_event(event, settings.drivers)
    if (last.ok and not missed) or not use.is_known or use.meaning == "screenshot":
        return None
    return _context_decision(
        f"Step {last.step} of UAT run {doc.id} failed. Take a screenshot now, so that the report shows it; then try the "
        "step again or go on."
    )


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
    listed = [
        f"{n}. {clean_line(step.description or step.action, 80)}"
        for n, step in enumerate(plan.steps, 1)
        if n >= current
    ]
    more = f" (and {len(listed) - MOST_TOLD} more)" if len(listed) > MOST_TOLD else ""
    before = "; ".join(clean_line(one, 80) for one in plan.preconditions[:MOST_TOLD])
    first = f"First make sure: {before}. " if before and not current else ""
    # The assertion fails where axe never ran, and nothing else would tell the agent to run it.
    axe = any(one.max_violations is not None for one in plan.assertions)
    last = " Also run axe-core in the page and return its violations." if axe else ""
    return f"{first}Steps: {'; '.join(listed[:MOST_TOLD])}{more}.{last}" if listed else first


def _context_decision(text: str) -> Decision:
    return Decision(contexts=(Context("uat", text, WEIGHT),))


TELL: dict[str, Callable[[State, Event, SessionRuns, UatSettings], Decision | None]] = {
    "prompt.submitted": _suggest_scenario,
    "tool.started": _tool_started,
    "session.started": _session_started,
}


# Which work an event asks for. The session's file is written anew the more rarely the longer it is.

JOBS = SCAN, WRITE, COLLECT, HEALTH, REPORT, ASKED, TEND = (
    *("uat.scan", "uat.write", "uat.collect", "uat.health", "uat.report", "uat.asked", "uat.tend"),
)
TEND_EVERY_S = 60.0
# Milliseconds; a long run's file is written less often, because it is rendered as a whole.
SOON_MS = 300
MS_PER_CALL = 4
LONGEST_MS = 30_000
TRANSCRIPT_MS = 700
SETTLE_MS = 1_000
"""After the end a report waits so long for the last screenshots."""

_QUIET = (
    "uat.archived",
    "uat.restored",
    "uat.suggested",
    "uat.scenarios",
    "uat.compared",
    "uat.cleaned",
    "uat.asked",
    "uat.told",
)


ENQUEUED_FOR = frozenset((*UAT_KINDS, "session.started", "prompt.submitted", "tool.finished"))


def enqueue(state: State, event: Event, settings: UatSettings | None) -> Iterable[Job]:
    if event.kind.startswith("uat."):
        return _of_run(state, event, settings or DEFAULTS)
    return _scan_jobs(state, event, settings or DEFAULTS)


def _scan_jobs(state: State, event: Event, settings: UatSettings) -> Iterator[Job]:
    """A project's scenarios are looked at when a session begins, when a prompt is about UAT, when one was edited."""
    if not event.project or not settings.enabled:
        return
    mine = SESSION_RUNS.get(state, event.session) if event.kind == "prompt.submitted" else None
    is_due = event.kind == "session.started" or bool(mine and mine.prompt) or _edits_scenario(event, settings)
    if is_due:
        yield Job(kind=SCAN, dedupe=event.project, payload={"project": event.project})


def _edits_scenario(event: Event, settings: UatSettings) -> bool:
    if event.kind != "tool.finished" or event.data.action != "edit":
        return False
    folder = f"{root_of(event.project, settings.root)}/scenarios/"
    return any(path.startswith(folder) for path in event.data.paths)


def _of_run(state: State, event: Event, settings: UatSettings) -> Iterator[Job]:
    if event.kind == "uat.asked":
        yield Job(kind=ASKED, payload={"seq": event.seq, "session": event.session})
    run = run_of(event)
    doc = RUNS.get(state, run) if run else None
    if doc is None or event.kind in _QUIET:
        return
    yield Job(kind=WRITE, dedupe=run, run_at=event.at + _write_delay_ms(doc, event), payload={"uat": run})
    if event.kind == "uat.started" and (before := _previous_run_id(state, doc)):
        # The former run's file moves to the archive.
        yield Job(kind=WRITE, dedupe=before, payload={"uat": before})
    if isinstance(event.data, CallEnded) and (event.data.shots or event.data.logs):
        # A picture that came in the answer may have to be read from the transcript, which is written after the hook.
        wait = TRANSCRIPT_MS if IN_ANSWER in event.data.shots else 0
        yield Job(kind=COLLECT, run_at=event.at + wait, payload={"seq": event.seq})
    yield from _health_jobs(state, event, doc)
    if settings.reports and doc.status == COMPLETED and event.kind in ("uat.ended", "uat.shot"):
        yield Job(kind=REPORT, dedupe=run, run_at=event.at + SETTLE_MS, payload={"uat": run})


def _write_delay_ms(doc: Run, event: Event) -> int:
    if event.kind in ("uat.started", "uat.ended", "uat.reported"):
        return 0
    return min(LONGEST_MS, SOON_MS + doc.calls * MS_PER_CALL)


def _previous_run_id(state: State, doc: Run) -> str:
    """The session's run before this one: its file gives way."""
    mine = SESSION_RUNS.get(state, doc.session)
    return mine.runs[-2] if mine and len(mine.runs) > 1 else ""


def _health_jobs(state: State, event: Event, doc: Run) -> Iterator[Job]:
    """Requests of our own: at the start, or when their step ended."""
    at_start = event.kind == "uat.started"
    if not at_start and not (event.kind == "uat.call_ended" and event.data.ok):
        return
    plan = PLANS.get(state, doc.id) or NO_PLAN
    for number, check in enumerate(plan.health_checks):
        step = check.step or 0
        if check.type == "http" and (at_start if not step else not at_start and step == event.data.step):
            payload = {"uat": doc.id, "index": number, "step": step}
            yield Job(kind=HEALTH, dedupe=f"{doc.id}/{number}", payload=payload)
