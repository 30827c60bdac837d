"""The foundation with the real Claude Code: hooks put in by `holdfast install --project`, a session with every kind of
step, and each of its events in our log exactly once and in order; with the daemon up, absent, and killed on the way."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.event import Event
from tests.kit import BIN, World, wait_until

from .claude import ClaudeCode
from .model_server import ModelServer, Script, call, text
from .recorder import Recorder, hooks, write_settings

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
SUBAGENT = {"description": "look around", "prompt": "MARK please look", "subagent_type": "general-purpose"}


@pytest.fixture
def house(claude: ClaudeCode, recorder: Recorder, tmp_path: Path) -> Iterator[World]:
    """Our state beside the agent's home; the hooks installed as a person would do it."""
    world = World(tmp_path / "house")
    places = {name: world.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    all_features = {"HOLDFAST_FEATURES": "tests.sample_features.refusing", "PYTHONPATH": str(ROOT)}
    claude.env |= places | all_features
    world.env |= all_features
    done = subprocess.run(
        [BIN / "holdfast", "install", "--agent", "claude-code", "--project"],
        cwd=claude.project, env={**claude.env, "PATH": f"{BIN}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ours = json.loads((claude.project / ".claude" / "settings.json").read_text())["hooks"]
    assert "holdfast-hook" in json.dumps(ours)
    mine = claude.home / ".claude" / "settings.json"
    write_settings(mine, {**json.loads(mine.read_text()), "hooks": hooks(recorder.command, list(ours))})
    world.close()
    yield world
    world.close()


def script(project: Path) -> Script:
    note = str(project / "note.txt")
    main = [
        call("Bash", command="echo from-main", description="say it"),
        call("Write", file_path=note, content="one\n"),
        call("Edit", file_path=note, old_string="one", new_string="two"),
        call("Bash", command="echo forbidden", description="must be refused"),
        call("Agent", SUBAGENT),
        call("Bash", command="echo goodbye", description="the last"),
        text("all done"),
    ]
    return Script(main=main, subagent=[call("Bash", command="echo from-sub"), text("looked")])


def played(claude: ClaudeCode, model: ModelServer, house: World) -> list[Event]:
    """The session, to its end, and what our log has of it."""
    model.script(script(claude.project))
    result = claude.run("please do it")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (claude.project / "note.txt").read_text() == "two\n"
    assert model.turns_left() == 0
    house.env["PYTHONPATH"] = str(ROOT)
    house.drained()
    wait_until(lambda: "session.ended" in {e.kind for e in house.hooks_seen()}, "the end is on record")
    return [e for e in house.hooks_seen() if e.kind != "decision.made"]


Step = tuple[str, str, str]
"""Event, tool call, lane."""
AWAITED = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "SessionEnd")
"""Claude Code goes on only when these hooks have ended, so within a lane their order is certain."""


def fired(recorder: Recorder) -> list[Step]:
    """What Claude Code really fired, told by a hook of its own beside ours."""
    return [(p["hook_event_name"], p.get("tool_use_id", ""), p.get("agent_id", "")) for p in recorder.events()]


def kept(events: list[Event]) -> list[Step]:
    told = [e for e in events if e.data.get("native")]
    return [(e.data["native"], e.data.get("call", ""), e.data.get("lane", "")) for e in told]


def judge(events: list[Event], recorder: Recorder, *, in_order: bool) -> None:
    """Exactly once, and in order; what had to wait in the spool arrives late, and its own time says when it was."""
    truth, ours = fired(recorder), kept(events if in_order else sorted(events, key=lambda e: e.at))
    assert Counter(ours) == Counter(truth)
    assert len({e.key for e in events}) == len(events)
    assert {e.session for e in events} == {events[0].session}
    for lane in {lane for _, _, lane in truth}:
        assert [s for s in ours if s[0] in AWAITED and s[2] == lane] == [
            s for s in truth if s[0] in AWAITED and s[2] == lane
        ]


def judge_steps(events: list[Event]) -> None:
    started = [e.data.get("command", e.tool) for e in events if e.kind == "tool.started"]
    wanted = ["echo from-main", "Write", "Edit", "echo forbidden", "Agent", "echo from-sub", "echo goodbye"]
    assert sorted(started) == sorted(wanted)
    finished = [e.data.get("command", e.tool) for e in events if e.kind == "tool.finished"]
    assert sorted(finished) == sorted(set(wanted) - {"echo forbidden"})
    counts = Counter(e.kind for e in events)
    assert counts["session.started"] == counts["session.ended"] == counts["subagent.started"] == 1
    assert {"prompt.submitted", "subagent.ended", "turn.ended"} <= set(counts)


def test_every_step_with_the_daemon_up(
    claude: ClaudeCode, model: ModelServer, house: World, recorder: Recorder
) -> None:
    house.start()
    events = played(claude, model, house)
    judge(events, recorder, in_order=True)
    judge_steps(events)
    assert model.saw("“forbidden” is not allowed", "main"), "the refusal reached the model"
    assert model.saw("Commands with “forbidden” are refused", "main"), "the context reached the model"
    assert not model.saw("from-sub", "main")


def test_every_step_with_no_daemon_at_the_start(
    claude: ClaudeCode, model: ModelServer, house: World, recorder: Recorder
) -> None:
    """The first hook starts it and waits for it: nothing is refused less."""
    assert house.pid == 0
    events = played(claude, model, house)
    judge(events, recorder, in_order=True)
    judge_steps(events)
    assert model.saw("“forbidden” is not allowed", "main")


def test_every_step_with_the_daemon_killed_on_the_way(
    claude: ClaudeCode, model: ModelServer, house: World, recorder: Recorder
) -> None:
    """kill -9 again and again, at whatever moment it is: hooks spool, start it anew, and the agent notices nothing."""
    house.start()
    over = threading.Event()
    killed: list[int] = []

    def fate() -> None:
        while not over.wait(0.35):
            if house.pid > 0:
                killed.append(house.kill())

    hand = threading.Thread(target=fate)
    hand.start()
    try:
        model.script([*(call("Bash", command=f"echo step-{n}") for n in range(8)), text("all done")])
        result = claude.run("please do it")
    finally:
        over.set()
        hand.join()
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(killed) > 2, killed
    house.drained()
    wait_until(lambda: "session.ended" in {e.kind for e in house.hooks_seen()}, "the end is on record")
    events = [e for e in house.hooks_seen() if e.kind != "decision.made"]
    judge(events, recorder, in_order=False)
    commands = [e.data["command"] for e in sorted(events, key=lambda e: e.at) if e.kind == "tool.started"]
    assert commands == [f"echo step-{n}" for n in range(8)]


def test_a_hook_program_that_is_gone_does_not_stop_the_agent(
    claude: ClaudeCode, model: ModelServer, house: World
) -> None:
    """Somebody removed Holdfast and left the settings: the agent works on."""
    settings = claude.project / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace(f"{BIN}/holdfast-hook", f"{BIN}/holdfast-hook-that-is-gone"))
    assert "that-is-gone" in settings.read_text()
    model.script([call("Bash", command="echo still > here.txt"), text("all done")])
    result = claude.run("go on")
    assert result.returncode == 0, result.stderr
    assert (claude.project / "here.txt").read_text() == "still\n"


def test_a_daemon_that_is_stopped_costs_one_deadline(claude: ClaudeCode, model: ModelServer, house: World) -> None:
    """SIGSTOP in the middle: the agent goes on, and all is on record once the daemon may run again."""
    pid = house.start()
    os.kill(pid, 19)
    try:
        began = time.monotonic()
        model.script([call("Bash", command="echo one"), text("all done")])
        result = claude.run("go on")
        took = time.monotonic() - began
    finally:
        os.kill(pid, 18)
    assert result.returncode == 0, result.stderr
    assert took < 60, took
    house.drained()
    wait_until(lambda: "session.ended" in {e.kind for e in house.hooks_seen()}, "the end is on record")
    assert [e.data["command"] for e in house.hooks_seen(kinds=("tool.started",))] == ["echo one"]
