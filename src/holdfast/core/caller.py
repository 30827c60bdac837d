"""Tells people from agents by the processes above the caller, never by what the caller claims."""

import os
import re
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from holdfast.core import machine
from holdfast.core.machine import Process
from holdfast.core.times import now_ms

# A bound, because process ids may be reused while the chain is read.
MAX_ANCESTORS = 40
# Written by tools/generated_blocks.py from the agents' folders.
KNOWN_PROGRAMS = "claude codex copilot cursor-agent droid gemini kimi opencode qwen"
AGENT_PROGRAMS = frozenset((*KNOWN_PROGRAMS.split(), "aider", "goose", "amp", "crush"))
AGENT_VARIABLES = (
    b"CLAUDECODE=", b"CLAUDE_CODE_SESSION_ID=", b"CODEX_SANDBOX=", b"CODEX_THREAD_ID=", b"GEMINI_CLI=", b"QWEN_CODE=",
    b"CURSOR_AGENT=", b"COPILOT_CLI=", b"OPENCODE=",
)  # fmt: skip
"""Their presence proves an agent's shell; their absence proves nothing."""
LEASE_OWNERS_VARIABLE = "HOLDFAST_LEASE_OWNERS"
"""Names the owners of held leases in the environment of commands under `lease run`."""
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish"))
# One command that runs the hook client, without pipes or substitutions, optionally followed by `|| true`.
_HOOK_LINE = re.compile(rb"""[^|<>;&`$\n]*holdfast[-_./\w]*hook[^|<>;&`$\n]*(?:\|\| *(?:true|:|exit 0))?""")
_SCRIPT_HOSTS = frozenset(("node", "bun", "deno", "python", "python3", "bash", "sh"))


class AgentProcess(msgspec.Struct, frozen=True):
    """The process of a live session as its hooks reported it, and whether a tool call is running."""

    pid: int
    start: int = 0
    busy: bool = False
    session: str = ""


class Caller(msgspec.Struct, frozen=True):
    kind: str
    """`person` or `agent`."""
    why: str
    certain: bool = True
    """False if it cannot be determined: a person without a terminal, or an agent by circumstantial evidence only. A
    short code from the dashboard settles it."""

    @property
    def is_agent(self) -> bool:
        return self.kind == "agent"


def list_ancestors(pid: int) -> list[Process]:
    """List the process and its ancestors, nearest first, as far as they are visible."""
    ancestors: list[Process] = []
    while pid > 1 and len(ancestors) < MAX_ANCESTORS:
        process = machine.look_up_process(pid)
        if process is None:
            break
        ancestors.append(process)
        pid = process.parent
    return ancestors


def find_agent(pid: int) -> int:
    """Find the agent process above a command, which outlives the shell of one tool call; 0 if there is none."""
    return next((process.pid for process in list_ancestors(pid) if agent_program(process)), 0)


class ProcessChains:
    """Caches the processes above hook clients. Hooks of one session share a parent, so each chain is read rarely."""

    FRESH_S = 2.0
    MOST = 500

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, tuple[int, ...]]] = {}

    def above(self, pid: int) -> tuple[int, ...]:
        """Return the ancestors, nearest first; empty if the client cannot be inspected."""
        try:
            client = machine.look_up_process(pid) if pid else None
        except OSError:
            client = None
        if client is None:
            return ()
        if client.parent <= 1:
            return (1,)  # Left behind by whoever started it, or the agent is the first process of a container.
        cached = self._known.get(client.parent)
        if cached is None or time.monotonic() - cached[0] > self.FRESH_S:
            if len(self._known) > self.MOST:
                self._known.clear()
            chain = list_ancestors(client.parent)
            # The shell of a single hook is short-lived; the processes above it are shared by all hooks.
            while len(chain) > 1 and _runs_only_a_hook(chain[0]):
                chain = chain[1:]
            cached = self._known[client.parent] = (time.monotonic(), tuple(process.pid for process in chain))
        return cached[1]


