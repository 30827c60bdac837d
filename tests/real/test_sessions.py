"""Sessions of the real Claude Code: how they begin, go on and end, and that the timeline has everything, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import World, wait_until

from .claude import ClaudeCode
from .model_server import ModelServer, Script, call, text

pytestmark = pytest.mark.real


def sessions(world: World) -> list[dict[str, Any]]:
    """The oldest first."""
    rows = world.view("sessions.list", all=True)["sessions"]
    return sorted(rows, key=lambda row: row["started_at"])


def timeline(world: World, session: str) -> list[tuple[int, str, str]]:
    """(turn, what, text) of prompts, tool calls and answers."""
    kinds = {"prompt.submitted": "prompt", "tool.finished": "tool", "tool.failed": "failed", "turn.ended": "answer"}
    entries = world.view("sessions.timeline", id=session)["entries"]
    return [(e["turn"], kinds[e["kind"]], e["text"]) for e in entries if e["kind"] in kinds]


def until(world: World, true: Callable[[list[dict[str, Any]]], bool], what: str) -> list[dict[str, Any]]:
    """The sessions, once they are as they should be."""
    wait_until(lambda: world.paths.control_socket.exists(), "the daemon answers")
    wait_until(lambda: true(sessions(world)), what)
    return sessions(world)


def test_compact_clear_and_exit_in_the_terminal(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S4-19: SessionEnd fires on /exit and on /clear; C1: compact keeps the id, clear makes a child."""
    with claude.tui() as tui:
        model.script([call("Bash", command="echo hi"), text("FIRST-ANSWER")])
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        (live,) = until(held, lambda rows: rows[0]["state"] == "waiting", "the turn is over")
        assert (live["pid"], live["needs"]["what"]) == (tui.pid, "stopped")
        tui.type("/compact")
        until(held, lambda rows: rows[0]["compactions"] == 1, "the compaction is told")
        tui.type("/clear")
        until(held, lambda rows: len(rows) == 2 and rows[1]["parent"] != "", "the clear is linked")
        tui.wait_gone("FIRST-ANSWER")
        model.script([text("SECOND-ANSWER")])
        tui.type("hello again")
        tui.wait_for("SECOND-ANSWER")
        tui.leave("/exit")
    first, second = until(held, lambda rows: rows[1]["state"] == "ended", "the exit is told")
    assert (first["reason"], second["reason"], second["detail"]) == ("clear", "exit", "prompt_input_exit")
    assert (second["parent"], second["parent_reason"]) == (first["id"], "clear")
    assert timeline(held, first["id"]) == [
        (1, "prompt", "hello there"), (1, "tool", "echo hi"), (1, "answer", "FIRST-ANSWER"),
    ]  # fmt: skip
    assert timeline(held, second["id"]) == [(1, "prompt", "hello again"), (1, "answer", "SECOND-ANSWER")]
    assert held.json("rebuild")["differences"] == []


