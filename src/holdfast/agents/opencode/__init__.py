"""opencode."""

from holdfast.agents.opencode.hooks import AGENT

__all__ = ["AGENT"]