class HookOrigins:
    """Remembers which process each session's hooks come from. A hook called from below it is the agent's own doing."""

    MOST = 2_000

    def __init__(self) -> None:
        self._parents: dict[tuple[str, str], tuple[int, int]] = {}

    def is_claim(self, agent: str, session: str, ancestors: tuple[int, ...]) -> bool:
        if not session or not ancestors:
            return False
        parent = self._parents.get((agent, session))
        # The parent that the session's hooks have always had.
        if parent is not None and ancestors[0] == parent[0]:
            return False
        if (
            parent is not None
            and self._is_alive(parent)
            and (parent[0] in ancestors or self._is_detached(ancestors[0]))
        ):
            return True
        return self._register((agent, session), ancestors)

    @staticmethod
    def _is_detached(pid: int) -> bool:
        """Return whether it is a shell, is gone, or has lost its parent: a live agent never calls hooks from there."""
        parent = machine.look_up_process(pid)
        return parent is None or parent.name in _SHELLS or parent.parent in (0, 1)

    def _register(self, session: tuple[str, str], ancestors: tuple[int, ...]) -> bool:
        """Register the first hook of a session or of its next process. A shell below an agent calls none of the
        agent's hooks."""
        parent = machine.look_up_process(ancestors[0])
        if parent is None:
            return False
        if parent.name in _SHELLS and any(agent_program(one) for one in list_ancestors(parent.parent)):
            return True
        if len(self._parents) >= self.MOST:
            # Dicts keep insertion order, so the oldest session goes first.
            del self._parents[next(iter(self._parents))]
        self._parents[session] = (parent.pid, parent.start)
        return False

    @staticmethod
    def _is_alive(known: tuple[int, int]) -> bool:
        process = machine.look_up_process(known[0])
        # The start time shows whether the pid was reused.
        return process is not None and process.start == known[1]


UNSEEN = -1
"""Replaces the pid of a process that the kernel hides from us, such as one in another container."""


def judge_caller(pid: int, agents: Iterable[AgentProcess] = ()) -> Caller:
    chain = list_ancestors(pid)
    if not chain:
        return Caller("agent", "the process that asks could not be looked at", certain=False)
    if _is_dashboard(pid):
        return Caller("person", "in the dashboard")
    for process in chain:
        if name := agent_program(process):
            return Caller("agent", f"it runs below {name} (process {process.pid})")
        if has_agent_variables(process.pid):
            return Caller("agent", f"process {process.pid} has an agent's environment")
    return _judge_by_sessions(chain, tuple(agents)) or _as_person(chain[0])


def _as_person(process: Process) -> Caller:
    if process.terminal:
        return Caller("person", "at a terminal")
    return Caller("person", "without a terminal", certain=False)


def _judge_by_sessions(chain: list[Process], agents: Collection[AgentProcess]) -> Caller | None:
    """Recognise agents with an unknown program name by the process their hooks came from."""
    me = chain[0]
    # A `start` of 0 is unknown; then the pid alone decides.
    alive = [
        (one, seen) for one in agents if (seen := machine.look_up_process(one.pid)) and one.start in (0, seen.start)
    ]
    for agent, seen in alive:
        below = any(process.pid == agent.pid for process in chain[1:])
        if below and (seen.session == me.session or agent.busy):
            return Caller("agent", f"it runs below the agent's process {agent.pid}")
        if _is_orphan(chain) and seen.session == me.session:
            why = f"it was left behind in the session of the agent's process {agent.pid}"
            return Caller("agent", why, certain=False)
        if _is_orphan(chain) and not me.terminal and agent.busy:
            return Caller("agent", "it is detached, and a tool call of an agent is running", certain=False)
    return None


def _is_orphan(chain: list[Process]) -> bool:
    """Return whether its parent is gone."""
    return len(chain) == 1 or (len(chain) == 2 and chain[-1].parent in (0, 1) and chain[-1].session == chain[0].session)


def _is_dashboard(pid: int) -> bool:
    """Return whether it is our web server, which acts for the person who logged in with a one-time link."""
    return _runs_module(pid, b"holdfast.doors.web")


def is_forwarder(pid: int) -> bool:
    """Return whether it is the team forwarder that this daemon started."""
    process = machine.look_up_process(pid)
    return process is not None and process.parent == os.getpid() and _runs_module(pid, b"holdfast_team.forwarder")


OWN_CODE_ONLY = "-EP"
"""Python's options with which no variable and no current folder puts other code in the place of ours."""
PRELOADS = ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES")


