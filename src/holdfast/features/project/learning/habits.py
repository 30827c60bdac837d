"""Habits mined from the log: what runs after changes in a folder, what runs before a commit, how long work waits.

A habit's confidence is a lower bound (one-sided 95 %, Clopper-Pearson) on how often it holds, never the raw share:
three times out of three is 0.37, not 1. Each keeps its last 50 outcomes, so that old ways age out.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.kinds.project_events import CommitSeen, HabitFacts, TurnSummed
from holdfast.features.project.document.text import DAY, HOUR
from holdfast.features.project.state import Habit, Habits, HabitTable

KEPT_OUTCOMES = 50
MAX_AREAS, MAX_COMMANDS = 12, 12
FORGET_AFTER = 90 * DAY
SHOWN_FROM, FEWEST = 0.5, 5
CERTAINTY = 0.95
WAITS = (1, 2, 4, 8, 24)
"""Hours within which changes are usually committed: the smallest that holds is shown."""

V = TypeVar("V")


def reduce_habits(doc: Habits | None, event: Event) -> Habits:
    doc = doc or Habits(project=event.project)
    data = event.data
    if isinstance(data, TurnSummed):
        return replace(doc, at=event.at, after=_after(doc.after, data, event.at))
    if isinstance(data, CommitSeen):
        before_commit = _count(doc.before_commit, data.commands, event.at)
        return replace(
            doc, at=event.at, before_commit=before_commit, waits=_waits(doc.waits, data, data.committed_at or event.at)
        )
    return doc


def _after(folders: Mapping[str, HabitTable], turn: TurnSummed, at: int) -> dict[str, HabitTable]:
    changed = {area: _count(folders.get(area) or {}, turn.commands, at) for area in turn.areas}
    return _newest({**folders, **changed}, MAX_AREAS, lambda table: max((h.at for h in table.values()), default=0))


def _count(table: HabitTable, ran: list[str], at: int) -> HabitTable:
    """One more occasion for every command known here. The occasion on which one is first seen proves nothing yet."""
    kept = {
        name: _with_outcome(habit, name in ran, at) for name, habit in table.items() if at - habit.at < FORGET_AFTER
    }
    fresh = {name: Habit(at=at) for name in ran if name not in kept}
    return _newest({**kept, **fresh}, MAX_COMMANDS, lambda habit: habit.at)


def _with_outcome(habit: Habit, holds: bool, at: int) -> Habit:
    outcomes = (habit.outcomes + ("1" if holds else "0"))[-KEPT_OUTCOMES:]
    return Habit(outcomes, at if holds else habit.at)


def _newest(table: Mapping[str, V], most: int, at: Callable[[V], int]) -> dict[str, V]:
    if len(table) <= most:
        return dict(table)
    kept = set(sorted(table, key=lambda name: (at(table[name]), name))[-most:])
    return {name: value for name, value in table.items() if name in kept}


def _waits(waits: HabitTable, commit: CommitSeen, at: int) -> HabitTable:
    if not commit.first_edit:
        return dict(waits)
    took = at - commit.first_edit
    known = {str(hours): waits.get(str(hours)) or Habit() for hours in WAITS}
    return {hours: _with_outcome(habit, took < int(hours) * HOUR, at) for hours, habit in known.items()}


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def shown_habits(doc: Habits | None, now: int) -> list[HabitFacts]:
    """The habits worth showing, the surest first."""
    if not doc:
        return []
    found = [
        *(_facts(f"Always run {name} before commit", h) for name, h in doc.before_commit.items()),
        *(_facts(f"{name} after changes in {area}", h) for area, t in doc.after.items() for name, h in t.items()),
        *_shown_waits(doc.waits),
    ]
    worth = [h for h in found if h.seen >= FEWEST and now - h.last_observed < FORGET_AFTER]
    worth = [h for h in worth if confidence(h.held, h.seen) >= SHOWN_FROM]
    return sorted(worth, key=lambda h: (-confidence(h.held, h.seen), -h.seen, h.pattern))


def _facts(pattern: str, habit: Habit) -> HabitFacts:
    held = habit.outcomes.count("1")
    return HabitFacts(pattern=pattern, held=held, seen=len(habit.outcomes), last_observed=habit.at)


def _shown_waits(waits: HabitTable) -> Iterator[HabitFacts]:
    for hours in WAITS:
        habit = _facts(f"Uncommitted files normal for <{hours} hours", waits.get(str(hours)) or Habit())
        if habit.seen >= FEWEST and confidence(habit.held, habit.seen) >= SHOWN_FROM:
            yield habit
            return


def shared_habits(by_project: Mapping[str, Iterable[HabitFacts]], now: int) -> list[HabitFacts]:
    """Habits that several projects have, their occasions counted together."""
    merged: dict[str, HabitFacts] = {}
    for name, habits in by_project.items():
        for habit in habits:
            if now - habit.last_observed < FORGET_AFTER:
                merged[habit.pattern] = _joined(merged.get(habit.pattern), habit, name)
    several = [h for h in merged.values() if len(h.projects) > 1]
    return sorted(several, key=lambda h: (-confidence(h.held, h.seen), h.pattern))


def _joined(known: HabitFacts | None, habit: HabitFacts, project: str) -> HabitFacts:
    known = known or HabitFacts(pattern=habit.pattern)
    return replace(
        known,
        held=known.held + habit.held,
        seen=known.seen + habit.seen,
        last_observed=max(known.last_observed, habit.last_observed),
        projects=[*known.projects, project],
    )


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
