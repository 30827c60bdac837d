"""What memory tells reaches the model of the real Claude Code: at the start, with a prompt, after a compaction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit import BIN, World, wait_until

from .claude import ClaudeCode
from .codex import Codex
from .model_server import ModelServer, call, text

pytestmark = pytest.mark.real

DECISION = "Always use PostgreSQL for the event store."


@pytest.fixture
def held(held: World) -> World:
    held.start()
    return held


def told(model: ModelServer) -> str:
    """Everything of memory that reached the model."""
    return "\n".join(one for one in model.texts_sent() if 'source="memory' in one)


def test_a_decision_of_one_session_reaches_the_model_of_the_next(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    """S4-17, S4-4, S4-6, and `<private>` (pain 21)."""
    model.script([call("Bash", command="echo hi"), text("noted")])
    claude.run(f"{DECISION} The code is <private>Zebrafinch</private>.")
    wait_until(lambda: held.view("memory.listed", everywhere=True)["observations"], "it is remembered")
    assert told(model) == ""

    model.script([text("good morning")])
    claude.run("hello, what is up")
    assert DECISION in told(model)
    assert not any("Zebrafinch" in str(e.data) for e in held.events())
    [row] = held.view("memory.injected", everywhere=True)["injected"]
    assert row["moment"] == "session.started"


def test_what_a_compaction_lost_is_put_back_into_the_context(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    """Pain 13: the scripted summary says nothing of the decision."""
    with claude.tui() as tui:
        model.script([text("FIRST-ANSWER")])
        tui.type(DECISION)
        tui.wait_for("FIRST-ANSWER")
        wait_until(lambda: held.view("memory.listed", everywhere=True)["observations"], "it is remembered")
        tui.type("/compact")
        wait_until(lambda: held.events(kinds=("compact.ended",)), "the compaction is told")
        model.script([text("SECOND-ANSWER")])
        tui.type("go on")
        tui.wait_for("SECOND-ANSWER")
        tui.leave("/exit")
    assert 'source="memory/compaction"' in told(model)
    assert DECISION in told(model)


def test_claude_code_asks_through_mcp(claude: ClaudeCode, model: ModelServer, held: World, tmp_path: Path) -> None:
    """The tools work in the real program; what they answer reaches its model."""
    pytest.importorskip("mcp")
    held.cli("memory", "add", "The staging key rotates on Mondays")
    server = {"command": str(BIN / "holdfast"), "args": ["mcp"], "env": held.env}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"holdfast": server}}))
    model.script([call("mcp__holdfast__memory_search", query="when does the staging key rotate"), text("on Mondays")])
    claude.run("ask your memory", "--mcp-config", str(config))
    results = [e for e in held.events(kinds=("tool.finished",)) if e.tool == "mcp__holdfast__memory_search"]
    assert "The staging key rotates on Mondays" in results[0].get("output")


@pytest.mark.parametrize("level", ["--project", "--user"])
def test_claude_code_finds_our_server_where_install_put_it(
    claude: ClaudeCode, model: ModelServer, held: World, level: str
) -> None:
    """`.mcp.json` of the project, as its user approved it, or the user's own file: it connects and calls a tool."""
    pytest.importorskip("mcp")
    held.cli("uninstall", "--agent", "claude-code")
    held.cli("install", "--agent", "claude-code", level)
    local = claude.project / ".claude" / "settings.local.json"
    local.parent.mkdir(exist_ok=True)
    local.write_text(json.dumps({"enabledMcpjsonServers": ["holdfast"]}))
    held.cli("memory", "add", "The staging key rotates on Mondays")
    model.script([call("mcp__holdfast__memory_search", query="when does the staging key rotate"), text("on Mondays")])
    claude.run("ask your memory")
    results = [e for e in held.events(kinds=("tool.finished",)) if e.tool == "mcp__holdfast__memory_search"]
    assert "The staging key rotates on Mondays" in results[0].get("output")

    held.cli("uninstall", "--agent", "claude-code")
    assert not (claude.project / ".mcp.json").exists()
    assert "holdfast" not in json.loads((claude.home / ".claude.json").read_text()).get("mcpServers", {})


