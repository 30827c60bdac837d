"""Events into documents. Pure."""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import Facets, plain_facets
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.kinds.uat_events import RunEnded, RunStarted, ScenariosRead, UatPayload
from holdfast.core.ports import Doc, Ref
from holdfast.features.uat.settings import ARCHIVED, CATALOGUE, CUTS_OFF, ENDINGS, MOST_RUNS, PLAN, RUN, SESSION
from holdfast.features.uat.state import Catalogue, Prompt, Run, RunPlan, SessionRuns, run
from holdfast.features.uat.state.detect import WORTH_KEEPING, read_prompt

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
    _OF_SESSION.get(event.kind, _keep_unchanged)(changed, event)
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


def _keep_unchanged(_doc: SessionRuns, _event: Event) -> None:
    return


_OF_SESSION = {
    "prompt.submitted": _note_prompt,
    "turn.ended": _clear_tail,
    "uat.suggested": _note_suggestion,
    "uat.started": _note_run_start,
    "uat.ended": _note_run_end,
    **dict.fromkeys((*ENDINGS, *CUTS_OFF), _clear_tail),
}


# Which documents an event touches. Tool calls touch none by themselves: `follow` says what they mean for a run.

_SESSION_KINDS = frozenset(
    ("prompt.submitted", "turn.ended", "uat.started", "uat.ended", "uat.suggested", *ENDINGS, *CUTS_OFF)
)  # fmt: skip


def keys(event: Event) -> Iterator[Ref]:
    if event.kind == "uat.scenarios":
        yield Ref(CATALOGUE, event.project)
        return
    run = run_of(event)
    if run:
        yield Ref(RUN, run)
        if event.kind == "uat.started":
            yield Ref(PLAN, run)
    if event.kind in _SESSION_KINDS and event.session:
        yield Ref(SESSION, event.session)


def run_of(event: Event) -> str:
    """The run an event of this feature belongs to."""
    return event.data.uat if isinstance(event.data, UatPayload) else ""


def facets(ref: Ref, doc: Doc) -> Facets:
    project, status, at = plain_facets(ref, doc)
    return project, ARCHIVED if isinstance(doc, Run) and doc.archived else status, at


def stream(ref: Ref) -> dict[str, str]:
    """A run's events are those of its session, but its name does not say which: the whole log is looked through."""
    if ref.kind == SESSION:
        return {"session": ref.key}
    return {"project": ref.key} if ref.kind == CATALOGUE else {}
