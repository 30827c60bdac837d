"""Proves the harness itself: real Claude Code, a scripted model, and a hook that only records."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from .claude import ClaudeCode
from .model_server import ModelServer, Script, call, calls, error, slow, text
from .recorder import Recorder, hooks, write_settings

pytestmark = pytest.mark.real

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
SUBAGENT = {"description": "look around", "prompt": "MARK please look", "subagent_type": "general-purpose"}


@pytest.fixture
def recorded(claude: ClaudeCode, recorder: Recorder) -> Recorder:
    """Claude Code with the recording hook on every event."""
    write_settings(claude.project / ".claude" / "settings.json", {"hooks": hooks(recorder.command, EVENTS)})
    return recorder


def test_a_session_with_tools_and_a_subagent(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    note = claude.project / "note.txt"
    main = [
        call("Bash", command="echo from-main", description="say it"),
        call("Write", file_path=str(note), content="one\n"),
        call("Edit", file_path=str(note), old_string="one", new_string="two"),
        call("Agent", SUBAGENT),
        text("all done"),
    ]
    model.script(Script(main=main, subagent=[call("Bash", command="echo from-sub"), text("looked")]))
    result = claude.run("please do it")

    assert result.returncode == 0, result.stderr
    assert "all done" in result.stdout
    assert note.read_text() == "two\n"
    assert recorded.names()[0] == "SessionStart"
    assert recorded.names()[-1] == "SessionEnd"
    assert recorded.events("UserPromptSubmit")[0]["prompt"] == "please do it"
    assert sorted(recorded.tools("PreToolUse")) == ["Agent", "Bash", "Bash", "Edit", "Write"]
    assert sorted(recorded.tools("PostToolUse")) == ["Agent", "Bash", "Bash", "Edit", "Write"]
    assert {"SubagentStart", "SubagentStop", "Stop"} <= set(recorded.names())
    assert model.saw("from-main", "main")
    assert model.saw("from-sub", "subagent")
    assert not model.saw("from-sub", "main")
    assert model.turns_left() == 0
    assert model.unknown == []
    assert model.escapes == []


@pytest.mark.long
def test_a_denial_reaches_the_model(claude: ClaudeCode, model: ModelServer) -> None:
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "NOT-TODAY"}
    line = f"echo '{json.dumps({'hookSpecificOutput': answer})}'"
    write_settings(claude.project / ".claude" / "settings.json", {"hooks": hooks(line, ["PreToolUse"])})
    model.script([call("Write", file_path=str(claude.project / "no.txt"), content="x"), text("gave up")])
    claude.run("write it")

    assert not (claude.project / "no.txt").exists()
    assert model.saw("NOT-TODAY", "main")


@pytest.mark.long
def test_parallel_calls_and_a_failing_command(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    model.script([calls(call("Bash", command="echo left"), call("Bash", command="exit 3")), text("both")])
    claude.run("two at once")

    assert len(recorded.events("PreToolUse")) == 2
    assert len(recorded.events("PostToolUse")) == 1
    assert len(recorded.events("PostToolUseFailure")) == 1


@pytest.mark.long
def test_marked_subagents_get_their_own_turns(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    tasks = [call("Agent", SUBAGENT | {"prompt": f"{mark} look"}) for mark in ("LEFT", "RIGHT")]
    marked = {mark: [call("Bash", command=f"echo in-{mark}"), text("looked")] for mark in ("LEFT", "RIGHT")}
    model.script(Script(main=[calls(*tasks), text("started")], marked=marked))
    claude.run("two helpers")

    inside = [one for one in recorded.events("PostToolUse") if one["tool_name"] == "Bash"]
    assert {one["tool_input"]["command"] for one in inside} == {"echo in-LEFT", "echo in-RIGHT"}
    assert len({one["agent_id"] for one in inside}) == 2


@pytest.mark.long
def test_resume_keeps_the_session(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    claude.run("first words")
    claude.run("second words", "--continue")
    session = recorded.events("SessionStart")[0]["session_id"]
    claude.run("third words", "--resume", session)

    assert [one["source"] for one in recorded.events("SessionStart")] == ["startup", "resume", "resume"]
    assert {one["session_id"] for one in recorded.events()} == {session}
    assert model.conversation()[-1].body["messages"][0] == model.conversation()[-2].body["messages"][0]


@pytest.mark.long
def test_an_api_error_ends_the_run(claude: ClaudeCode, model: ModelServer) -> None:
    model.script([error(400, "scripted refusal")])
    result = claude.run("fail please")

    assert result.returncode != 0
    assert "scripted refusal" in result.stdout + result.stderr


@pytest.mark.long
def test_the_interactive_interface(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    with claude.tui() as tui:
        model.script([call("Bash", command="echo hi"), text("FIRST-ANSWER")])
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        tui.type("/compact")
        recorded.wait_for("PostCompact")
        tui.type("/clear")
        recorded.wait_for("SessionEnd")
        tui.wait_gone("FIRST-ANSWER")
        model.script([text("SECOND-ANSWER")])
        tui.type("hello again")
        tui.wait_for("SECOND-ANSWER")
        assert tui.leave("/exit") == 0

    assert [one["source"] for one in recorded.events("SessionStart")] == ["startup", "compact", "clear"]
    assert [one["reason"] for one in recorded.events("SessionEnd")] == ["clear", "prompt_input_exit"]
    assert model.escapes == []


@pytest.mark.long
def test_a_permission_dialog(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    model.script([call("Bash", command="touch asked.txt"), text("AFTER-THE-DIALOG")])
    with claude.tui("--permission-mode", "default") as tui:
        tui.type("ask me")
        recorded.wait_for("PermissionRequest")
        tui.answer("Do you want to proceed", "Enter")
        tui.wait_for("AFTER-THE-DIALOG")
    assert (claude.project / "asked.txt").exists()


@pytest.mark.long
def test_kill_leaves_no_process_and_no_farewell(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    model.script([call("Bash", command="tail -f /dev/null"), text("never")])
    with claude.tui() as tui:
        tui.type("sleep long")
        recorded.wait_for("PreToolUse")
        pid = tui.pid
        tui.kill()
        assert not psutil.pid_exists(pid)
    assert recorded.events("SessionEnd") == []
    claude.close()
    assert claude.processes() == []


@pytest.mark.long
def test_a_signal_while_the_model_thinks(claude: ClaudeCode, model: ModelServer, recorded: Recorder) -> None:
    model.script([slow(text("too late"), 30)])
    with claude.start("think hard") as process:
        model.wait_for(lambda log: len(log.conversation()) == 1)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(timeout=20) == 143
    assert [one["reason"] for one in recorded.events("SessionEnd")] == ["other"]


def test_the_home_of_the_tester_stays_out(claude: ClaudeCode, model: ModelServer, scratch_repo: Path) -> None:
    model.script([call("Bash", command='echo "home=$HOME" > seen.txt'), text("ok")])
    claude.run("look at home")
    assert (scratch_repo / "seen.txt").read_text() == f"home={claude.home}\n"
