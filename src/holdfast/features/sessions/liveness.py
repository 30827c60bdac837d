"""Is the agent's process alive? Its id, its start time and the boot it belongs to decide, never a timeout."""

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from holdfast.core.machine import Process, boot, host, look

if TYPE_CHECKING:
    import psutil

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox"))
WRAPPERS = frozenset(("env", "npm", "npx", "pnpm", "yarn", "timeout", "nice", "nohup", "stdbuf", "xargs", "time"))
INTERACTIVE = ("--init-file", "--rcfile", "-i", "--login", "-l")
DEEPEST = 12


def agent_above(pid: int, start: int = 0) -> Process | None:
    """The agent's process: the first one upwards from a hook's parent that is no shell and no wrapper."""
    found = look(pid)
    if found is None or (start and found.start != start):
        return None
    for _ in range(DEEPEST):
        if found is None or found.pid <= 1:
            return None
        if not is_wrapper(found):
            return found
        found = look(found.parent)
    return None


def alive(record: Mapping[str, Any]) -> bool | None:
    """None: cannot be known from here (another machine, or the kernel would not say)."""
    if record.get("host") != host():
        return None
    if record.get("boot") != boot():
        return False
    try:
        found = look(record["pid"])
    except OSError:
        return None
    return found is not None and found.start == record["start"]


def has_child_since(pid: int, at_ms: float, until_ms: float = inf) -> bool:
    """Whether something the process started between two moments still runs."""
    import psutil

    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return False
    return any(at_ms <= _began(child) <= until_ms for child in children)


def _began(child: "psutil.Process") -> float:
    """Never, when it is over."""
    import psutil

    try:
        return 0 if child.status() == psutil.STATUS_ZOMBIE else child.create_time() * 1000
    except psutil.Error:
        return 0


def is_wrapper(process: Process) -> bool:
    name = process.name.lstrip("-").split(" ")[0]
    return name in WRAPPERS or (name in SHELLS and not _is_interactive(process.pid))


def _is_interactive(pid: int) -> bool:
    """A shell somebody types into runs no script and no -c: it is where a hook was tried by hand."""
    import psutil

    try:
        words = psutil.Process(pid).cmdline()[1:]
    except psutil.Error:
        return False
    return not words or any(word in INTERACTIVE for word in words) or words == ["-"]
