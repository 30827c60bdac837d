"""Events into documents. Pure."""

import copy
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.kinds.uat_events import RunEnded, RunStarted
from holdfast.core.ports import Doc, Ref
from holdfast.features.uat import run
from holdfast.features.uat.detect import WORTH_KEEPING
from holdfast.features.uat.model import CATALOGUE, CUTS_OFF, ENDINGS, MOST_RUNS, PLAN, RUN
from holdfast.features.uat.prompt import read
from holdfast.features.uat.state import Prompt, Run, SessionRuns

KEPT_OF_PROMPT = 2_000


def reduce(doc: Any, event: Event, ref: Ref) -> Doc | Run | SessionRuns | None:
    if ref.kind == RUN:
        return run.reduced(doc, event)
    if ref.kind == PLAN:
        return doc or {**event.data.plan, "project": event.project, "at": event.at}
    if ref.kind == CATALOGUE:
        return {**event.data.as_dict(), "project": event.project, "at": event.at}
    return reduce_session(doc, event)


def reduce_session(doc: SessionRuns | None, event: Event) -> SessionRuns | None:
    """What a session has going: its run, its last prompt that may be about one."""
    before = doc or SessionRuns(at=event.at, project=event.project)
    changed = copy.copy(before)
    _OF_SESSION.get(event.kind, _unchanged)(changed, event)
    if doc is None and not (changed.prompt or changed.runs):
        return None
    if doc is not None and changed == doc:
        return doc
    changed.at, changed.project = event.at, event.project
    changed.status = "active" if changed.active else ""
    return changed


def _prompted(doc: SessionRuns, event: Event) -> None:
    """Ordinary prompts leave nothing here."""
    told: PromptSubmitted = event.data
    if told.synthetic or not told.prompt:
        return
    text = told.prompt[:KEPT_OF_PROMPT]
    score = read(text).score
    doc.prompt = Prompt(text=text, score=score) if score >= WORTH_KEEPING else None
    doc.used, doc.tail = [], ""


def _suggested(doc: SessionRuns, event: Event) -> None:
    if doc.prompt:
        doc.prompt = msgspec.structs.replace(doc.prompt, suggested=event.data.of)


def _started(doc: SessionRuns, event: Event) -> None:
    told: RunStarted = event.data
    name, started = str(told.plan.get("name", "")), told.uat
    doc.previous, doc.active, doc.tail = doc.active, started, ""
    doc.runs = [*doc.runs, started][-MOST_RUNS:]
    doc.used = [*doc.used, name][-MOST_RUNS:]


def _ended(doc: SessionRuns, event: Event) -> None:
    """After a last step the agent may still take a picture of where it arrived: the turn's calls belong to the run."""
    told: RunEnded = event.data
    ended = told.uat
    doc.previous = "" if doc.previous == ended else doc.previous
    if doc.active == ended:
        doc.active, doc.tail = "", ended if told.reason == "last-step" else ""


def _turned(doc: SessionRuns, _event: Event) -> None:
    doc.tail = ""


def _unchanged(_doc: SessionRuns, _event: Event) -> None:
    return


_OF_SESSION = {
    "prompt.submitted": _prompted,
    "turn.ended": _turned,
    "uat.suggested": _suggested,
    "uat.started": _started,
    "uat.ended": _ended,
    **dict.fromkeys((*ENDINGS, *CUTS_OFF), _turned),
}
