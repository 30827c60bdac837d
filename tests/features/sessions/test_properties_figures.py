"""One figure, one source, in histories that nobody made up: parallel and repeated calls, denials, interrupts, subagents,
compactions, kills, resumed sessions, hooks out of order or twice, clocks that are wrong, in every agent.

`HOLDFAST_EXPLORE=1` tries many more of them.
"""

import dataclasses
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.usage.report import UNTOLD, format_cost_facts, format_known_cost
from holdfast.core.kinds import TOOL_ENDS
from holdfast.core.machine import boot_id, machine_id
from holdfast.core.times import format_duration
from holdfast.doors.mcp.context import Caller, Context
from holdfast.doors.mcp.resources import timeline_lines
from holdfast.features import cost
from holdfast.features.cost.settings import CostSettings

from .story import an
from .test_timelines import PARTS, SESSION, Recorder, Script

FIGURES = (
    "state", "duration_ms", "turn_n", "turns_count", "prompts", "tools", "failed", "denied", "edits", "compactions",
    "tokens", "total_tokens", "cost", "unpriced", "reported_cost", "open_gates",
)  # fmt: skip
GROUPINGS = ("day", "month", "session", "turn", "project", "agent", "model", "branch", "commit", "block")
MODELS = ("claude-opus-5-5", "claude-haiku-5-5", "a-model-of-nobody", "gpt-5.5", "<synthetic>")
# `make test` tries two of each agent.
SEEDS = range(2 if not os.environ.get("HOLDFAST_EXPLORE") else 40)


class History:
    """Random, and the same for the same seed."""

    def __init__(self, house: Recorder, agent: str, seed: int) -> None:
        self.house, self.agent, self.names = house, agent, PARTS[agent]
        self.chance = random.Random(f"{agent} {seed}")
        self.script = Script(agent)
        self.turn = self.calls = 0
        self.running: list[tuple[str, str]] = []

    def play(self) -> None:
        self.script.fire(self.names.start)
        self.prompt()
        for _ in range(self.chance.randrange(10, 40)):
            self.chance.choice(self.moves())()
        if self.names.end and self.chance.random() < 0.6:
            self.script.fire(self.names.end)
        self.flush()

    def moves(self) -> list[Any]:
        names = self.names
        moves = [self.begin, self.begin, self.begin, self.end, self.end, self.end, self.denied, self.prompt, self.stop, self.spend,
                 self.spend, self.wrong_clock, self.killed]  # fmt: skip
        moves += [self.fail] if names.failure else []
        moves += [self.subagent] if names.subagent else []
        moves += [lambda: self.fire_all(names.compaction)] if names.compaction else []
        moves += [lambda: self.script.fire(names.interrupt, **{names.turn: self.turn_id})] if names.interrupt else []
        moves += (
            [lambda: self.script.fire(names.empty_prompt, **{names.turn: self.turn_id})] if names.empty_prompt else []
        )
        return moves

    @property
    def turn_id(self) -> str:
        return f"t{self.turn}"

    def prompt(self) -> None:
        self.turn += 1
        self.script.prompt(f"Do thing {self.turn}", self.turn_id)

    def begin(self) -> None:
        self.calls += 1
        # Some commands are the same: without ids only their order tells them apart.
        call = (f"make {self.chance.choice(('build', 'test', f'thing-{self.calls}'))}", f"c{self.calls}")
        self.running.append(call)
        self.script.call(self.names.before, *call, self.turn_id)

    def end(self) -> None:
        if self.running:
            self.script.call(
                self.names.after, *self.running.pop(self.chance.randrange(len(self.running))), self.turn_id
            )

    def fail(self) -> None:
        if self.running:
            self.script.call(self.names.failure, *self.running.pop(), self.turn_id)

    def denied(self) -> None:
        self.calls += 1
        self.script.call(self.names.before, f"rm -rf {self.calls}", f"c{self.calls}", self.turn_id)

    def stop(self) -> None:
        self.script.stop(self.turn_id)

    def subagent(self) -> None:
        self.fire_all(self.names.subagent)

    def fire_all(self, stems: tuple[str, ...]) -> None:
        self.calls += 1
        for stem in stems:
            named = {self.names.turn: self.turn_id} if self.names.turn and self.agent != "opencode" else {}
            if "ToolUse" in stem and self.names.call:
                # Models that count from 0 use an id again in a subagent.
                named[self.names.call] = f"c{self.calls if self.chance.random() < 0.8 else 1}"
            self.script.fire(stem, **named)

    def spend(self) -> None:
        """Read from a file later; what nobody told is absent."""
        self.flush()
        tokens = {kind: self.chance.randrange(1, 90_000) for kind in ("input", "output", "cache_read", "cache_write_1h")
                  if self.chance.random() < 0.7}  # fmt: skip
        told = {"tokens": tokens, "turn_n": self.chance.randrange(self.turn + 1), "model": self.chance.choice(MODELS)}
        if self.chance.random() < 0.2:
            told["reported"] = self.chance.randrange(1, 3_000_000)
        self.house.take([an("model.answered", at=self.house.clock(), session=SESSION, **told)])

    def wrong_clock(self) -> None:
        self.flush()
        self.house.clock.tick(self.chance.choice((-90_000, 3_600_000, 26 * 3_600_000)))

    def killed(self) -> None:
        """Its process is gone, and the session is resumed."""
        if self.chance.random() < 0.7:
            return
        self.flush()
        process = {"pid": 4_000_000, "start": self.chance.randrange(1, 99), "boot": boot_id(), "machine": machine_id()}
        self.house.take([an("session.process", at=self.house.clock.tick(1000), session=SESSION, **process)])
        self.house.run("sessions.lost")
        self.running.clear()
        self.prompt()

    def flush(self) -> None:
        """Played in order, but that neighbours may be swapped and one may come twice."""
        hooks, self.script.hooks = self.script.hooks, []
        for n in range(len(hooks) - 1):
            if self.chance.random() < 0.04:
                hooks[n], hooks[n + 1] = hooks[n + 1], hooks[n]
        played = Script(self.agent, [hook for hook in hooks for _ in range(2 if self.chance.random() < 0.03 else 1)])
        self.house.play(played)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("agent", PARTS)
