"""Who asks: a person or an agent, told by the processes above the one that asks, never by what it says of itself."""

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

# A bound: process numbers may be used again while the chain is walked.
MAX_ANCESTORS = 40
AGENT_PROGRAMS = frozenset(
    "claude codex gemini cursor-agent copilot opencode qwen droid kimi aider goose amp crush".split()
)
AGENT_VARIABLES = (
    b"CLAUDECODE=", b"CLAUDE_CODE_SESSION_ID=", b"CODEX_SANDBOX=", b"CODEX_THREAD_ID=", b"GEMINI_CLI=", b"QWEN_CODE=",
    b"CURSOR_AGENT=", b"COPILOT_CLI=", b"OPENCODE=",
)  # fmt: skip
"""Their presence tells an agent's shell; their absence tells nothing."""
LEASE_OWNERS_VARIABLE = "HOLDFAST_LEASE_OWNERS"
"""Names, to every command that `lease run` runs, the owners of the leases it runs under."""
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish"))
# One command that runs our hook client, without pipes or substitutions, maybe with `|| true` behind it.
_HOOK_LINE = re.compile(rb"""[^|<>;&`$\n]*holdfast[-_./\w]*hook[^|<>;&`$\n]*(?:\|\| *(?:true|:|exit 0))?""")
_SCRIPT_HOSTS = frozenset(("node", "bun", "deno", "python", "python3", "bash", "sh"))


class AgentProcess(msgspec.Struct, frozen=True):
    """The process of a live session, as its hooks told, and whether one of its tool calls is running."""

    pid: int
    start: int = 0
    busy: bool = False
    session: str = ""


class Caller(msgspec.Struct, frozen=True):
    kind: str
    """`person`, or `agent`."""
    why: str
    certain: bool = True
    """False where it cannot be told: a person who has no terminal, or an agent by circumstances alone (where it was
    left behind, what runs at that moment). Then a short code from the dashboard can tell."""

    @property
    def is_agent(self) -> bool:
        return self.kind == "agent"


def list_ancestors(pid: int) -> list[Process]:
    """The process itself and those above it, nearest first, as long as they can be seen."""
    ancestors: list[Process] = []
    while pid > 1 and len(ancestors) < MAX_ANCESTORS:
        process = machine.look_up_process(pid)
        if process is None:
            break
        ancestors.append(process)
        pid = process.parent
    return ancestors


def find_agent(pid: int) -> int:
    """The process of the agent that a command runs below, which outlives the shell of one tool call; 0 without one."""
    return next((process.pid for process in list_ancestors(pid) if _agent_program(process)), 0)


class ProcessChains:
    """The processes above hook clients. Hooks of one session have one parent, so that a chain is walked once a while."""

    FRESH_S = 2.0
    MOST = 500

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, tuple[int, ...]]] = {}

    def above(self, pid: int) -> tuple[int, ...]:
        """Nearest first; empty when the client cannot be looked at."""
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
            # The shell of a single hook is gone with it; what lies above it is the same for all hooks.
            while len(chain) > 1 and _runs_only_a_hook(chain[0]):
                chain = chain[1:]
            cached = self._known[client.parent] = (time.monotonic(), tuple(process.pid for process in chain))
        return cached[1]


class HookOrigins:
    """Which process each session's hooks come from: a hook that is called from below it is the agent's own doing."""

    MOST = 2_000

    def __init__(self) -> None:
        self._parents: dict[tuple[str, str], tuple[int, int]] = {}

    def is_claim(self, agent: str, session: str, ancestors: tuple[int, ...]) -> bool:
        if not session or not ancestors:
            return False
        parent = self._parents.get((agent, session))
        # The parent that the session's hooks have always come from.
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
        """A shell, or a process that is gone already or whose starter is: no agent calls its hooks from there while it
        is alive itself."""
        parent = machine.look_up_process(pid)
        return parent is None or parent.name in _SHELLS or parent.parent in (0, 1)

    def _register(self, session: tuple[str, str], ancestors: tuple[int, ...]) -> bool:
        """The first hook of a session, or of its next process. A shell below an agent calls none of the agent's hooks."""
        parent = machine.look_up_process(ancestors[0])
        if parent is None:
            return False
        if parent.name in _SHELLS and any(_agent_program(one) for one in list_ancestors(parent.parent)):
            return True
        if len(self._parents) >= self.MOST:
            # A dict keeps the order in which sessions came: the oldest goes.
            del self._parents[next(iter(self._parents))]
        self._parents[session] = (parent.pid, parent.start)
        return False

    @staticmethod
    def _is_alive(known: tuple[int, int]) -> bool:
        process = machine.look_up_process(known[0])
        # The number may belong to another process by now; its start tells.
        return process is not None and process.start == known[1]


UNSEEN = -1
"""Instead of the number of a process that the kernel does not show us (one of another container)."""


def judge_caller(pid: int, agents: Iterable[AgentProcess] = ()) -> Caller:
    chain = list_ancestors(pid)
    if not chain:
        return Caller("agent", "the process that asks could not be looked at", certain=False)
    if _is_dashboard(pid):
        return Caller("person", "in the dashboard")
    for process in chain:
        if name := _agent_program(process):
            return Caller("agent", f"it runs below {name} (process {process.pid})")
        if has_agent_variables(process.pid):
            return Caller("agent", f"process {process.pid} has an agent's environment")
    return _judge_by_sessions(chain, tuple(agents)) or _as_person(chain[0])


