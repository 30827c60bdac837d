"""Gemini CLI."""

from holdfast.agents.gemini.hooks import AGENT

__all__ = ["AGENT"]
