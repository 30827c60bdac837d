"""Habits mined from the log: what runs after changes in a place, what runs before a commit, how long work waits.

A habit's confidence is a lower bound (one-sided 95 %, Clopper-Pearson) on how often it holds, never the raw share:
three times out of three is 0.37, not 1. Each keeps its last 50 outcomes, so that old ways age out.
"""

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.project.model import DAY, HOUR, number

RING = 50
MOST_AREAS, MOST_COMMANDS = 12, 12
FORGET_AFTER = 90 * DAY
SHOWN_FROM, FEWEST = 0.5, 5
CERTAINTY = 0.95
WAITS = (1, 2, 4, 8, 24)
"""Hours within which changes are usually committed: the smallest that holds is told."""

Habit = dict[str, Any]
Table = Mapping[str, Habit]


def reduce(doc: Doc | None, event: Event) -> Doc:
    doc = doc or {"project": event.project, "at": 0, "after": {}, "before_commit": {}, "waits": {}}
    if event.kind == "project.turn_summed":
        return {**doc, "at": event.at, "after": _after(doc["after"], event)}
    return {
        **doc,
        "at": event.at,
        "before_commit": _table(doc["before_commit"], event.get("commands") or (), event.at),
        "waits": _waits(doc["waits"], event),
    }


def _after(places: Mapping[str, Any], event: Event) -> dict[str, Any]:
    ran = event.get("commands") or ()
    changed = {area: _table(places.get(area) or {}, ran, event.at) for area in event.get("areas") or ()}
    return _newest({**places, **changed}, MOST_AREAS, lambda table: max((h["at"] for h in table.values()), default=0))


def _table(table: Table, ran: Iterable[str], at: int) -> dict[str, Habit]:
    """One more occasion for every command known here. The occasion on which one is first seen proves nothing yet."""
    ran = list(ran)
    kept = {name: _with(habit, name in ran, at) for name, habit in table.items() if at - habit["at"] < FORGET_AFTER}
    fresh = {name: {"outcomes": "", "at": at} for name in ran if name not in kept}
    return _newest({**kept, **fresh}, MOST_COMMANDS, lambda habit: habit["at"])


def _with(habit: Habit, holds: bool, at: int) -> Habit:
    outcomes = (habit["outcomes"] + ("1" if holds else "0"))[-RING:]
    return {"outcomes": outcomes, "at": at if holds else habit["at"]}


def _newest(table: Mapping[str, Any], most: int, at: Any) -> dict[str, Any]:
    if len(table) <= most:
        return dict(table)
    kept = set(sorted(table, key=lambda name: (at(table[name]), name))[-most:])
    return {name: value for name, value in table.items() if name in kept}


def _waits(waits: Table, event: Event) -> dict[str, Habit]:
    first = number(event.get("first_edit"))
    if not first:
        return dict(waits)
    took = event.at - first
    known = {str(hours): waits.get(str(hours)) or {"outcomes": "", "at": 0} for hours in WAITS}
    return {hours: _with(habit, took < int(hours) * HOUR, event.at) for hours, habit in known.items()}


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────────────


def told(doc: Doc | None, now: int) -> list[Habit]:
    """The habits worth telling, the surest first: `pattern`, `held`, `seen`, `last_observed`."""
    if not doc:
        return []
    found = [
        *(_told(f"Always run {name} before commit", h) for name, h in doc["before_commit"].items()),
        *(_told(f"{name} after changes in {area}", h) for area, t in doc["after"].items() for name, h in t.items()),
        *_waits_told(doc["waits"]),
    ]
    worth = [h for h in found if h["seen"] >= FEWEST and now - h["last_observed"] < FORGET_AFTER]
    worth = [h for h in worth if confidence(h["held"], h["seen"]) >= SHOWN_FROM]
    return sorted(worth, key=lambda h: (-confidence(h["held"], h["seen"]), -h["seen"], h["pattern"]))


def _told(pattern: str, habit: Habit) -> Habit:
    held = habit["outcomes"].count("1")
    return {"pattern": pattern, "held": held, "seen": len(habit["outcomes"]), "last_observed": habit["at"]}


def _waits_told(waits: Table) -> Iterable[Habit]:
    for hours in WAITS:
        habit = _told(
            f"Uncommitted files normal for <{hours} hours", waits.get(str(hours)) or {"outcomes": "", "at": 0}
        )
        if habit["seen"] >= FEWEST and confidence(habit["held"], habit["seen"]) >= SHOWN_FROM:
            yield habit
            return


def shared(by_project: Mapping[str, Iterable[Habit]], now: int) -> list[Habit]:
    """Habits that several projects have, their occasions counted together."""
    merged: dict[str, Habit] = {}
    for name, habits in by_project.items():
        for habit in habits:
            if now - habit["last_observed"] < FORGET_AFTER:
                merged[habit["pattern"]] = _joined(merged.get(habit["pattern"]), habit, name)
    several = [h for h in merged.values() if len(h["projects"]) > 1]
    return sorted(several, key=lambda h: (-confidence(h["held"], h["seen"]), h["pattern"]))


def _joined(known: Habit | None, habit: Habit, project: str) -> Habit:
    known = known or {"pattern": habit["pattern"], "held": 0, "seen": 0, "last_observed": 0, "projects": []}
    return {
        **known,
        "held": known["held"] + habit["held"],
        "seen": known["seen"] + habit["seen"],
        "last_observed": max(known["last_observed"], habit["last_observed"]),
        "projects": [*known["projects"], project],
    }


@lru_cache(10_000)
def confidence(held: int, seen: int, certainty: float = CERTAINTY) -> float:
    """The share below which the truth lies only one time in twenty. Found by halving; rounded down."""
    if held <= 0 or seen <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _at_least(held, seen, middle) < 1 - certainty:
            low = middle
        else:
            high = middle
    return int(low * 1000) / 1000


def _at_least(held: int, seen: int, share: float) -> float:
    """How likely it is to see it hold so often, were that its true share. In logarithms: powers of it underflow."""
    if not 0 < share < 1:
        return float(share >= 1)
    yes, no, ways = math.log(share), math.log1p(-share), math.lgamma(seen + 1)
    return sum(
        math.exp(ways - math.lgamma(k + 1) - math.lgamma(seen - k + 1) + k * yes + (seen - k) * no)
        for k in range(held, seen + 1)
    )
