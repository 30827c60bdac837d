"""When to index: the triggers, and the gates each of them passes in order. Pure; every answer has its reason (O0-c)."""

from typing import Any

import msgspec

from holdfast.core.ports import Doc
from holdfast.features.reindex.model import (
    BRANCH,
    COMMAND,
    CONCURRENT,
    COOLDOWN,
    NOT_READY,
    RUN,
    SKIP,
    SPAWNED,
    TURN_END,
    Settings,
)

HOUR_MS = 3_600_000


class Choice(msgspec.Struct, frozen=True):
    decision: str
    reason: str
    details: dict[str, Any] = {}


def choose(trigger: str, checkout: Doc, now: int, settings: Settings, *, rebuild: bool = False) -> Choice:
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
