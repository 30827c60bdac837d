"""Claude Code."""

from holdfast.agents.claude_code.hooks import AGENT

__all__ = ["AGENT"]
