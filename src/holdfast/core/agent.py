"""The contract of a coding agent: reading its hooks, writing its answers, and what it enforces."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, Literal

from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

Mode = Literal["start", "ask", "tell", "wait"]
Enforcement = Literal["prevent", "retry", "observe"]
McpFormat = Literal["standard", "copilot", "droid", "opencode", "toml"]
Untold = Literal["exit_code", "answer", "failure", "transcript", "compaction"]
Payload = Mapping[str, Any]

ACTIONS = ("edit", "shell", "read", "search", "web", "agent", "skill", "mcp", "plan", "todo", "ask", "other")
"""What a tool does, named alike for every agent, so that a gate on `edit` works everywhere."""


@dataclass(frozen=True)
class Hook:
    """One hook event of the agent. `timeout` is in seconds; adapters convert it to the agent's unit."""

    event: str
    kind: str
    mode: Mode = "tell"
    register: bool = True
    timeout: float = 10
    matcher: str = ""
    """Which tools or sources to report, where the agent can filter; empty means all."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Where and how hooks are written into the agent's settings, and how the agent is detected."""

    files: Mapping[str, str]
    """Settings file by level; `user` is relative to HOME, other levels to the project."""
    hooks_too: tuple[str, ...] = ()
    """Globs of other files that may hold its hooks."""
    entry: Callable[[Hook, Sequence[str]], dict[str, Any]]
    """Builds the hook entry that runs a command line. The same command line gives the same entry in every version."""
    layout: Literal["groups", "list", "text", "mcp", "statusline"] = "groups"
    """How entries are arranged: in groups (`hooks.EVENT[].hooks[]`), in a list (`hooks.EVENT[]`), in a file of their
    own, in a file of MCP servers, or as the status line of a settings file."""
    blank: Mapping[str, Any] = field(default_factory=dict)
    """What a new settings file needs besides the hooks."""
    text: Callable[[Sequence[str]], str] | None = None
    """For `text`: builds the whole file from our command line; the file adds mode, agent and event."""
    mcp: Mapping[str, str] = field(default_factory=dict)
    """File with MCP servers by level, as in `files`."""
    status_line: str = ""
    """The settings member that holds the status-line command; empty if the agent has no status line."""
    mcp_format: McpFormat = "standard"
    """The format of a server entry."""
    folder: str = ""
    """The agent's folder in HOME."""
    oldest: tuple[int, ...] = ()
    """The first version whose hooks are known to work."""
    hold_up: Callable[[Path, str, Path], str] | None = None
    """Why the agent doesn't run the hooks of a file, where it asks for a review first."""
    review: str = ""
    """How a person reviews the hooks."""
    afterwards: str = ""
    """What the person still has to do after installation."""


def _no_mark(_event: Event, _payload: Payload) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Agent:
    name: str
    title: str
    hooks: tuple[Hook, ...]
    read: Callable[[Delivery, Payload], Event]
    """Pure. Unknown fields stay in the body; odd payloads never raise."""
    write: Callable[[Event, Decision], bytes]
    """Pure. Returns the agent's reply format; empty bytes mean no answer."""
    carried: Callable[[Event, Decision], Decision] = lambda _event, decision: decision
    """Pure. The part of a decision that the reply to this event has a place for."""
    recognise: Callable[[Delivery, Payload], bool]
    """Decides from payload and environment, not from where the hook is registered."""
    enforces: Mapping[str, Enforcement] = field(default_factory=dict)
    """What a refusal does, by event kind."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """The agent's tool names, each mapped to one of ACTIONS."""
    mark: Callable[[Event, Payload], str] = _no_mark
    """Pure. Identifies one happening among all of its kind in a session, whichever registration delivered it. Empty if
    nothing identifies it; then it is never treated as a duplicate."""
    setup: Setup | None = None
    starts_with_hook: bool = False
    """Whether every session fires a hook when its program starts, before anybody types."""
    errands: frozenset[str] = frozenset()
    """First arguments with which its program runs no session."""
    headless: tuple[str, ...] = ()
    """Its program and the arguments before the prompt of a run without a terminal."""
    aliases: tuple[str, ...] = ()
    """Other names that scripts use for it."""
    untold: frozenset[Untold] = frozenset()
    """What its hooks omit and its transcript contains; `compaction`: neither has the tokens of its request."""
    waits: Literal["", "beside", "before"] = ""
    """Whether a hook about a permission may wait for an answer: while the agent's own dialog is open, or before it."""
    transcripts: Callable[[], Any] | None = None
    """Loads its `analysis.transcripts.Transcripts`."""

    @property
    def program(self) -> str:
        return self.headless[0] if self.headless else ""

    def hook(self, event: str) -> Hook | None:
        return next((h for h in self.hooks if h.event == event), None)


_known: dict[str, Agent] = {}


def use_agents(agents: Mapping[str, Agent]) -> None:
    """Register the agents that features look up by name."""
    _known.clear()
    _known.update(agents)
    _hook_files.cache_clear()


def known_agent(name: str) -> Agent | None:
    return _known.get(name)


def known_agents() -> tuple[Agent, ...]:
    return tuple(_known.values())


def leaves_out(agent: str, what: Untold) -> bool:
    known = _known.get(agent)
    return known is not None and what in known.untold


def agent_programs() -> frozenset[str]:
    return frozenset(agent.program for agent in _known.values() if agent.program)


def is_hook_file(path: str) -> bool:
    """Return whether an agent reads hooks from this file, at any level."""
    suffixes, globs = _hook_files()
    return path.endswith(suffixes) or globs.fullmatch(path) is not None


@cache
def _hook_files() -> tuple[tuple[str, ...], re.Pattern[str]]:
    """The suffixes and the globs of all files that may hold hooks, in a form that is quick to test."""
    setups = [agent.setup for agent in _known.values() if agent.setup]
    suffixes = tuple(f"/{file}" for setup in setups for file in setup.files.values())
    globs = "|".join(translate(f"*/{glob}") for setup in setups for glob in setup.hooks_too)
    return suffixes, re.compile(globs or r"(?!)")


def agent_folders() -> list[str]:
    """Return the folders of all agents in HOME and in projects."""
    return sorted({agent.setup.folder for agent in _known.values() if agent.setup and agent.setup.folder})
