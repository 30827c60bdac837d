"""GitHub Copilot CLI."""

from holdfast.agents.copilot.hooks import AGENT

__all__ = ["AGENT"]
