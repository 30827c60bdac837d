"""day.yaml → moments: what happens when, over all sessions. Nothing is done here yet."""

import difflib
import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.core.times import DAY, HOUR, MINUTE

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
        """In the order of the day. What is marked `now` waits until it is over."""
        return sorted(moment for cast in self.casts for moment in _Telling(cast).moments())


def read_day(path: Path, ends: int) -> Day:
    """The same day, whenever it is shown: its last minute is `ends` (milliseconds)."""
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
        """Subagents side by side: each has its own time, the session goes on when the last is done."""
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
    """People and models are never equally fast, but the day is the same each time: 0.55 to 1.75."""
    return 0.55 + uuid.uuid5(NAMES, " ".join(map(str, seed))).int % 1000 / 833


# The weeks before the day, in outline: sessions with one prompt each, as an import of older records brings them in.
#
# They are made up by a fixed rule, so that the year's picture has something to show; nothing of them went through a
# hook.

BUSY = (5, 6, 4, 6, 3, 1, 0)
"""Sessions of a full day, Monday first."""
MODELS = {"claude-code": "claude-opus-5-5", "codex": "gpt-6-sol"}
AGENTS = ("claude-code", "claude-code", "codex", "gemini")

Record = dict[str, Any]


def session_records(titles: dict[str, list[str]], root: Path, begins: int, weeks: int) -> Iterator[Record]:
    """Oldest first. It began slowly: what came later is more."""
    for days_ago in range(weeks * 7, 0, -1):
        morning = begins - days_ago * DAY
        weekday = datetime.fromtimestamp(morning / 1000, UTC).weekday()
        # The further back, the fewer: the first weeks are at about a fifth.
        full = BUSY[weekday] * (1 - days_ago / (weeks * 9))
        for number in range(round(full * (0.4 + _seeded_fraction(days_ago, "day") * 0.9))):
            yield from _one_session_records(titles, root, morning, days_ago, number)


def _one_session_records(
    titles: dict[str, list[str]], root: Path, morning: int, days_ago: int, number: int
) -> Iterator[Record]:
    seed = f"{days_ago} {number}"
    project = _one_of(list(titles), seed, "project")
    agent = _one_of(AGENTS, seed, "agent")
    at = morning + int((number * 1.6 + _seeded_fraction(seed, "when")) * HOUR)
    ms = int((6 + 50 * _seeded_fraction(seed, "long") ** 2) * MINUTE)
    tools = 4 + int(60 * _seeded_fraction(seed, "tools") ** 2)
    failed = int(tools * 0.15 * _seeded_fraction(seed, "failed"))
    session = str(uuid.uuid5(NAMES, f"weeks {seed}"))
    title = _one_of(titles[project], seed, "title")

    def record(kind: str, when: int, **data: Any) -> Record:
        key = uuid.uuid5(NAMES, f"{session} {kind} {when}").hex
        return {"key": key, "kind": kind, "at": when, "session": session, "project": str(root / project),
                "agent": agent, "data": {"imported": agent, **data}}  # fmt: skip

    day = datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
    yield record("session.started", at, source="startup")
    yield record("prompt.submitted", at + 1, prompt=title)
    for n in range(tools):
        yield record("tool.finished", at + (n + 1) * ms // (tools + 1), action="other", ok=n >= failed)
    yield record("turn.ended", at + ms, message="Done.")
    if agent != "gemini":
        tokens = {"input": 900, "output": 180 * tools, "cache_read": 26_000 * tools, "cache_write_5m": 2_400 * tools}
        yield record("model.answered", at + ms, model=MODELS.get(agent, ""), tokens=tokens, turn_n=1, day=day)
    yield record("session.ended", at + ms + MINUTE, reason="exit")


def _seeded_fraction(*seed: object) -> float:
    return uuid.uuid5(NAMES, " ".join(map(str, seed))).int % 10_000 / 10_000


def _one_of(choices: Any, *seed: object) -> Any:
    return choices[int(_seeded_fraction(*seed) * len(choices))]


# The demo's projects: real git repositories, whose files and commits are as old as the day says.

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c", "init.defaultBranch=main")
# The user's signing key and hooks must not be used here.
NO_SIGNING = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
CONTEXT_LINES = 3


class Repo:
    def __init__(self, root: Path, home: Path) -> None:
        self.root, self._home = root, home

    def make(self, files: dict[str, str], at: int) -> None:
        self.root.mkdir(parents=True)
        self.git("init -q", at)
        for path, text in files.items():
            self.write(path, text, at)
        self.git("add -A", at)
        self.git("commit -q -m 'First version'", at)

    def write(self, path: str, text: str, at: int) -> dict[str, Any]:
        """What a tool that wrote it would say about the change."""
        file = self.root / path
        before = file.read_text() if file.exists() else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (at / 1000, at / 1000))
        return {"file": str(file), "before": before, "after": text, "hunks": patch_hunks(before, text)}

    def edit(self, path: str, old: str, new: str, at: int) -> dict[str, Any]:
        before = (self.root / path).read_text()
        # The day and its files do not fit together: better a failure than a wrong demo.
        if old not in before:
            raise LookupError(f"{path} of {self.root.name} does not hold {old!r}")
        return self.write(path, before.replace(old, new, 1), at)

    def git(self, words: str, at: int) -> str:
        """By a shell, as agents do it; the user's own git settings are not asked."""
        command = " ".join(["git", *map(_quote_word, (*AUTHOR, *NO_SIGNING)), words])
        when = f"{at // 1000} +0000"
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self._home), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "LANG": "C.UTF-8",
        }  # fmt: skip
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        return (done.stdout + done.stderr).strip()


def _quote_word(word: str) -> str:
    return f"'{word}'"


def patch_hunks(before: str, after: str) -> list[dict[str, Any]]:
    """As Claude Code writes a patch."""
    old, new = before.splitlines(), after.splitlines()
    groups = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)
    return [_patch_hunk(old, new, group) for group in groups]


def _patch_hunk(old: list[str], new: list[str], group: list[tuple[str, int, int, int, int]]) -> dict[str, Any]:
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            lines += [f" {line}" for line in old[i1:i2]]
        else:
            lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
    first, last = group[0], group[-1]
    return {
        "oldStart": first[1] + 1, "oldLines": last[2] - first[1],
        "newStart": first[3] + 1, "newLines": last[4] - first[3], "lines": lines,
    }  # fmt: skip


def as_text(path: str, diff: dict[str, Any]) -> str:
    """The same as a unified diff."""
    lines = [f"--- {path}", f"+++ {path}"]
    for hunk in diff["hunks"]:
        lines.append(f"@@ -{hunk['oldStart']},{hunk['oldLines']} +{hunk['newStart']},{hunk['newLines']} @@")
        lines += hunk["lines"]
    return "\n".join(lines) + "\n"
