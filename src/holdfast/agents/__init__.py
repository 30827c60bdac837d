"""The coding agents Holdfast understands. This dict is the one registration."""

from holdfast.agents.auggie import AUGGIE
from holdfast.agents.claude_code import CLAUDE_CODE
from holdfast.agents.codex import CODEX
from holdfast.agents.continue_cli import CONTINUE
from holdfast.agents.copilot import COPILOT
from holdfast.agents.cursor import CURSOR
from holdfast.agents.droid import DROID
from holdfast.agents.gemini import GEMINI
from holdfast.agents.kimi import KIMI
from holdfast.agents.opencode import OPENCODE
from holdfast.agents.plain import PLAIN
from holdfast.agents.qwen import QWEN
from holdfast.core.agent import Agent

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        CLAUDE_CODE, CODEX, GEMINI, COPILOT, CURSOR, OPENCODE, QWEN, DROID, KIMI, AUGGIE, CONTINUE, PLAIN,
    )
}  # fmt: skip
