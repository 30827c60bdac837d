"""Kimi Code."""

from holdfast.agents.kimi.hooks import AGENT

__all__ = ["AGENT"]