def test_codex_goes_on_where_claude_stopped(claude: ClaudeCode, codex: Codex, model: ModelServer, held: World) -> None:
    """Pain 25: goal, files and next step reach the other agent's model, once."""
    model.script([call("Write", file_path=str(claude.project / "importer.py"), content="x = 1\n"), text("HALFWAY")])
    claude.run("Rewrite the importer as a stream")
    wait_until(lambda: held.events(kinds=("session.ended",)), "Claude Code is done")
    held.cli("handoff", "--next", "check the tests")

    codex.env |= {name: held.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    held.home = codex.home
    held.cli("install", "--agent", "codex", HOME=str(codex.home), **_codex_home(codex))
    model.script([text("gone on")])
    codex.run("go on please")
    heard = told(model)
    for piece in ("Rewrite the importer as a stream", "importer.py", "next step: check the tests"):
        assert piece in heard


def _codex_home(codex: Codex) -> dict[str, str]:
    return {name: value for name, value in codex.env.items() if name == "CODEX_HOME"}


FIVE_DAYS = (
    "Always use PostgreSQL for the event store. Stop, not this file.",
    "The login endpoint always returns 500, please check. Remember that the request timeout of the gateway is 30 seconds.",
    "Remember that the request timeout of the gateway is 60 seconds. I want a dark theme for the settings page.",
    "From now on ask Tom before each deploy until 2020-01-31. Never edit legacy.py by hand.",
    "From now on use SQLite instead of PostgreSQL for the event store.",
)


def test_after_five_days_the_second_agent_knows_what_holds_and_only_that(
    claude: ClaudeCode, codex: Codex, model: ModelServer, held: World
) -> None:
    """Claude Code is told things over five sessions; then Codex starts in the same project."""
    legacy = claude.project / "legacy.py"
    legacy.write_text("x = 1\n")
    for number, said in enumerate(FIVE_DAYS, 1):
        model.script([text(f"noted {number}")])
        claude.run(said)
        wait_until(lambda n=number: len(held.events(kinds=("session.ended",))) >= n, "the session is over")
    wait_until(lambda: held.events(kinds=("memory.files_found",)), "the file that a rule names is found")
    legacy.unlink()

    codex.env |= {name: held.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    held.home = codex.home
    held.cli("install", "--agent", "codex", HOME=str(codex.home), **_codex_home(codex))
    before = len(told(model))
    model.script([text("gone on")])
    codex.run("Add a retry to the gateway client.")
    lines = [
        line for line in told(model)[before:].splitlines() if line.startswith("- ") and "session_summary" not in line
    ]
    heard = "\n".join(lines)
    for holds in ("SQLite", "60 seconds"):
        assert holds in heard
    for no_more in ("Always use PostgreSQL", "30 seconds", "returns 500", "dark theme", "Stop", "Tom", "legacy.py"):
        assert no_more not in heard
    assert heard.count("SQLite") == 1


def test_a_known_quirk_reaches_the_model_that_meets_it(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """One line before the next call, once; the first session is told nothing."""
    fails, works = call("Bash", command="git status --no-stat"), call("Bash", command="git status")
    for _ in range(2):
        model.script([fails, works, call("Bash", command="git log --no-stat"), text("done")])
        claude.run("look at the status")
    lines = [line for line in told(model).split("\n") if line.startswith("Known here")]
    assert len(lines) == 1 and "`git status`" in lines[0]


def test_the_session_that_implements_a_plan_is_told_who_made_it(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    plan = "# Plan: Stream the Importer\n\nRead it line by line."
    path = str(claude.home / ".claude" / "plans" / "quiet-otter.md")
    model.script([call("Write", file_path=path, content=plan), text("planned")])
    claude.run("plan the importer")
    made = held.events(kinds=("session.started",))[0].session
    model.script([text("implemented")])
    claude.run(f"Implement the following plan:\n\n{plan}")
    assert f"This plan was made in session {made}" in told(model)


def test_the_real_codex_meets_a_known_quirk(claude: ClaudeCode, codex: Codex, model: ModelServer, held: World) -> None:
    """Learned from Claude Code, told to Codex: both work in the same repository."""
    model.script([call("Bash", command="git status --no-stat"), call("Bash", command="git status"), text("done")])
    claude.run("look at the status")
    codex.env |= {name: held.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    held.home = codex.home
    held.cli("install", "--agent", "codex", HOME=str(codex.home), **_codex_home(codex))
    fails = call("exec_command", cmd="git log --no-stat")
    model.script([fails, call("exec_command", cmd="git log -1"), call("exec_command", cmd="git log -2"), text("done")])
    codex.run("look at the log")
    wait_until(lambda: held.events(kinds=("turn.ended",)), "Codex is done")
    assert "`git status`" in told(model) and told(model).count("Known here") == 1
