"""When to index and what to tell the agent: derived events, jobs, decisions. Pure; every answer has its reason (O0-c)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.decision import Decision, tell
from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.ports import Doc
from holdfast.features.reindex.events import (
    AGAIN,
    BRANCH,
    COMMAND,
    CONCURRENT,
    COOLDOWN,
    FIRST_PROMPT,
    NOT_READY,
    RUN,
    SKIP,
    SOURCE,
    SPAWNED,
    TURN_END,
)
from holdfast.features.reindex.settings import Settings, settings_or_default
from holdfast.features.reindex.state import CHECKOUT, SESSION, new_checkout

HOUR_MS = 3_600_000
INDEX, CANCEL, SUGGEST = "reindex.index", "reindex.cancel", "reindex.suggest"
WEIGHT = 30
SHOWN_LINES = 5


# ── whether to run ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Choice(msgspec.Struct, frozen=True):
    decision: str
    reason: str
    details: dict[str, Any] = {}


def choose_run(trigger: str, checkout: Doc, now: int, settings: Settings, *, rebuild: bool = False) -> Choice:
    for gate in (_prerequisites, _cooldown, _one_at_a_time):
        if refused := gate(trigger, checkout, now, settings):
            return refused
    running = checkout["run"] if _is_running(checkout, now, settings) else None
    superseded = {"supersedes": running["id"]} if running else {}
    anew = rebuild or bool(running and running.get("rebuild"))  # who asked for it is not forgotten
    return Choice(RUN, SPAWNED, {**superseded, **({"rebuild": True} if anew else {})})


def _prerequisites(trigger: str, checkout: Doc, now: int, settings: Settings) -> Choice | None:
    if trigger == COMMAND:
        return None
    project = checkout["project"]
    if not settings.enabled:
        return Choice(SKIP, NOT_READY, {"why": "reindex.enabled is false"})
    if not project.startswith("/") or project == "/":
        return Choice(SKIP, NOT_READY, {"why": "no project folder is known"})
    refused = checkout["refused"]
    if refused and now - refused["at"] < settings.recheck_hours * HOUR_MS:
        return Choice(SKIP, NOT_READY, {"why": refused["why"], "checked_at": refused["at"]})
    return None


def _cooldown(trigger: str, checkout: Doc, now: int, settings: Settings) -> Choice | None:
    """For ends of turns alone: a new session and another branch are too rare to be held back."""
    left = checkout["started_at"] + settings.cooldown_s * 1000 - now
    if trigger != TURN_END or not 0 < left <= settings.cooldown_s * 1000:  # more: the clock was turned back
        return None
    return Choice(SKIP, COOLDOWN, {"remaining_s": -(-left // 1000)})


def _one_at_a_time(trigger: str, checkout: Doc, now: int, settings: Settings) -> Choice | None:
    if trigger in (BRANCH, COMMAND) or not _is_running(checkout, now, settings):
        return None
    return Choice(SKIP, CONCURRENT, {"run": checkout["run"]["id"]})


def _is_running(checkout: Doc, now: int, settings: Settings) -> bool:
    """A run whose end was never told (its daemon died again and again) does not hold the others up for ever."""
    run = checkout["run"]
    return run is not None and abs(now - run["at"]) < 2 * settings.timeout_s * 1000


# ── events that follow ──────────────────────────────────────────────────────────────────────────────────────────────────


def derive(state: State, event: Event, settings: AnySettings) -> Iterator[Event]:
    if not event.project:
        return
    session = state.get(SESSION, event.session) if event.session else None
    checkout = state.get(CHECKOUT, event.project) or new_checkout(event.project, event.at)
    mine = settings_or_default(settings)
    if session and _is_new_here(event, session):
        yield _initialized(event, session, checkout)
    if trigger := _trigger(event, session, checkout, mine):
        yield _decided(event, trigger, checkout, mine)


def _is_new_here(event: Event, session: Doc) -> bool:
    return event.kind == "session.started" or (event.kind == "prompt.submitted" and not session["started"])


def _initialized(event: Event, session: Doc, checkout: Doc) -> Event:
    previous = (checkout["newest"] or {}).get("session_id", "")
    data = {
        "source": event.get("source", "unknown") if event.kind == "session.started" else "unknown",
        "shown": session["shown"],
        "previous": previous,
        "reset": previous != event.session,
    }
    return _of(event, "reindex.initialized", data)


def _trigger(event: Event, session: Doc | None, checkout: Doc, settings: Settings) -> str:
    if event.kind == "reindex.asked":
        return COMMAND
    if event.kind == "reindex.finished":
        return AGAIN if checkout["again"] else ""
    if session is None:
        return ""
    if event.kind == "prompt.submitted" and session["first_prompt_seq"] == event.seq:
        return FIRST_PROMPT
    if session["switched_seq"] == event.seq and session["branch"] != (checkout["last"] or {}).get("branch"):
        return BRANCH
    if event.kind == "turn.ended" and _worth_a_look(event, session, checkout, settings):
        return TURN_END
    return ""


def _worth_a_look(event: Event, session: Doc, checkout: Doc, settings: Settings) -> bool:
    turn = session["turn"]
    changed = turn.get("edits", 0) + turn.get("commands", 0) > 0
    return changed or (settings.max_age_s > 0 and event.at - checkout["good_at"] > settings.max_age_s * 1000)


def _decided(event: Event, trigger: str, checkout: Doc, settings: Settings) -> Event:
    choice = choose_run(trigger, checkout, event.at, settings, rebuild=event.get("rebuild") is True)
    data = {
        "decision": choice.decision,
        "reason": choice.reason,
        "details": choice.details,
        "trigger": trigger,
        "run": f"{event.at}-{trigger}-{event.seq}",
        "cwd": event.get("cwd", ""),
        "branch": event.get("branch", ""),
    }
    return _of(event, "reindex.decided", data)


def _of(event: Event, kind: str, data: Doc) -> Event:
    return Event(key="", kind=kind, at=event.at, session=event.session, project=event.project, agent="", data=data)


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── what the agent is told ──────────────────────────────────────────────────────────────────────────────────────────────


def can_decide(kind: str, settings: AnySettings) -> bool:
    return kind == "tool.finished" and settings_or_default(settings).context


def decide(state: State, event: Event, settings: AnySettings) -> Decision | None:
    if not event.session or not can_decide(event.kind, settings):
        return None
    offer = (state.get(SESSION, event.session) or {}).get("offer")
    return tell(SOURCE, _text(offer["chunks"]), WEIGHT) if offer else None


def _text(chunks: list[Doc]) -> str:
    lines = ["Places in this code base that fit the prompt:"]
    for chunk in chunks:
        lines.append(f"- {chunk['path']}:{chunk['line']} {chunk['symbol']}".rstrip())
        lines += [f"    {line}" for line in chunk["excerpt"].split("\n")[:SHOWN_LINES]]
    return "\n".join(lines)
