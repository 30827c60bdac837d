"""What is known of agents by their names."""

import pytest

from holdfast.agents import AGENTS
from holdfast.core.agent import agent_programs, is_hook_file, known_agent, leaves_out, use_agents
from holdfast.core.caller import AGENT_PROGRAMS


def test_agents_are_found_by_name_until_others_are_used() -> None:
    assert known_agent("codex") is AGENTS["codex"] and known_agent("emacs") is None
    assert leaves_out("codex", "exit_code") and not leaves_out("codex", "answer") and not leaves_out("emacs", "answer")
    assert {"claude", "cursor-agent", "kimi"} <= agent_programs()
    use_agents({"kimi": AGENTS["kimi"]})
    assert known_agent("codex") is None and agent_programs() == {"kimi"}


@pytest.mark.parametrize(
    "path",
    [
        "/p/.claude/settings.local.json", "/p/.codex/hooks.json", "/home/ada/.codex/config.toml", "/p/.qwen/settings.json",
        "/p/.cursor/hooks.json", "/p/.github/hooks/other.json", "/p/.opencode/plugin/holdfast.js",
    ],
)  # fmt: skip
def test_a_file_that_an_agent_reads_hooks_from(path: str) -> None:
    assert is_hook_file(path)


@pytest.mark.parametrize(
    "path", ["/p/settings.json", "/p/.codex/notes.md", "/p/my.claude/settings.json", "/p/hooks.json"]
)
def test_any_other_file(path: str) -> None:
    assert not is_hook_file(path)


def test_the_program_of_every_agent_is_known_to_whoever_judges_callers() -> None:
    """Named there once more, so that a command need not load the agents."""
    assert agent_programs() <= AGENT_PROGRAMS
