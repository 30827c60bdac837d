"""What an agent is told when it starts: the id decides which session it is, the source decides what is injected."""

from collections.abc import Iterator
from itertools import islice

from holdfast.core.decision import Decision, tell
from holdfast.core.event import Event
from holdfast.core.feature import Settings, State
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import ACTIVE, COMPLETED, DEFAULTS, PLACE, SESSION, SUMMARY
from holdfast.features.sessions.parents import same_process
from holdfast.features.sessions.summary import minutes

SOURCE = "holdfast/sessions"
MOST_OTHERS = 5
RECENT_MS = 7 * 86_400_000


def can_decide(kind: str, settings: Settings) -> bool:
    return kind == "session.started" and (settings or DEFAULTS).inject


def decide(state: State, event: Event, settings: Settings) -> Decision | None:
    if not can_decide(event.kind, settings):
        return None
    doc = state.get(SESSION, event.session)
    if not doc:
        return None
    lines = list(_BY_SOURCE.get(event.get("source", ""), _at_startup)(state, event, doc))
    return tell(SOURCE, "\n".join(lines), weight=40) if lines else None


def _at_startup(state: State, event: Event, _doc: Doc) -> Iterator[str]:
    others = list(_others(state, event))
    live = [o for o in others if o["status"] == ACTIVE]
    if live:
        yield "Other agent sessions are live in this project now (mind their changes):"
        for other in live[:MOST_OTHERS]:
            yield f"- {other['title'] or 'no prompt yet'} ({other['state']}, {_age(event, other['at'])} ago)"
    last = next((o for o in others if o["status"] == COMPLETED and o["prompts"]), None)
    if last and 0 <= event.at - last["ended_at"] < RECENT_MS:
        yield from _left_by(state, event, last, "The last session here")


def _at_resume(_state: State, _event: Event, doc: Doc) -> Iterator[str]:
    """Minimal: the agent has its own history."""
    turn = doc["turn"]
    if turn and turn["how"] == "lost":
        yield f"This session was cut off while working on: {turn['prompt']}"


def _at_clear(state: State, event: Event, doc: Doc) -> Iterator[str]:
    before = next((other for other in _others(state, event) if same_process(doc, other)), None)
    if before and before["prompts"]:
        yield from _left_by(state, event, before, "Before the clear")


def _at_compact(_state: State, _event: Event, doc: Doc) -> Iterator[str]:
    turn = doc["turn"]
    if turn and turn["prompt"]:
        yield f"Before the compaction: turn {turn['n']}, working on: {turn['prompt']}"


_BY_SOURCE = {"resume": _at_resume, "clear": _at_clear, "fork": _at_resume, "compact": _at_compact}


def _others(state: State, event: Event) -> Iterator[Doc]:
    place = state.get(PLACE, event.project) or {"recent": []}
    found = (state.get(SESSION, session) for session in place["recent"] if session != event.session)
    return islice((doc for doc in found if doc), 10)


def _left_by(state: State, event: Event, doc: Doc, label: str) -> Iterator[str]:
    """Only if something was left: an agent need not be told of work that is done."""
    summary = state.get(SUMMARY, doc["id"]) or {}
    cut_off = doc["status"] == COMPLETED and doc["reason"] in ("process-gone", "stale")
    left = summary.get("open", [])[:3]
    if left or cut_off:
        how = f", cut off ({doc['reason']})" if cut_off else ""
        yield f"{label}: {doc['title']} ({_age(event, doc['ended_at'] or doc['at'])} ago{how})."
        yield from (f"- {line}" for line in left)


def _age(event: Event, at: int) -> str:
    ms = max(0, event.at - at)
    return minutes(ms) if ms < 7_200_000 else f"{ms // 3_600_000} h"
