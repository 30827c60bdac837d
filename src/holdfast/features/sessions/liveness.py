"""Is the agent's process alive? Its id, its start time and the boot it belongs to decide, never a timeout."""

import functools
import os
import platform
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import psutil

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox"))
WRAPPERS = frozenset(("env", "npm", "npx", "pnpm", "yarn", "timeout", "nice", "nohup", "stdbuf", "xargs", "time"))
INTERACTIVE = ("--init-file", "--rcfile", "-i", "--login", "-l")
DEEPEST = 12


class Process(msgspec.Struct, frozen=True):
    """`start` is what the kernel counts (ticks since boot), or milliseconds where there is no /proc."""

    pid: int
    start: int
    parent: int
    name: str

    def record(self) -> dict[str, Any]:
        return {"pid": self.pid, "start": self.start, "boot": boot(), "host": host(), "name": self.name}


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


def look(pid: int) -> Process | None:
    """None when it is gone. A zombie is gone too: it only waits to be reaped, and pid 1 may never do that."""
    if pid <= 0:
        return None
    return _look_in_proc(pid) if _has_proc() else _look_with_psutil(pid)


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


def _look_in_proc(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold spaces and brackets, so count from the last bracket.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    return Process(pid, int(fields[19]), int(fields[1]), name)


def _look_with_psutil(pid: int) -> Process | None:
    import psutil

    try:
        found = psutil.Process(pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            return None
        return Process(pid, int(found.create_time() * 1000), found.ppid(), found.name())
    except psutil.NoSuchProcess:
        return None
    except psutil.Error as error:
        raise OSError(str(error)) from error


@functools.cache
def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - asked once


@functools.cache
def boot() -> str:
    """Start times are counted from boot: after the next one the same numbers may be another process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@functools.cache
def host() -> str:
    return platform.node()