def _as_person(process: Process) -> Caller:
    if process.terminal:
        return Caller("person", "at a terminal")
    return Caller("person", "without a terminal", certain=False)


def _judge_by_sessions(chain: list[Process], agents: Collection[AgentProcess]) -> Caller | None:
    """Agents whose program has another name are known by the process that their hooks came from."""
    me = chain[0]
    # A `start` of 0 is not known, and then the number alone has to do.
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
    """Nobody who started it is there any more."""
    return len(chain) == 1 or (len(chain) == 2 and chain[-1].parent in (0, 1) and chain[-1].session == chain[0].session)


def _is_dashboard(pid: int) -> bool:
    """Our own web server asks for whoever is logged in there; it lets in by a link that works once."""
    return _runs_module(pid, b"holdfast.doors.web")


def is_forwarder(pid: int) -> bool:
    """The team's forwarder, which this daemon started itself."""
    process = machine.look_up_process(pid)
    return process is not None and process.parent == os.getpid() and _runs_module(pid, b"holdfast_team.forwarder")


def _runs_module(pid: int, module: bytes) -> bool:
    """With the words that Holdfast starts its own programs with, and the very Python that runs here."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        program = Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return False
    return words[1:4] == [b"-P", b"-m", module] and program == Path(sys.executable).resolve()


def is_own_program(pid: int) -> bool:
    """Our daemon, what it started, or our web server: hooks start them, so that they have an agent's variables."""
    if _is_dashboard(pid) or any(process.pid == os.getpid() for process in list_ancestors(pid)):
        return True
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(os.path.basename(word).startswith((b"holdfast-", b"holdfast.daemon")) for word in words[:5])


def _runs_only_a_hook(process: Process) -> bool:
    """`sh -c 'holdfast-hook ask …'`, as agents start hooks that are given to them as one line."""
    if process.name not in _SHELLS:
        return False
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    text = words[2] if len(words) > 2 and words[1] in (b"-c", b"-lc", b"-ec") else b""
    return bool(_HOOK_LINE.fullmatch(text.strip()))


def _agent_program(process: Process) -> str:
    if process.name in AGENT_PROGRAMS:
        return process.name
    if process.name not in _SCRIPT_HOSTS:
        return ""
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[:3]
    except OSError:
        return ""
    # `claude.js` and `claude.cmd` are claude.
    names = (os.path.basename(word).decode("utf-8", "replace").partition(".")[0] for word in words)
    return next((name for name in names if name in AGENT_PROGRAMS), "")


def has_agent_variables(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return any(one.startswith(AGENT_VARIABLES) for one in environment.split(b"\0"))


SESSION_VARIABLES = ("HOLDFAST_SESSION", "CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "CODEX_SESSION_ID")
"""By these an agent tells its shell which session it is (H4)."""
_SESSION_ENTRIES = tuple(f"{name}=".encode() for name in SESSION_VARIABLES)


def has_session_variable(pid: int) -> bool:
    """Whether the process was told by its environment which agent session it belongs to; a program that acts for a
    session it names itself (the dashboard, a script of a person) was not. Where that cannot be looked at: yes."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(_SESSION_ENTRIES) for entry in file.read().split(b"\0"))
    except OSError:
        return True


# Processes that agents' tool calls left behind: what they do later would look like a person's doing.

KEPT_MS = 3_600_000
"""How long one that is gone is remembered."""
MOST = 200


class Leftover(msgspec.Struct):
    name: str
    start: int
    first_seen_at: int
    """When it was seen first, in ms: at the end of the call that began it."""
    ended_at: int = 0
    """When it was first seen to be gone; 0 while it runs."""


class LeftBehind:
    """In the memory of the daemon only. Looks at a process once, when it is new: what an agent starts has the agent's
    variables, and when its shell is gone nothing above it is the agent's any more."""

    def __init__(self) -> None:
        self._looked_at: set[int] = set()
        self._below_agents: set[int] = set()
        self._left: dict[int, Leftover] = {}

    def observe(self, changed: int, ended: bool) -> str:
        """What ran when the settings were changed. `ended`: a shell call did, which may have left something."""
        now = now_ms()
        found = self.name_running_at(changed, now) if now - changed < KEPT_MS else ""
        if ended:
            self.look(now)
        return found

    def look(self, now: int) -> None:
        pids = set(machine.all_pids())
        for pid in self._left:
            self._note_end(pid, now)
        # Those below an agent are looked at again: their shell may be gone by now.
        for pid in (pids - self._looked_at) | (self._below_agents & pids):
            self._look_at(pid, now)
        self._looked_at = pids
        self._below_agents &= pids
        fresh = {pid: one for pid, one in self._left.items() if not one.ended_at or now - one.ended_at < KEPT_MS}
        self._left = dict(list(fresh.items())[-MOST:])

    def name_running_at(self, moment: int, now: int) -> str:
        """One that ran at that moment, as far as is known; empty without one."""
        for pid, one in self._left.items():
            self._note_end(pid, now)
            if one.first_seen_at <= moment <= (one.ended_at or now):
                return f"{one.name} (process {pid})"
        return ""

    def _look_at(self, pid: int, now: int) -> None:
        # First what most processes do not have; nothing is known of it where there is no /proc.
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
        # The number may belong to another process by now.
        if not left.ended_at and (process is None or process.start != left.start):
            left.ended_at = now


def _has_our_home(pid: int) -> bool:
    """Settings lie in the home: a process with another one is at work on other settings."""
    home = machine.environment_of(pid).get("HOME")
    return home is None or Path(home) == Path.home()


LEFT_BEHIND = LeftBehind()
