"""The shape of a coding agent: how its hooks are read, how it is answered, what it can be held to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

Mode = Literal["start", "ask", "tell"]
Enforcement = Literal["prevent", "retry", "observe"]
McpFormat = Literal["standard", "copilot", "droid", "opencode", "toml"]
Untold = Literal["exit_code", "answer", "failure", "transcript"]
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
    hooks_too: tuple[str, ...] = ()
    """Other files that may hold its hooks, as globs."""
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
    folder: str = ""
    """Of the agent in the home directory."""
    oldest: tuple[int, ...] = ()
    """The first version whose hooks we know to work."""
    hold_up: Callable[[Path, str, Path], str] | None = None
    """Why the agent does not run the hooks of a file (at this level, in this project), where it asks for a review."""
    review: str = ""
    """How a person reviews them."""
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
    headless: tuple[str, ...] = ()
    """Its program, and the words before the prompt of a run without a terminal."""
    aliases: tuple[str, ...] = ()
    """Other names that scripts use for it."""
    untold: frozenset[Untold] = frozenset()
    """What its hooks leave out and its transcript has."""
    transcripts: Callable[[], Any] | None = None
    """Gives its `analysis.transcripts.Transcripts`; loaded when somebody reads one."""

    @property
    def program(self) -> str:
        return self.headless[0] if self.headless else ""

    def hook(self, event: str) -> Hook | None:
        return next((h for h in self.hooks if h.event == event), None)


_known: dict[str, Agent] = {}


def use_agents(agents: Mapping[str, Agent]) -> None:
    """From here on features find these by name."""
    _known.clear()
    _known.update(agents)


def known_agent(name: str) -> Agent | None:
    return _known.get(name)


def leaves_out(agent: str, what: Untold) -> bool:
    known = _known.get(agent)
    return known is not None and what in known.untold


def agent_programs() -> frozenset[str]:
    return frozenset(agent.program for agent in _known.values() if agent.program)


def is_hook_file(path: str) -> bool:
    """Whether an agent, at any level, reads its hooks from this file."""
    setups = [agent.setup for agent in _known.values() if agent.setup]
    return any(path.endswith(f"/{file}") for setup in setups for file in setup.files.values()) or any(
        fnmatchcase(path, f"*/{glob}") for setup in setups for glob in setup.hooks_too
    )


def agent_folders() -> list[str]:
    """Of all agents, in the home directory and in projects."""
    return sorted({agent.setup.folder for agent in _known.values() if agent.setup and agent.setup.folder})
