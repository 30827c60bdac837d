"""Proves the harness for the other agents: one scripted session each, with a hook that only records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .codex import Codex
from .copilot import Copilot
from .gemini import Gemini
from .model_server import ModelServer, Script, Turn, call, slow, text
from .opencode import OpenCode
from .qwen import Qwen
from .recorder import Recorder, hooks, write_settings

# test_agents.py runs the same programs with our own hook: what only the harness is asked about is left to the campaign.
pytestmark = [pytest.mark.real, pytest.mark.long]

CLAUDE_LIKE = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "Stop")
GEMINI_LIKE = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")
TASK = {"description": "look around", "prompt": "MARK please look"}
PATCH = "*** Begin Patch\n*** Add File: note.txt\n+one\n*** End Patch\n"


def scripted(say: Turn, write: Turn, spawn: Turn, inside: Turn) -> Script:
    """A shell command, a file, a sub-agent that runs a command, an answer."""
    # The last answer waits: a sub-agent may run on its own, and Codex ends with its main conversation.
    return Script(main=[say, write, spawn, slow(text("all done"), 1.5)], subagent=[inside, text("looked")])


def check(model: ModelServer, project: Path) -> None:
    """The file is there, and main and sub-agent each got their own turns."""
    assert (project / "note.txt").read_text() == "one\n"
    assert model.saw("from-main", "main")
    assert model.saw("from-sub", "subagent")
    assert model.unknown == []


def say_json(value: dict[str, object]) -> str:
    """A hook that gives one answer to everything."""
    return f"echo '{json.dumps(value)}'"


DENY = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "NOT-TODAY"}
# Codex drops an answer with any field it does not know, so that one answer cannot serve every agent.
DENY_CODEX, DENY_GEMINI = say_json({"hookSpecificOutput": DENY}), say_json({"decision": "deny", "reason": "NOT-TODAY"})


def test_codex(codex: Codex, model: ModelServer, recorder: Recorder) -> None:
    events = (*CLAUDE_LIKE, "SessionEnd")
    write_settings(codex.project / ".codex" / "hooks.json", {"hooks": hooks(recorder.command, events)})
    say, inside = call("exec_command", cmd="echo from-main"), call("exec_command", cmd="echo from-sub")
    spawn = call("multi_agent_v1.spawn_agent", message=TASK["prompt"])
    model.script(scripted(say, call("apply_patch", patch=PATCH), spawn, inside))
    result = codex.run("please do it")

    assert result.returncode == 0, result.stderr
    check(model, codex.project)
    assert set(recorder.names()) == set(events)
    assert sorted(recorder.tools("PostToolUse")) == ["Bash", "Bash", "apply_patch", "spawn_agent"]
    assert model.escapes == []


def test_codex_denial_and_resume(codex: Codex, model: ModelServer) -> None:
    write_settings(codex.project / ".codex" / "hooks.json", {"hooks": hooks(DENY_CODEX, ["PreToolUse"])})
    model.script([call("exec_command", cmd="touch no.txt"), text("gave up")])
    codex.run("touch it")
    assert not (codex.project / "no.txt").exists()
    assert model.saw("NOT-TODAY", "main")

    codex.run("and again", "resume", "--last")
    assert "touch it" in json.dumps(model.requests[-1].body)


def test_codex_terminal(codex: Codex, model: ModelServer, recorder: Recorder) -> None:
    write_settings(codex.project / ".codex" / "hooks.json", {"hooks": hooks(recorder.command, CLAUDE_LIKE)})
    model.script([text("FIRST-ANSWER")])
    with codex.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/quit") == 0
    assert [one["prompt"] for one in recorder.events("UserPromptSubmit")] == ["hello there"]


def test_gemini(gemini: Gemini, model: ModelServer, recorder: Recorder) -> None:
    write_settings(gemini.project / ".gemini" / "settings.json", {"hooks": hooks(recorder.command, GEMINI_LIKE)})
    write = call("write_file", file_path=str(gemini.project / "note.txt"), content="one\n")
    inside = call("list_directory", dir_path=str(gemini.project))
    spawn = call("invoke_agent", agent_name="codebase_investigator", prompt="MARK look around")
    model.script(scripted(call("run_shell_command", command="echo from-main"), write, spawn, inside))
    result = gemini.run("please do it")

    assert result.returncode == 0, result.stderr
    assert (gemini.project / "note.txt").read_text() == "one\n"
    assert model.saw("note.txt", "subagent")
    assert set(recorder.names()) == set(GEMINI_LIKE)
    assert model.unknown == []
    assert model.escapes == []


def test_gemini_denial(gemini: Gemini, model: ModelServer) -> None:
    write_settings(gemini.project / ".gemini" / "settings.json", {"hooks": hooks(DENY_GEMINI, ["BeforeTool"])})
    model.script([call("run_shell_command", command="touch no.txt"), text("gave up")])
    gemini.run("touch it")
    assert not (gemini.project / "no.txt").exists()
    assert model.saw("NOT-TODAY", "main")


def test_gemini_terminal(gemini: Gemini, model: ModelServer, recorder: Recorder) -> None:
    write_settings(gemini.project / ".gemini" / "settings.json", {"hooks": hooks(recorder.command, GEMINI_LIKE)})
    model.script([text("FIRST-ANSWER")])
    with gemini.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/quit") == 0
    assert {one["reason"] for one in recorder.events("SessionEnd")} == {"exit"}


def test_copilot(copilot: Copilot, model: ModelServer, recorder: Recorder) -> None:
    """It runs the hooks of Claude Code's settings file."""
    events = (*CLAUDE_LIKE, "SessionEnd")
    write_settings(copilot.project / ".claude" / "settings.json", {"hooks": hooks(recorder.command, events)})
    say, inside = (call("bash", command=f"echo from-{who}", description="say it") for who in ("main", "sub"))
    write = call("create", path=str(copilot.project / "note.txt"), file_text="one\n")
    spawn = call("task", TASK, name="looker", agent_type="general-purpose", mode="sync")
    model.script(scripted(say, write, spawn, inside))
    result = copilot.run("please do it")

    assert result.returncode == 0, result.stderr
    check(model, copilot.project)
    assert set(events) - {"SubagentStart"} <= set(recorder.names())
    assert model.escapes == []