def test_every_figure_is_the_same_everywhere(tmp_path: Path, agent: str, seed: int) -> None:
    house = Recorder(tmp_path)
    try:
        History(house, agent, seed).play()
        check(house)
        assert house.replayed() == []
    finally:
        house.close()


def check(house: Recorder) -> None:
    show = house.view("show", id=SESSION, turns=500)
    timeline = house.view("timeline", id=SESSION, limit=500)
    assert timeline["next"] is None
    (listed,) = house.view("list", all=True)["sessions"]
    exports = {form: whole_export(house, form) for form in ("md", "html", "jsonl")}
    first = json.loads(exports["jsonl"].splitlines()[0])
    for other in (listed, timeline["session"], first):
        assert {name: other[name] for name in FIGURES} == {name: show[name] for name in FIGURES}
    for summary in (show["summary"], first["summary"]):
        named = ("prompts", "tools", "failed", "denied", "edits", "ms")
        assert [summary[name] for name in named] == [show[n] for n in (*named[:-1], "duration_ms")]
    check_doors(house, show)
    check_rows(timeline["entries"], show)
    check_texts(house, exports, show)
    check_money(house, show)


class AskingRecorder(Context):
    """MCP's side of a call, with the same views behind it."""

    house: Any = None

    def view(self, name: str, **args: Any) -> Any:
        return self.house.view(name.removeprefix("sessions."), **args)


