"""An agent that runs without our hooks is found by its process, and only then."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.agents import AGENTS
from holdfast.core.agent import use_agents
from holdfast.core.times import now_ms
from holdfast.features.sessions import unrecorded
from tests.kit import World, hook_command, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(unrecorded, "PATIENCE_MS", 0)
    use_agents(AGENTS)
    made = World(tmp_path)
    made.start()
    yield made
    made.close()


@pytest.fixture
def start(world: World) -> Iterator[Start]:
    """Starts a shell with the name of an agent, which runs a script and then waits."""
    running: list[subprocess.Popen[bytes]] = []

    def run(name: str, script: str = "", **env: str) -> subprocess.Popen[bytes]:
        program = world.root / "bin" / name
        program.parent.mkdir(exist_ok=True)
        shutil.copy(shutil.which("bash") or "/bin/bash", program)
        command = [str(program), "-c", f"{script}\nread"]
        made = subprocess.Popen(command, cwd=world.project, env={**world.env, **env}, stdin=subprocess.PIPE)
        running.append(made)
        return made

    yield run
    for process in running:
        process.communicate()


def found(world: World, *pids: int) -> list[unrecorded.Unrecorded]:
    with world.reader() as reader:
        return [one for one in unrecorded.find_unrecorded(reader, now_ms()) if one.pid in pids]


def test_a_claude_without_hooks_is_named_with_what_may_explain_it(world: World, start: Start) -> None:
    process = start("claude", CLAUDE_CONFIG_DIR="/elsewhere")
    [one] = found(world, process.pid)
    assert one.program == "claude"
    assert one.cwd == str(world.project)
    assert "CLAUDE_CONFIG_DIR=/elsewhere" in one.why
    process.communicate()
    assert found(world, process.pid) == []


def test_a_session_with_hooks_is_recorded(world: World, start: Start) -> None:
    payload = world.root / "payload.json"
    fields = {"session_id": "s1", "cwd": str(world.project), "source": "startup", "hook_event_name": "SessionStart"}
    payload.write_text(json.dumps(fields))
    hook = shlex.join([*hook_command(), "start", "claude-code", "SessionStart"])
    process = start("claude", f"{hook} < {payload}")
    wait_until(lambda: world.events(kinds=("session.started",)), "the session starts")
    assert found(world, process.pid) == []


def test_agents_that_may_be_silent_are_judged_by_their_transcripts(world: World, start: Start) -> None:
    process = start("codex")
    assert found(world, process.pid) == []
    rollout = (
        world.home / ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-0191f2a0-1111-7222-8333-444455556666.jsonl"
    )
    rollout.parent.mkdir(parents=True)
    rollout.write_text("{}\n")
    assert [one.program for one in found(world, process.pid)] == ["codex"]