def test_copilot_terminal(copilot: Copilot, model: ModelServer) -> None:
    model.script([text("FIRST-ANSWER")])
    with copilot.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/exit") == 0


def test_qwen(qwen: Qwen, model: ModelServer, recorder: Recorder) -> None:
    write_settings(qwen.project / ".qwen" / "settings.json", {"hooks": hooks(recorder.command, CLAUDE_LIKE)})
    say, inside = (
        call("run_shell_command", command=f"echo from-{who}", is_background=False) for who in ("main", "sub")
    )
    write = call("write_file", file_path=str(qwen.project / "note.txt"), content="one\n")
    spawn = call("agent", TASK, subagent_type="general-purpose")
    model.script(scripted(say, write, spawn, inside))
    result = qwen.run("please do it")

    assert result.returncode == 0, result.stderr
    check(model, qwen.project)
    assert set(recorder.names()) == set(CLAUDE_LIKE)
    assert model.escapes == []


def test_qwen_terminal(qwen: Qwen, model: ModelServer) -> None:
    model.script([text("FIRST-ANSWER")])
    with qwen.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/exit") == 0


def test_opencode(opencode: OpenCode, model: ModelServer, tmp_path: Path) -> None:
    """Its plugin runs inside it and writes down each tool it sees."""
    seen = tmp_path / "seen.txt"
    plugin = opencode.project / ".opencode" / "plugin" / "record.js"
    plugin.parent.mkdir(parents=True)
    body = f"appendFileSync({json.dumps(str(seen))}, input.tool + '\\n')"
    plugin.write_text(
        "import { appendFileSync } from 'node:fs'\n"
        f"export const Record = async () => ({{ 'tool.execute.after': async (input) => {{ {body} }} }})\n"
    )
    say, inside = (call("bash", command=f"echo from-{who}", description="say it") for who in ("main", "sub"))
    write = call("write", filePath=str(opencode.project / "note.txt"), content="one\n")
    model.script(scripted(say, write, call("task", TASK, subagent_type="general"), inside))
    result = opencode.run("please do it")

    assert result.returncode == 0, result.stderr
    check(model, opencode.project)
    assert sorted(seen.read_text().split()) == ["bash", "bash", "task", "write"]