def test_killed_with_9_in_the_middle_of_a_tool(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S4-8, decision 10."""
    model.script([call("Bash", command="tail -f /dev/null"), text("never")])
    with claude.tui() as tui:
        tui.type("wait for ever")
        until(held, lambda rows: bool(rows) and rows[0]["doing"] != "" and rows[0]["pid"] == tui.pid, "the tool runs")
        tui.kill()
        died = time.time() * 1000
        (gone,) = until(held, lambda rows: rows[0]["state"] == "ended", "the death is noticed")
    assert gone["reason"] == "process-gone"
    assert gone["ended_at"] - died < 10_000
    shown = held.view("sessions.show", id=gone["id"])
    assert "a tool call did not end: Bash: tail -f /dev/null" in shown["summary"]["open"]


def test_what_no_hook_tells_is_noticed(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """Claude Code 2.1.325 fires nothing when the user permits a tool, and nothing at all after Esc in it."""
    model.script([call("Bash", command="tail -f /dev/null"), text("never")])
    with claude.tui("--permission-mode", "default") as tui:
        tui.type("wait for ever")
        (row,) = until(held, lambda rows: bool(rows) and rows[0]["state"] == "waiting", "it asks")
        assert (row["needs"]["what"], row["needs"]["text"]) == ("permission", "Bash: tail -f /dev/null")
        tui.answer("Do you want to proceed", "Enter")
        until(held, lambda rows: rows[0]["state"] == "working", "the command runs, so it was permitted")
        tui.keys("Escape")
        (row,) = until(held, lambda rows: rows[0]["state"] == "waiting", "the interruption is read")
        assert (row["needs"]["what"], row["doing"]) == ("interrupted", "")
        model.script([text("GOOD-AGAIN")])
        tui.type("go on")
        tui.wait_for("GOOD-AGAIN")
    until(held, lambda rows: rows[0]["turn_n"] == 2, "the next turn is another")


def test_resume_and_fork_count_their_tokens_once(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S4-16; the scripted model says of every message: 10 tokens in, 5 out."""
    model.script([call("Bash", command="echo one"), text("first")])
    claude.run("first words")
    (one,) = until(
        held, lambda rows: rows[0]["state"] == "ended" and (rows[0]["tokens"] or {}).get("input") == 20, "two messages"
    )
    model.script([text("second")])
    claude.run("second words", "--resume", one["id"])
    (same,) = until(
        held, lambda rows: rows[0]["restarts"] == 1 and (rows[0]["tokens"] or {}).get("input") == 30, "one message more"
    )
    assert (same["id"], same["prompts"], same["tokens"]["output"]) == (one["id"], 2, 15)
    model.script([text("third")])
    claude.run("third words", "--resume", one["id"], "--fork-session")
    _, fork = until(
        held, lambda rows: len(rows) == 2 and (rows[1]["tokens"] or {}).get("input", 0) > 0, "the fork is read"
    )
    assert fork["tokens"]["input"] == 10
    until(held, lambda rows: rows[1]["parent"] == one["id"], "the fork has its parent")
    assert timeline(held, one["id"]) == [
        (1, "prompt", "first words"), (1, "tool", "echo one"), (1, "answer", "first"),
        (2, "prompt", "second words"), (2, "answer", "second"),
    ]  # fmt: skip


def test_the_daemon_is_killed_in_the_middle(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """Every prompt and tool call, once, though the daemon died twice between them."""
    pid = held.start()
    again = f"kill -9 $(cat {held.paths.lease})"
    model.script(
        [call("Bash", command="echo a"), call("Bash", command=f"kill -9 {pid}"), call("Bash", command="echo b"),
         call("Bash", command=again), call("Bash", command="echo c"), text("through it all")]
    )  # fmt: skip
    assert claude.run("go on").returncode == 0
    held.drained()
    (row,) = until(held, lambda rows: rows[0]["state"] == "ended", "the end is told")
    assert timeline(held, row["id"]) == [
        (1, "prompt", "go on"),
        *((1, "tool", command) for command in ("echo a", f"kill -9 {pid}", "echo b", again, "echo c")),
        (1, "answer", "through it all"),
    ]
    assert held.json("verify")["good"] and held.json("rebuild")["differences"] == []


def test_two_at_once_and_a_subagent(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S4-15, H6: parallel sessions stay apart; a subagent is a lane of its parent."""
    task = {"description": "look around", "prompt": "MARK please look", "subagent_type": "general-purpose"}
    first = [call("Agent", task), text("left is done")]
    model.script(Script(main=first, subagent=[call("Bash", command="echo in-the-lane"), text("looked")]))
    claude.run("left")
    model.script(
        [call("Bash", command="echo x", description="x"), call("Bash", command="echo x"), text("same for both")]
    )
    running = [claude.start("right"), claude.start("middle")]
    for process in running:
        process.communicate(timeout=60)
    rows = until(held, lambda rows: len(rows) == 3 and all(r["state"] == "ended" for r in rows), "all three ended")
    assert sorted(row["title"] for row in rows) == ["left", "middle", "right"]
    shown = held.view("sessions.show", id=next(row["id"] for row in rows if row["title"] == "left"))
    (lane,) = shown["lanes"].values()
    assert (shown["lanes_seen"], lane["type"], lane["tools"], bool(lane["end"])) == (1, "general-purpose", 1, True)
    assert sum(row["tools"] for row in rows) == 4  # Agent and the lane's Bash; then the two runs share a script