def check_doors(house: Recorder, show: dict[str, Any]) -> None:
    """What pages, the HTTP API, MCP and whoever goes on with the work are given."""
    (tabled,) = house.view("table")["sessions"]
    assert {name: tabled[name] for name in FIGURES} == {name: show[name] for name in FIGURES}
    overview = house.view("overview", id=SESSION)
    assert [turn["tools"] for turn in overview["turns"]] == [turn["tools"] for turn in show["turns"]]
    for turn, other in zip(overview["turns"], show["turns"], strict=True):
        assert {name: turn[name] for name in ("tokens", "cost", "unpriced")} == {
            name: other[name] for name in ("tokens", "cost", "unpriced")
        }
    outline = house.view("outline", id=SESSION)
    assert outline["rows"] == sum(turn.get("rows", 0) for turn in outline["turns"])
    for turn, other in zip(outline["turns"][-len(show["turns"]) :], show["turns"], strict=True):
        text = format_known_cost(other["cost"], other["unpriced"]) if other["cost"] is not None else ""
        assert (turn["n"], turn.get("cost_text", ""), turn.get("tools", 0)) == (other["n"], text, other["tools"])
    for live in house.view("who")["sessions"]:
        assert {name: live[name] for name in FIGURES} == {name: show[name] for name in FIGURES}
    line = list(timeline_lines(SESSION, AskingRecorder(Caller("/p"), lambda *_: None, house=house)))[1]
    counts = [int(n) for n in re.findall(r"(\d+) (?:turns|prompts|tool calls|failed|denied|edits|open gates)", line)]
    assert counts == [show[name] for name in ("turn_n", "prompts", "tools", "failed", "denied", "edits", "open_gates")]
    assert line.endswith(f"| {format_cost_facts(show['cost'], show['reported_cost'], show['unpriced'])}")


def whole_export(house: Recorder, form: str) -> str:
    page = house.view("export", id=SESSION, format=form)
    text = page["text"]
    while page["next"]:
        page = house.view("export", id=SESSION, format=form, after=page["next"])
        text += page["text"]
    return str(text)


def check_rows(rows: list[dict[str, Any]], show: dict[str, Any]) -> None:
    """The figures are what the rows add up to."""
    ended = [row["outcome"] for row in rows if row["kind"] in TOOL_ENDS]
    assert (len(ended), ended.count("failed")) == (show["tools"], show["failed"])
    denials = [
        row
        for row in rows
        if row["outcome"] == "denied" or row["verdict"] == "deny" or row["kind"] == "permission.denied"
    ]
    assert len(denials) == show["denied"]
    typed = [row for row in rows if row["kind"] == "prompt.submitted" and not row["synthetic"] and not row["lane"]]
    assert len(typed) == show["prompts"]
    assert max((row["turn"] for row in rows), default=0) <= show["turn_n"]
    assert all(row["ms"] >= 0 for row in rows)


def check_texts(house: Recorder, exports: dict[str, str], show: dict[str, Any]) -> None:
    work = re.compile(rf"{show['prompts']} prompts?, {show['tools']} tool calls?")
    markdown = exports["md"].replace("\\", "")
    for text in (show["summary"]["text"], markdown, exports["html"]):
        assert work.search(text), text[:600]
    for text in (markdown, re.sub(r"<[^>]+>", " ", exports["html"])):
        assert format_duration(show["duration_ms"]) in text
        assert show["end"] in text
    line = house.view("statusline", id=SESSION)["text"]
    money = UNTOLD if show["cost"] is None else format_known_cost(show["cost"], show["unpriced"])
    if show["total_tokens"] is not None:
        # What no price is known for is said, in one way or the other: less than all of it never looks like all.
        assert (
            line.startswith(f"{money} ")
            and format_cost_facts(show["cost"], show["reported_cost"], show["unpriced"]) in markdown
        )


def check_money(house: Recorder, show: dict[str, Any]) -> None:
    """Every grouping adds up to the session's own figures, and so do its turns with what no turn is known for."""
    by_turn = [turn["cost"] for turn in show["turns"] if turn["cost"] is not None]
    for by in GROUPINGS:
        report = cost.FEATURE.views["report"](dataclasses.replace(house.call(by=by), settings=CostSettings()))
        groups = report["groups"]
        assert sum(group["tokens"]["total"] or 0 for group in groups) == (show["total_tokens"] or 0), by
        priced = [group["cost_micro_dollars"] for group in groups if group["cost_micro_dollars"] is not None]
        assert sum(priced) == (show["cost"] or 0), by
        if by == "turn":
            numbered = [g["cost_micro_dollars"] or 0 for g in groups if g["group"].startswith(f"{SESSION}/")]
            assert sum(numbered) == sum(by_turn), (numbered, by_turn)
