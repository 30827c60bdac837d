"""Is the agent's process alive?"""

# Its id, its start time and the boot it belongs to decide, never a timeout.

import os
import time
from math import inf
from typing import TYPE_CHECKING

from holdfast.core.kinds import HookPayload
from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.machine import Process, boot_id, command_line, is_here, look_up_process, machine_id

if TYPE_CHECKING:
    import psutil

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox"))
WRAPPERS = frozenset(("env", "npm", "npx", "pnpm", "yarn", "timeout", "nice", "nohup", "stdbuf", "xargs", "time"))
REAPERS = frozenset(("init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"))
"""Who takes over processes whose parent is gone: never an agent."""
# Options of a shell that somebody types into.
INTERACTIVE = ("--init-file", "--rcfile", "-i", "--login", "-l")
# A bound on the way up.
DEEPEST = 12
FRESH_MS = 2_000
"""A hook client waits for its answer no longer than this: an older event came by the spool."""
MAX_KNOWN = 2_000


def agent_above(pid: int, start: int = 0) -> Process | None:
    """The agent's process: the first one upwards from a hook's parent that is no shell and no wrapper."""
    process = look_up_process(pid)
    # The same id with another start time is another process.
    if process is None or (start and process.start != start):
        return None
    for _ in range(DEEPEST):
        if process is None or process.pid <= 1 or process.name in REAPERS:
            return None
        if not is_wrapper(process):
            return process
        process = look_up_process(process.parent)
    return None


def agent_process(process: Process) -> AgentProcess:
    return AgentProcess(process.pid, process.start, boot_id(), machine_id(), process.name)


class ProcessLookup:
    """Finds the agent's process while its hook is answered, so that an agent killed right after it is missed at once.

    Looks are few: at the first event of a session, and when a start or a prompt comes from another process.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], AgentProcess] = {}

    def identify(self, session: tuple[str, str], kind: str, data: HookPayload, at: int) -> AgentProcess | None:
        """`session` is agent and id. None where nothing new is to be said."""
        known_process = self._known.get(session)
        # Looking up processes takes time, so most events of a known session skip it.
        if not data.pid or (known_process and (kind not in NAMES_PROCESS or known_process.pid == data.pid)):
            return None
        process = self._look(data, at)
        if process is None or process == known_process:
            return None
        self._remember(session, process)
        return process

    def _look(self, data: HookPayload, at: int) -> AgentProcess | None:
        above = agent_above(data.pid, data.pid_start)
        if above:
            return agent_process(above)
        fresh = abs(time.time() * 1000 - at) < FRESH_MS
        if not fresh or not data.pid_start:
            return None
        # The hook still waits, but its parent, or the process above that shell, is gone: so is the agent.
        return AgentProcess(data.pid, data.pid_start, boot_id(), machine_id(), "")

    def _remember(self, session: tuple[str, str], process: AgentProcess) -> None:
        self._known.pop(session, None)
        self._known[session] = process
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]


NAMES_PROCESS = frozenset(("session.started", "prompt.submitted"))


def is_alive(process: AgentProcess) -> bool | None:
    """None: cannot be known from here (another machine, or the kernel would not say)."""
    if not is_here(process.machine, process.host):
        return None
    # Start times of another boot cannot be compared; that process is gone anyway.
    if process.boot != boot_id():
        return False
    try:
        running = look_up_process(process.pid)
    except OSError:
        return None
    return running is not None and running.start == process.start


def has_lost_terminal(hook_parent: int, start: int) -> bool:
    """Whether the agent's terminal was closed under it. False where that cannot be known."""
    agent = agent_above(hook_parent, start)
    try:
        streams = [os.readlink(f"/proc/{agent.pid}/fd/{n}") for n in range(3)] if agent else []  # noqa: PTH115 - not a file's name
    except OSError:
        return False
    return any(name.startswith("/dev/pts/") and name.endswith(" (deleted)") for name in streams)


def has_child_since(pid: int, at_ms: float, until_ms: float = inf) -> bool:
    """Whether something the process started between two moments still runs."""
    import psutil

    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return False
    return any(at_ms <= _process_start_ms(child) <= until_ms and not _is_waiting_hook(child.pid) for child in children)


def _is_waiting_hook(pid: int) -> bool:
    """Our own hook, which waits for a person's answer to the very question."""
    text = " ".join(command_line(pid))
    return " wait " in text and ("holdfast-hook" in text or "holdfast/hook.py" in text)


def _process_start_ms(child: "psutil.Process") -> float:
    """Never, when it is over."""
    import psutil

    try:
        return 0 if child.status() == psutil.STATUS_ZOMBIE else child.create_time() * 1000
    except psutil.Error:
        return 0


def is_wrapper(process: Process) -> bool:
    # A login shell is named with a leading minus.
    name = process.name.lstrip("-").split(" ")[0]
    return name in WRAPPERS or (name in SHELLS and not _is_interactive(process.pid))


def _is_interactive(pid: int) -> bool:
    """A shell somebody types into runs no script and no -c: it is where a hook was tried by hand."""
    words = command_line(pid)[1:]
    return not words or any(word in INTERACTIVE for word in words) or words == ["-"]
