"""Qwen Code."""

from holdfast.agents.qwen.hooks import AGENT

__all__ = ["AGENT"]
