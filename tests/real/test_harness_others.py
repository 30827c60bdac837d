"""Proves the harness for the other agents in their terminals, and Gemini's subagents, with a hook that only records.

What a session without a terminal needs of the harness is looked at where such a session is run anyway: `test_usage.py`.
"""

from __future__ import annotations

import pytest

from .codex import Codex
from .copilot import Copilot
from .gemini import Gemini
from .model_server import ModelServer, Script, call, text
from .qwen import Qwen
from .recorder import CLAUDE_LIKE, GEMINI_LIKE, Recorder, hooks, write_settings

# test_agents.py runs the same programs with our own hook: what only the harness is asked about is left to the campaign.
pytestmark = [pytest.mark.real, pytest.mark.long]


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
    model.script(Script(main=[write, spawn, text("all done")], subagent=[inside, text("looked")]))
    result = gemini.run("please do it")

    assert result.returncode == 0, result.stderr
    assert (gemini.project / "note.txt").read_text() == "one\n"
    assert model.saw("note.txt", "subagent")
    assert set(recorder.names()) == set(GEMINI_LIKE)
    assert model.unknown == []
    assert model.escapes == []


def test_gemini_terminal(gemini: Gemini, model: ModelServer, recorder: Recorder) -> None:
    write_settings(gemini.project / ".gemini" / "settings.json", {"hooks": hooks(recorder.command, GEMINI_LIKE)})
    model.script([text("FIRST-ANSWER")])
    with gemini.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/quit") == 0
    assert {one["reason"] for one in recorder.events("SessionEnd")} == {"exit"}


def test_copilot_terminal(copilot: Copilot, model: ModelServer) -> None:
    model.script([text("FIRST-ANSWER")])
    with copilot.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/exit") == 0


def test_qwen_terminal(qwen: Qwen, model: ModelServer) -> None:
    model.script([text("FIRST-ANSWER")])
    with qwen.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        assert tui.leave("/exit") == 0
