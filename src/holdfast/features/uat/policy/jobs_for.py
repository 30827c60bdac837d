"""Which jobs an event asks for."""

from collections.abc import Iterable, Iterator

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.kinds import UAT_KINDS
from holdfast.core.kinds.uat_events import CallEnded
from holdfast.features.uat.drivers.results import IN_ANSWER
from holdfast.features.uat.folders import root_of
from holdfast.features.uat.settings import COMPLETED, DEFAULTS, UatSettings
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, SESSION_RUNS, Run
from holdfast.features.uat.state.touched import run_of

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
    if event.kind == "uat.started":
        yield from _write_previous(state, doc)
        yield from _health_jobs(state, doc, 0)
    if isinstance(event.data, CallEnded):
        yield from _after_call(state, event, doc, event.data)
    if settings.reports and doc.status == COMPLETED and event.kind in ("uat.ended", "uat.shot"):
        yield Job(kind=REPORT, dedupe=run, run_at=event.at + SETTLE_MS, payload={"uat": run})


def _after_call(state: State, event: Event, doc: Run, call: CallEnded) -> Iterator[Job]:
    if call.shots or call.logs:
        # A picture that came in the answer may have to be read from the transcript, which is written after the hook.
        wait = TRANSCRIPT_MS if IN_ANSWER in call.shots else 0
        yield Job(kind=COLLECT, run_at=event.at + wait, payload={"seq": event.seq})
    if call.ok and call.step:
        yield from _health_jobs(state, doc, call.step)


def _write_delay_ms(doc: Run, event: Event) -> int:
    if event.kind in ("uat.started", "uat.ended", "uat.reported"):
        return 0
    return min(LONGEST_MS, SOON_MS + doc.calls * MS_PER_CALL)


def _write_previous(state: State, doc: Run) -> Iterator[Job]:
    """The file of the session's run before this one moves to the archive."""
    mine = SESSION_RUNS.get(state, doc.session)
    if mine and len(mine.runs) > 1:
        yield Job(kind=WRITE, dedupe=mine.runs[-2], payload={"uat": mine.runs[-2]})


def _health_jobs(state: State, doc: Run, ended: int) -> Iterator[Job]:
    """HTTP checks of the step that ended; those of step 0 run at the start."""
    plan = PLANS.get(state, doc.id) or NO_PLAN
    for number, check in enumerate(plan.health_checks):
        if check.type == "http" and (check.step or 0) == ended:
            payload = {"uat": doc.id, "index": number, "step": ended}
            yield Job(kind=HEALTH, dedupe=f"{doc.id}/{number}", payload=payload)
