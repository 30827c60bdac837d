"""How sessions of the real Claude Code and Codex end, in the words that people read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit import World

from .claude import ClaudeCode
from .codex import Codex
from .model_server import ModelServer, call, text
from .test_sessions import until

pytestmark = pytest.mark.real

SERVER = "python3 -m http.server 0 --bind 127.0.0.1"
FOR_EVER = "tail -f /dev/null"


def ended(world: World) -> dict[str, Any]:
    return until(world, lambda rows: bool(rows) and rows[0]["state"] == "ended", "the end is noticed")[0]


def waits(world: World) -> dict[str, Any]:
    return until(world, lambda rows: bool(rows) and rows[0]["state"] == "waiting", "it waits")[0]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("kill", "its process is gone after its answer"),
        ("hang_up", "its terminal was closed"),
        ("leave", "ended by the person"),
    ],
)
def test_answered_and_then(claude: ClaudeCode, model: ModelServer, held: World, how: str, words: str) -> None:
    model.script([text("FIRST-ANSWER")])
    with claude.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert waits(held)["needs"]["what"] == "stopped"
        getattr(tui, how)()
        shown = ended(held)
    assert shown["end"] == words
    assert f"ended ({words})" in held.cli("session", "show", shown["id"])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("kill", "its process is gone in the middle of its work"),
        ("hang_up", "its terminal was closed in the middle of its work"),
    ],
)
def test_at_work_and_then(claude: ClaudeCode, model: ModelServer, held: World, how: str, words: str) -> None:
    model.script([call("Bash", command=FOR_EVER), text("never")])
    with claude.tui() as tui:
        tui.type("wait for ever")
        until(held, lambda rows: bool(rows) and rows[0]["doing"] != "", "the tool runs")
        getattr(tui, how)()
        assert ended(held)["end"] == words


def test_stopped_by_esc_is_the_persons_doing(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    model.script([call("Bash", command=FOR_EVER), text("never")])
    with claude.tui() as tui:
        tui.type("wait for ever")
        until(held, lambda rows: bool(rows) and rows[0]["doing"] != "", "the tool runs")
        tui.keys("Escape")
        assert waits(held)["needs"]["what"] == "interrupted"
        assert "was stopped by you" in held.cli("who")
        tui.leave("/exit")
        shown = ended(held)
    assert shown["end"] == "ended by the person"
    assert held.view("sessions.show", id=shown["id"])["summary"]["open"] == [], "what was stopped is no goal"


def test_while_it_asks(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    model.script([call("Bash", command="rm -r x"), text("done")])
    with claude.tui("--permission-mode", "default") as tui:
        tui.type("remove it")
        assert waits(held)["needs"]["what"] == "permission"
        tui.hang_up()
        assert ended(held)["end"] == "its terminal was closed while it asked its person"


def test_a_server_that_outlives_its_agent_is_named(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    model.script([call("Bash", command=SERVER, run_in_background=True), text("SERVES")])
    with claude.tui() as tui:
        tui.type("serve")
        tui.wait_for("SERVES")
        waits(held)
        assert held.view("sessions.who")["survivors"] == [], "its agent is alive"
        tui.kill()
        session = ended(held)["id"]
    assert_survivor(held, session)


def assert_survivor(world: World, session: str) -> None:
    try:
        (one,) = world.view("sessions.show", id=session)["survivors"]
        (port,) = one["ports"]
        assert SERVER in one["command"]
        assert f"process {one['pid']} on port {port}: {SERVER}" in world.cli("session", "show", session)
        assert f"process {one['pid']} on port {port}" in world.cli("who")
    finally:
        for one in world.view("sessions.show", id=session)["survivors"]:
            with contextlib.suppress(psutil.Error):
                psutil.Process(one["pid"]).kill()


@pytest.fixture
def codex_held(codex: Codex, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "holdfast")
    world.home, world.project = codex.home, codex.project
    world.env |= {"HOME": str(codex.home)}
    codex.env |= {name: world.env[name] for name in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    world.cli("install", "--agent", "codex", "--project")
    yield world
    world.close()


@pytest.mark.parametrize("how", ["kill", "hang_up"])
def test_codex_at_work_and_then(codex: Codex, model: ModelServer, codex_held: World, how: str) -> None:
    """Codex dies with its terminal, without a word."""
    model.script([call("exec_command", cmd=FOR_EVER), text("never")])
    with codex.tui() as tui:
        tui.type("wait for ever")
        until(codex_held, lambda rows: bool(rows) and rows[0]["doing"] != "", "the tool runs")
        getattr(tui, how)()
        assert ended(codex_held)["end"] == "its process is gone in the middle of its work"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("kill", "its process is gone after its answer"),
        ("hang_up", "its process is gone after its answer"),
        ("leave", "ended normally"),
    ],
)
def test_codex_answered_and_then(codex: Codex, model: ModelServer, codex_held: World, how: str, words: str) -> None:
    """Codex says nothing when its terminal is closed, and gives one reason for every other end."""
    model.script([text("FIRST-ANSWER")])
    with codex.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert waits(codex_held)["needs"]["what"] == "stopped"
        tui.leave("/quit") if how == "leave" else getattr(tui, how)()
        assert ended(codex_held)["end"] == words


def test_codex_stopped_by_esc_is_the_persons_doing(codex: Codex, model: ModelServer, codex_held: World) -> None:
    model.script([call("exec_command", cmd=FOR_EVER), text("never")])
    with codex.tui() as tui:
        tui.type("wait for ever")
        until(codex_held, lambda rows: bool(rows) and rows[0]["doing"] != "", "the tool runs")
        tui.keys("Escape")
        assert waits(codex_held)["needs"]["what"] == "interrupted"
        assert "was stopped by you" in codex_held.cli("who")
        tui.leave("/quit")
        shown = ended(codex_held)
    assert shown["end"] == "ended normally"
    assert codex_held.view("sessions.show", id=shown["id"])["summary"]["open"] == [], "what was stopped is no goal"


def test_codex_while_it_asks(codex: Codex, model: ModelServer, codex_held: World) -> None:
    codex.asking = True
    model.script(
        [call("exec_command", cmd="touch x", sandbox_permissions="require_escalated", justification="x"), text("done")]
    )
    with codex.tui() as tui:
        tui.type("make it")
        assert waits(codex_held)["needs"]["what"] == "permission"
        tui.kill()
        assert ended(codex_held)["end"] == "its process is gone while it asked its person"


def test_a_server_that_outlives_codex_is_named(codex: Codex, model: ModelServer, codex_held: World) -> None:
    model.script([call("exec_command", cmd=f"setsid -f {SERVER} >/dev/null 2>&1; sleep 1"), text("SERVES")])
    with codex.tui() as tui:
        tui.type("serve")
        waits(codex_held)
        tui.kill()
        session = ended(codex_held)["id"]
    assert_survivor(codex_held, session)
