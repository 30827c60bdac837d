"""The command that a tool of an MCP server stands for."""

from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import ToolStarted
from holdfast.features.gates.rules.tool_commands import command_of, named_acts


def tool(name: str, action: str = "mcp", **given: Any) -> Event:
    return Event(key="k", kind="tool.started", at=1, session="s", project="/p", agent="claude-code", tool=name,
                 data=ToolStarted(action=action, input=given, command=given.get("command", "")))  # fmt: skip


@pytest.mark.parametrize(
    ("event", "command"),
    [
        (tool("mcp__x__exec", cmd=["git", "commit", "-m", "a b"]), "git commit -m 'a b'"),
        (tool("mcp__docker__container_exec", argv=["make", "deploy"]), "make deploy"),
        (tool("mcp__tmux__send_keys", keys="make deploy\n"), "make deploy\n"),
        (tool("mcp__jupyter__execute_cell", source="!make deploy\nprint('git commit')"), "\nmake deploy"),
        (tool("mcp__playwright__browser_type", text="make deploy"), ""),
        (tool("mcp__slack__send_message", text="make deploy"), ""),
        (tool("mcp__ide__run_task", id="shell: ship it"), "editor-task 'ship it'"),
        (tool("run_vs_code_task", "other", task="ship"), "editor-task ship"),
        (tool("createAndRunTask", "other", task={"command": "make", "args": ["deploy"]}), "make deploy"),
        (tool("mcp__jira__create_task", label="ship"), ""),
        (tool("PowerShell", "shell", command="git status"), "pwsh -Command 'git status'"),
    ],
)  # fmt: skip
def test_the_command_is_found_where_a_tool_runs_or_types_it(event: Event, command: str) -> None:
    assert command_of(event) == command


def test_a_tool_is_what_its_name_and_its_verb_say() -> None:
    assert "git commit" in named_acts(tool("mcp__gitkraken__git_add_or_commit", operation="commit"))
    assert "make deploy" in named_acts(tool("mcp__make__run", target="deploy"))
    assert "kubectl apply" in named_acts(tool("mcp__kubernetes__apply"))
    assert "git commit" not in named_acts(tool("mcp__git__git_log", query="commit"))
