"""Which events ask for work in the background. Cheap: it runs for every event, inside its transaction."""

from collections.abc import Iterator

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import Settings, State
from holdfast.core.job import Job
from holdfast.core.ports import Doc
from holdfast.features.sessions import exits
from holdfast.features.sessions.model import COMPLETED, SESSION
from holdfast.features.sessions.parents import LINKED_SOURCES
from holdfast.features.sessions.turns import any_unprocessed

FIND, PROCESS, SUMMARISE, LINK, ADOPT = (
    f"sessions.{word}" for word in ("find", "process", "summarise", "link", "adopt")
)
ENDS = frozenset(("session.ended", "session.lost", "session.stale", "session.closed", "session.left"))
CLOSES = ENDS | {
    "prompt.submitted",
    "notification",
    *(f"turn.{how}" for how in ("ended", "failed", "interrupted", "recovered", "escaped")),
}
WRITTEN_LATE_MS = 1500
NAMES_PROCESS = frozenset(("session.started", "prompt.submitted"))


def enqueue(state: State, event: Event, _settings: Settings) -> Iterator[Job]:
    session, kind = event.session, event.kind
    doc = state.get(SESSION, session) if session else None
    if doc is None:
        return
    if (kind in NAMES_PROCESS or doc["events"] == 1) and _process_unknown(doc, event):
        yield _job(FIND, doc, pid=event.get("pid"), start=event.get("pid_start", 0))
    yield from exits.wanted(event)
    if kind in CLOSES:
        if any_unprocessed(doc):
            yield _job(PROCESS, doc)
        if kind in ENDS and doc["status"] == COMPLETED:
            yield _job(SUMMARISE, doc)
            # An agent may write the last lines of its transcript after the hook that tells of the end. A job of its
            # own: the one that is waiting or running for the end of the turn may look too early.
            late = {"dedupe": f"{doc['id']}/late", "run_at": event.at + WRITTEN_LATE_MS}
            yield msgspec.structs.replace(_job(PROCESS, doc), **late)
    if doc["origin"] in LINKED_SOURCES and not doc["parent"] and kind in ("session.started", "turn.ended"):
        yield _job(LINK, doc)
    turn = doc["turn"]
    if turn and turn["origin"] == "recovery" and turn["first"] == event.seq:
        yield _job(ADOPT, doc)


def _process_unknown(doc: Doc, event: Event) -> bool:
    pid, process = event.get("pid"), doc["process"]
    return bool(pid) and not (process and process["pid"] == pid)


def _job(kind: str, doc: Doc, **payload: object) -> Job:
    return Job(kind=kind, dedupe=doc["id"], payload={"session": doc["id"], **payload})
