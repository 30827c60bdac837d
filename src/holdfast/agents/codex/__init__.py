"""Codex CLI."""

from holdfast.agents.codex.hooks import AGENT

__all__ = ["AGENT"]