def _runs_module(pid: int, module: bytes) -> bool:
    """Return whether it runs a module of ours, with our arguments, this very Python, and nothing put before it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        program = Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return False
    ours = words[1:4] == [OWN_CODE_ONLY.encode(), b"-m", module] and program == Path(sys.executable).resolve()
    return ours and not machine.environment_of(pid).keys() & set(PRELOADS)


def is_own_program(pid: int) -> bool:
    """Return whether it is the daemon, its child, or the web server: hooks start them, so they inherit an agent's
    variables."""
    if _is_dashboard(pid) or any(process.pid == os.getpid() for process in list_ancestors(pid)):
        return True
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(os.path.basename(word).startswith((b"holdfast-", b"holdfast.daemon")) for word in words[:5])


def _runs_only_a_hook(process: Process) -> bool:
    """Return whether it is `sh -c 'holdfast-hook ask …'`, as agents start hooks given as one line."""
    if process.name not in _SHELLS:
        return False
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    text = words[2] if len(words) > 2 and words[1] in (b"-c", b"-lc", b"-ec") else b""
    return bool(_HOOK_LINE.fullmatch(text.strip()))


def agent_program(process: Process) -> str:
    """The agent that this process is, by its name or the script it runs; empty if it is none."""
    if process.name in AGENT_PROGRAMS:
        return process.name
    if process.name not in _SCRIPT_HOSTS:
        return ""
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[:3]
    except OSError:
        return ""
    # `claude.js` and `claude.cmd` count as claude.
    names = (os.path.basename(word).decode("utf-8", "replace").partition(".")[0] for word in words)
    return next((name for name in names if name in AGENT_PROGRAMS), "")


def has_agent_variables(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return any(one.startswith(AGENT_VARIABLES) for one in environment.split(b"\0"))


SESSION_VARIABLES = ("HOLDFAST_SESSION", "CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "CODEX_SESSION_ID")
"""Variables by which an agent names its session to its shell (H4)."""
_SESSION_ENTRIES = tuple(f"{name}=".encode() for name in SESSION_VARIABLES)


def has_session_variable(pid: int) -> bool:
    """Return whether its environment names an agent session; True if the environment cannot be read. A program that
    names a session itself, such as the dashboard, has no such variable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(_SESSION_ENTRIES) for entry in file.read().split(b"\0"))
    except OSError:
        return True


# Processes that tool calls left running: what they do later would look like a person's doing.

KEPT_MS = 3_600_000
"""How long a process that ended is remembered."""
MOST = 200


class Leftover(msgspec.Struct):
    name: str
    start: int
    first_seen_at: int
    """When it was first seen, in ms: at the end of the call that started it."""
    ended_at: int = 0
    """When it was first found gone; 0 while it runs."""


class Orphans:
    """Tracks leftover processes in the daemon's memory. Each process is inspected once, when it is new: after its
    shell ends, nothing above it belongs to the agent any more."""

    def __init__(self) -> None:
        self._looked_at: set[int] = set()
        self._below_agents: set[int] = set()
        self._left: dict[int, Leftover] = {}

    def observe(self, changed: int, ended: bool) -> str:
        """Note what ran when settings changed. `ended`: a shell call ended, which may have left processes behind."""
        now = now_ms()
        found = self.name_running_at(changed, now) if now - changed < KEPT_MS else ""
        if ended:
            self.look(now)
        return found

    def look(self, now: int) -> None:
        pids = set(machine.all_pids())
        for pid in self._left:
            self._note_end(pid, now)
        # Processes below an agent are inspected again, because their shell may be gone by now.
        for pid in (pids - self._looked_at) | (self._below_agents & pids):
            self._look_at(pid, now)
        self._looked_at = pids
        self._below_agents &= pids
        fresh = {pid: one for pid, one in self._left.items() if not one.ended_at or now - one.ended_at < KEPT_MS}
        self._left = dict(list(fresh.items())[-MOST:])

    def name_running_at(self, moment: int, now: int) -> str:
        """Return the command line of a leftover process that ran at that moment; empty if none is known."""
        for pid, one in self._left.items():
            self._note_end(pid, now)
            if one.first_seen_at <= moment <= (one.ended_at or now):
                return f"{one.name} (process {pid})"
        return ""

    def _look_at(self, pid: int, now: int) -> None:
        # The cheapest test first. Without /proc nothing is known.
        if not has_agent_variables(pid) or is_own_program(pid) or not _has_our_home(pid):
            return
        process = machine.look_up_process(pid)
        if process is None:
            return
        if find_agent(pid):
            self._below_agents.add(pid)
            return
        self._below_agents.discard(pid)
        self._left.setdefault(pid, Leftover(process.name, process.start, now))

    def _note_end(self, pid: int, now: int) -> None:
        left = self._left[pid]
        process = None if left.ended_at else machine.look_up_process(pid)
        # The pid may have been reused.
        if not left.ended_at and (process is None or process.start != left.start):
            left.ended_at = now


def _has_our_home(pid: int) -> bool:
    """Return whether its HOME is ours; with another one it works on other settings."""
    home = machine.environment_of(pid).get("HOME")
    return home is None or Path(home) == Path.home()


ORPHANS = Orphans()
