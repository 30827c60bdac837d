"""From a decision to the work: one job per project, so that a run that was asked for twice happens once."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.features.reindex.model import COOLDOWN, RUN, settings_or_default

INDEX, CANCEL, SUGGEST = "reindex.index", "reindex.cancel", "reindex.suggest"


def enqueue(_state: State, event: Event, settings: AnySettings) -> Iterator[Job]:
    if event.kind == "reindex.decided":
        yield from _of_decision(event)
    elif event.kind == "prompt.submitted" and event.session and settings_or_default(settings).context:
        payload = {
            "project": event.project,
            "session": event.session,
            "of": event.seq,
            "prompt": event.get("prompt", ""),
        }
        yield Job(kind=SUGGEST, dedupe=event.session, payload=payload)


def _of_decision(event: Event) -> Iterator[Job]:
    details = event.get("details") or {}
    payload = {
        "project": event.project,
        "session": event.session,
        "run": event.get("run"),
        "trigger": event.get("trigger"),
        "rebuild": details.get("rebuild") is True,
    }
    if event.get("decision") == RUN:
        if superseded := details.get("supersedes"):
            cancel = {"project": event.project, "run": superseded}
            yield Job(kind=CANCEL, dedupe=f"{event.project}#{superseded}", payload=cancel)
        yield Job(kind=INDEX, dedupe=event.project, payload=payload)
    elif event.get("reason") == COOLDOWN:  # Not now, but then: what changed must not stay unseen.
        yield Job(kind=INDEX, dedupe=event.project, run_at=event.at + details["remaining_s"] * 1000, payload=payload)
