"""Turns day.yaml into moments: what happens when, over all sessions."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.core.times import MINUTE

Step = dict[str, Any]

TOOLS = ("read", "edit", "write", "shell", "git", "search", "skill", "web", "ask", "browser")
# Seconds before a step of that kind, before the pace is applied.
GAPS_S = {
    "prompt": 45.0, "read": 4.0, "search": 5.0, "edit": 18.0, "write": 24.0, "shell": 7.0, "git": 5.0, "skill": 12.0,
    "web": 9.0, "ask": 15.0, "browser": 6.0, "says": 14.0, "lanes": 8.0, "compact": 3.0, "person": 20.0, "crash": 9.0,
    "permission": 6.0, "interrupt": 11.0, "end": 30.0, "start": 0.0, "running": 5.0, "plan": 3.0,
}  # fmt: skip
# Milliseconds that a tool takes.
TAKES_MS = {"read": 40, "search": 90, "edit": 60, "write": 45, "shell": 900, "git": 120, "skill": 1500, "web": 1400,
            "ask": 41_000, "browser": 700}  # fmt: skip
PACE = 3.6
"""Models think between two steps."""
COMPACTING_S = 22
NAMES = uuid.UUID("6f9b0a52-5a1c-4f0e-9d3e-0a4b5c6d7e8f")


@dataclass(frozen=True)
class Cast:
    """One session of the day."""

    name: str
    agent: str
    model: str
    project: str
    begins: int
    steps: tuple[Step, ...]
    source: str = "startup"

    @property
    def id(self) -> str:
        return str(uuid.uuid5(NAMES, self.name))


@dataclass(frozen=True, order=True)
class Moment:
    """`what` happens in a session; both halves of a tool call share `call`."""

    at: int
    order: int
    cast: Cast = field(compare=False)
    what: str = field(compare=False)
    step: Step = field(compare=False, default_factory=dict)
    call: str = field(compare=False, default="")
    lane: str = field(compare=False, default="")
    lane_type: str = field(compare=False, default="")
    turn: int = field(compare=False, default=0)
    ms: int = field(compare=False, default=0)


@dataclass(frozen=True)
class Day:
    projects: dict[str, dict[str, Any]]
    settings: str
    casts: tuple[Cast, ...]
    goes_on: tuple[Step, ...]
    weeks: dict[str, list[str]]
    begins: int
    ends: int

    def moments(self) -> list[Moment]:
        """In the order of the day. Moments marked `now` wait until it is over."""
        return sorted(moment for cast in self.casts for moment in _Telling(cast).moments())


def read_day(path: Path, ends: int) -> Day:
    """The day, shifted so that its last minute is `ends` (ms)."""
    from ruamel.yaml import YAML

    script = YAML(typ="safe").load(path)
    shift = ends - clock_minutes(script["ends"]) * MINUTE
    casts = [
        Cast(
            name=one["name"], agent=one["agent"], model=one.get("model", ""), project=one["project"],
            begins=shift + clock_minutes(one["begins"]) * MINUTE, steps=tuple(one["steps"]),
            source=one.get("source", "startup"),
        )
        for one in script["sessions"]
    ]  # fmt: skip
    begins = shift + clock_minutes(script["begins"]) * MINUTE
    return Day(
        script["projects"], script["settings"], tuple(casts), tuple(script["goes_on"]), script["weeks"], begins, ends
    )


def clock_minutes(clock: str) -> int:
    hours, _, rest = clock.partition(":")
    return int(hours) * 60 + int(rest)


class _Telling:
    """Walks through the steps of one session and gives each its time."""

    def __init__(self, cast: Cast) -> None:
        self.cast, self.at = cast, cast.begins
        self.turn = 0
        self._numbers = count()
        self._types: dict[str, str] = {}

    def moments(self) -> Iterator[Moment]:
        yield self._moment("start")
        yield from self._step_moments(self.cast.steps, "")

    def _step_moments(self, steps: tuple[Step, ...] | list[Step], lane: str) -> Iterator[Moment]:
        for step in steps:
            what = next(name for name in step if name in GAPS_S)
            self.at += int(
                1000 * float(step.get("after", GAPS_S[what] * PACE * _pace_factor(self.cast.name, next(self._numbers))))
            )
            if what == "prompt":
                self.turn += 1
            if what == "lanes":
                yield from self._lanes(step)
            elif what in TOOLS:
                yield from self._tool(what, step, lane)
            elif what == "running":
                yield self._moment("before", step, lane=lane, call=f"toolu_{uuid.uuid4().hex[:22]}")
            else:
                yield self._moment(what, step, lane=lane)
                self.at += COMPACTING_S * 1000 if what == "compact" else 0

    def _tool(self, what: str, step: Step, lane: str) -> Iterator[Moment]:
        number = next(self._numbers)
        call = f"toolu_{uuid.uuid5(NAMES, f'{self.cast.name} {number}').hex[:22]}"
        ms = int(step.get("ms", TAKES_MS[what] * _pace_factor(call, number)))
        yield self._moment("before", step, call=call, lane=lane)
        self.at += ms
        yield self._moment("after", step, call=call, lane=lane, ms=ms)

    def _lanes(self, step: Step) -> Iterator[Moment]:
        """Parallel subagents: each has its own time, and the session continues when the last is done."""
        began, ends = self.at, []
        for number, lane in enumerate(step["lanes"]):
            # Started nearly at the same time.
            self.at = began + number * 800
            name = uuid.uuid5(NAMES, f"{self.cast.name} lane {self.turn} {number}").hex[:16]
            call = f"toolu_{name}"
            self._types[name] = lane["type"]
            yield self._moment("before", lane, call=call)
            self.at += 350
            yield self._moment("lane_start", lane, lane=name)
            yield from self._step_moments(lane["steps"], name)
            if lane.get("says"):
                self.at += 4000
                yield self._moment("lane_stop", lane, lane=name)
                yield self._moment("after", lane, call=call, ms=self.at - began)
            ends.append(self.at)
        self.at = max(ends)

    def _moment(self, what: str, step: Step | None = None, lane: str = "", **more: Any) -> Moment:
        more |= {"lane": lane, "lane_type": self._types.get(lane, ""), "turn": self.turn}
        return Moment(self.at, next(self._numbers), self.cast, what, step or {}, **more)


def _pace_factor(*seed: object) -> float:
    """People and models vary in speed, but the day is the same each time: 0.55 to 1.75."""
    return 0.55 + uuid.uuid5(NAMES, " ".join(map(str, seed))).int % 1000 / 833
