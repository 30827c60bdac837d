"""Which machine, which boot, which process: what the kernel says. A process is told by its id, its start and its boot (C5, D6)."""

import functools
import os
import socket
from pathlib import Path
from typing import Any

import msgspec


class Process(msgspec.Struct, frozen=True):
    """`start` is what the kernel counts (ticks since boot), or milliseconds where there is no /proc."""

    pid: int
    start: int
    parent: int
    name: str
    session: int = 0
    """The process that leads its session; a terminal belongs to one session."""
    terminal: int = 0
    """The number of its controlling terminal; 0 when it has none."""

    def record(self) -> dict[str, Any]:
        return {"pid": self.pid, "start": self.start, "boot": boot(), "host": host(), "name": self.name}


def look(pid: int) -> Process | None:
    """None when it is gone. A zombie is gone too: it only waits to be reaped, and pid 1 may never do that."""
    if pid <= 0:
        return None
    return _look_in_proc(pid) if _has_proc() else _look_with_psutil(pid)


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
    return Process(pid, int(fields[19]), int(fields[1]), name, int(fields[3]), int(fields[4]))


def _look_with_psutil(pid: int) -> Process | None:
    import psutil

    try:
        found = psutil.Process(pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            return None
        session, terminal = os.getsid(pid), 1 if found.terminal() else 0
        return Process(pid, int(found.create_time() * 1000), found.ppid(), found.name(), session, terminal)
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
    return socket.gethostname()
