"""Factory droid."""

from holdfast.agents.droid.hooks import AGENT

__all__ = ["AGENT"]
