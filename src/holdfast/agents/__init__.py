"""The coding agents Holdfast understands. This dict is the one registration."""

from holdfast.agents.claude_code import CLAUDE_CODE
from holdfast.core.agent import Agent

AGENTS: dict[str, Agent] = {agent.name: agent for agent in (CLAUDE_CODE,)}
