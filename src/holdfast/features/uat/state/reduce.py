"""Events into documents."""

# Pure.

import copy
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.kinds.uat_events import RunEnded, RunStarted, ScenariosRead
from holdfast.core.ports import Ref
from holdfast.features.uat.settings import CATALOGUE, CUTS_OFF, ENDINGS, MOST_RUNS, PLAN, RUN
from holdfast.features.uat.state import Catalogue, Prompt, Run, RunPlan, SessionRuns, run
from holdfast.features.uat.state.detect import WORTH_KEEPING
from holdfast.features.uat.state.order_words import read_prompt

KEPT_OF_PROMPT = 2_000


def reduce(doc: Any, event: Event, ref: Ref) -> Run | RunPlan | Catalogue | SessionRuns | None:
    if ref.kind == RUN:
        return run.reduce_run(doc, event)
    if ref.kind == PLAN:
        return doc or _kept_plan(event)
    if ref.kind == CATALOGUE:
        told: ScenariosRead = event.data
        return Catalogue(scenarios=told.scenarios, problems=told.problems, project=event.project, at=event.at)
    return reduce_session(doc, event)


def _kept_plan(event: Event) -> RunPlan:
    # Only the shape differs: the document has the plan's fields and two of its own.
    fields = msgspec.structs.asdict(event.data.plan)
    return RunPlan(**fields, project=event.project, at=event.at)


def reduce_session(doc: SessionRuns | None, event: Event) -> SessionRuns | None:
    """What a session has going: its run, its last prompt that may be about one."""
    before = doc or SessionRuns(at=event.at, project=event.project)
    changed = copy.copy(before)
    if change := _OF_SESSION.get(event.kind):
        change(changed, event)
    # Sessions without UAT get no document at all.
    if doc is None and not (changed.prompt or changed.runs):
        return None
    if doc is not None and changed == doc:
        return doc
    changed.at, changed.project = event.at, event.project
    changed.status = "active" if changed.active else ""
    return changed


def _note_prompt(doc: SessionRuns, event: Event) -> None:
    """Ordinary prompts leave nothing here."""
    data: PromptSubmitted = event.data
    if data.synthetic or not data.prompt:
        return
    text = data.prompt[:KEPT_OF_PROMPT]
    score = read_prompt(text).score
    doc.prompt = Prompt(text=text, score=score) if score >= WORTH_KEEPING else None
    # A new prompt: scenarios may be begun again, and late calls no longer belong to the ended run.
    doc.used, doc.tail = [], ""


def _note_suggestion(doc: SessionRuns, event: Event) -> None:
    if doc.prompt:
        doc.prompt = msgspec.structs.replace(doc.prompt, suggested=event.data.of)


def _note_run_start(doc: SessionRuns, event: Event) -> None:
    data: RunStarted = event.data
    name, started = data.plan.name, data.uat
    # `previous` is ended by `derive` as superseded.
    doc.previous, doc.active, doc.tail = doc.active, started, ""
    doc.runs = [*doc.runs, started][-MOST_RUNS:]
    doc.used = [*doc.used, name][-MOST_RUNS:]


def _note_run_end(doc: SessionRuns, event: Event) -> None:
    """After a last step the agent may still take a picture of where it arrived: the turn's calls belong to the run."""
    data: RunEnded = event.data
    ended = data.uat
    doc.previous = "" if doc.previous == ended else doc.previous
    if doc.active == ended:
        doc.active, doc.tail = "", ended if data.reason == "last-step" else ""


def _clear_tail(doc: SessionRuns, _event: Event) -> None:
    doc.tail = ""


_OF_SESSION = {
    "prompt.submitted": _note_prompt,
    "turn.ended": _clear_tail,
    "uat.suggested": _note_suggestion,
    "uat.started": _note_run_start,
    "uat.ended": _note_run_end,
    **dict.fromkeys((*ENDINGS, *CUTS_OFF), _clear_tail),
}
