"""Cursor."""

from holdfast.agents.cursor.hooks import AGENT

__all__ = ["AGENT"]
