"""`holdfast up` ends with the truth about every agent: what is in, what was tried, what is missing, what comes next."""

import contextlib
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.made_up_history import write_history

from holdfast.setup.doctor.readiness import version_in_files
from tests.kit import BIN, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Claude Code too old, Codex unreviewed, Gemini with a broken settings file, Qwen whole and linked to dotfiles."""
    made = World(tmp_path_factory.mktemp("up"))
    programs = made.root / "bin"
    programs.mkdir()
    for name, version in (("claude", "2.0.1"), ("codex", "9.9.9"), ("gemini", "9.9.9"), ("qwen", "9.9.9")):
        (programs / name).write_text(f"#!/bin/sh\necho {version}\n")
        (programs / name).chmod(0o755)
    made.env["PATH"] = f"{programs}:{Path(made.env['PATH'].partition(':')[0])}:/usr/bin:/bin"
    (made.home / ".gemini").mkdir()
    (made.home / ".gemini/settings.json").write_text("{ broken")
    (made.home / "dotfiles").mkdir()
    (made.home / "dotfiles/qwen.json").write_text("{}\n")
    (made.home / ".qwen").mkdir()
    (made.home / ".qwen/settings.json").symlink_to(made.home / "dotfiles/qwen.json")
    yield made
    made.close()


@pytest.fixture(scope="module")
def told(world: World) -> dict:
    return world.json("up")


def steps(told: dict, agent: str) -> dict[str, tuple]:
    found = next(one for one in told["agents"] if one["agent"] == agent)
    return {step["name"]: (step["done"], step["text"], step["next"]) for step in found["steps"]}


def test_an_agent_that_is_too_old_is_not_called_ready(told: dict) -> None:
    found = steps(told, "claude-code")
    assert found["hooks"][0] is True
    assert found["version"][0] is False and "2.0.1 is too old" in found["version"][1]
    assert "update Claude Code" in told["next"]


@pytest.mark.quick
def test_the_installed_line_was_run_and_its_event_recorded(world: World, told: dict) -> None:
    assert steps(told, "qwen")["self-test"][0] is True
    tried = [e for e in world.events() if e.agent == "qwen"]
    assert [(e.session, e.data.as_dict()["message"]) for e in tried] == [("", "Holdfast self-test")]
    assert world.json("session", "list", "--all")["sessions"] == []


def test_codex_is_not_ready_before_its_hooks_are_reviewed(told: dict) -> None:
    done, text, command = steps(told, "codex")["trust"]
    assert (done, command) == (False, "start codex, type /hooks, and trust Holdfast's")
    assert "until they are reviewed" in text
    assert told["next"].index(command) < told["next"].index("start qwen and work as always")


def test_a_broken_settings_file_is_left_alone_and_stops_no_other_agent(world: World, told: dict) -> None:
    assert (world.home / ".gemini/settings.json").read_text() == "{ broken"
    assert [line for line in told["refused"] if line.startswith("Gemini CLI")]
    assert steps(told, "gemini")["hooks"][0] is False


def test_a_link_into_dotfiles_stays_a_link(world: World, told: dict) -> None:
    assert steps(told, "qwen")["hooks"][0] is True
    assert (world.home / ".qwen/settings.json").is_symlink()
    assert "holdfast-hook" in (world.home / "dotfiles/qwen.json").read_text()


def test_a_session_that_was_recorded_is_seen(world: World, told: dict) -> None:
    assert steps(told, "claude-code")["seen"][0] is None
    world.session("22222222-aaaa-4bbb-8ccc-000000000001").start()
    agents = world.json("doctor", code=1)["agents"]
    assert steps({"agents": agents}, "claude-code")["seen"][0] is True


def test_people_read_the_same(world: World, told: dict) -> None:
    said = world.cli("up", code=1)  # One agent's file could not be changed.
    assert "✗ trust" in said and "Next:\n  1. " in said and "holdfast dashboard" in said


def test_every_file_is_named_before_it_is_changed(world: World, told: dict) -> None:
    files = {one["path"]: one for one in told["files"]}
    assert files[str(world.home / ".claude/settings.json")]["how"] == "new file"
    assert "MCP server" in files[str(world.home / ".claude.json")]["what"]


def answer_at_a_terminal(world: World, answer: bytes, *words: str) -> tuple[int, str]:
    """At a terminal of its own; every question gets the same answer."""
    ours, theirs = pty.openpty()
    command = [BIN / "holdfast", *words]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**world.env, "TERM": "xterm"}, cwd=world.project,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said, asked = b"", 0
    with contextlib.suppress(OSError):  # The other end is closed when the command ends.
        while part := os.read(ours, 65_536):
            said += part
            if said.count(b"[Y/n]") > asked:
                asked += 1
                os.write(ours, answer)
    os.close(ours)
    return process.wait(timeout=60), said.decode()


def test_whoever_says_no_finds_nothing_changed(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.home / ".claude").mkdir()
    code, said = answer_at_a_terminal(world, b"n\n", "up")
    assert (code, list((world.home / ".claude").iterdir()), world.pid) == (1, [], 0)
    assert "~/.claude/settings.json" in said
    assert "Nothing was changed." in said


def test_the_first_minute_shows_ones_own_sessions(tmp_path: Path) -> None:
    world = World(tmp_path)
    write_history(world.home, tmp_path / "work")
    try:
        code, said = answer_at_a_terminal(world, b"y\n", "up")
    finally:
        world.close()
    assert code == 0
    assert "Your last 30 days" in said
    assert "test: 38 passed, 9 failed" in said
    assert "String to replace not found in file." in said


def test_parts_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.home / ".claude").mkdir()
    try:
        told = world.json("up", "--no-mcp", "--no-statusline")
    finally:
        world.close()
    assert [one["what"] for one in told["files"]] == ["hooks"]
    assert "statusLine" not in (world.home / ".claude/settings.json").read_text()
    assert not (world.home / ".claude.json").exists()


def test_no_program_runs_if_a_file_names_its_version(tmp_path: Path) -> None:
    package = tmp_path / "lib/node_modules/@maker/agent"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "3.2.1-beta"}')
    (package / "cli.js").write_text("")
    (tmp_path / "agent").symlink_to(package / "cli.js")
    assert version_in_files(tmp_path / "agent") == (3, 2, 1)
    (tmp_path / "2.0.14").write_text("")
    (tmp_path / "other").symlink_to(tmp_path / "2.0.14")
    assert version_in_files(tmp_path / "other") == (2, 0, 14)
    assert version_in_files(tmp_path / "plain") == ()
