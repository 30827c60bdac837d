"""The shape of a coding agent: how its hooks are read, how it is answered, what it can be held to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

Mode = Literal["start", "ask", "tell"]
Enforcement = Literal["prevent", "retry", "observe"]
McpFormat = Literal["standard", "copilot", "droid", "opencode", "codex"]
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
    matcher: str = ""
    """Which of these the agent is to tell us, where it can choose; empty means all."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Where and how our hooks are written into the agent's own settings, and how the agent is found."""

    files: Mapping[str, str]
    """Level → file; `user` is below HOME, the others below the project."""
    entry: Callable[[Hook, Sequence[str]], dict[str, Any]]
    """One hook entry that runs these words. The same words give the same entry in every version."""
    layout: Literal["groups", "list", "text", "mcp", "statusline"] = "groups"
    """Entries in groups (`hooks.EVENT[].hooks[]`), entries in a list (`hooks.EVENT[]`), a file that is all ours, or a
    file of MCP servers; or the one member of a settings file that is a status line."""
    blank: Mapping[str, Any] = field(default_factory=dict)
    """What a new settings file must have besides the hooks."""
    text: Callable[[Sequence[str]], str] | None = None
    """For `text`: the whole file, from the words that run us; mode, agent and event are added by what is in it."""
    mcp: Mapping[str, str] = field(default_factory=dict)
    """Level → the file where it looks for MCP servers, as `files`."""
    status_line: str = ""
    """The member of its settings file that holds the command of its status line; empty where it shows none."""
    mcp_format: McpFormat = "standard"
    """How a server is written there."""
    program: str = ""
    folder: str = ""
    """Its command, and its folder in the home directory."""
    oldest: tuple[int, ...] = ()
    """The first version whose hooks we know to work."""
    afterwards: str = ""
    """What is left for the person to do once the hooks are in."""


def _no_mark(_event: Event, _payload: Payload) -> str:
    return ""


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
    mark: Callable[[Event, Payload], str] = _no_mark
    """Pure. What tells this happening from every other of its kind in its session, the same through whichever
    registration it came; empty where nothing does, and then nothing is taken for a duplicate."""
    setup: Setup | None = None

    def hook(self, event: str) -> Hook | None:
        return next((h for h in self.hooks if h.event == event), None)
