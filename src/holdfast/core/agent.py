"""The shape of a coding agent: how its hooks are read, how it is answered, what it can be held to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.core.decision import Decision
from holdfast.core.delivery import Delivery
from holdfast.core.event import Event

Mode = Literal["start", "ask", "tell"]
Enforcement = Literal["prevent", "retry", "observe"]
Payload = Mapping[str, Any]

ACTIONS = ("edit", "shell", "read", "search", "web", "agent", "skill", "mcp", "plan", "todo", "ask", "other")
"""What a tool does, the same word in every agent: a gate on `edit` means the same everywhere."""


@dataclass(frozen=True)
class Hook:
    """One of the agent's hook events. `timeout` is in seconds; adapters write it in the agent's own unit."""

    event: str
    kind: str
    mode: Mode = "tell"
    register: bool = True
    timeout: float = 10


@dataclass(frozen=True, kw_only=True)
class Agent:
    name: str
    title: str
    hooks: tuple[Hook, ...]
    read: Callable[[Delivery, Payload], Event]
    """Pure. Fields it does not know are left in the body; it never raises on odd payloads."""
    write: Callable[[Event, Decision], bytes]
    """Pure. The agent's own reply; empty bytes mean nothing to say."""
    recognise: Callable[[Delivery, Payload], bool]
    """From payload and environment, never from where the hook was registered."""
    enforces: Mapping[str, Enforcement] = field(default_factory=dict)
    """Event kind → what a refusal does there."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Its tool name → one of ACTIONS."""

    def hook(self, event: str) -> Hook | None:
        return next((h for h in self.hooks if h.event == event), None)
