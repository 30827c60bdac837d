"""Who owns a lease: a process, told apart by its start time and the boot it belongs to (C5, D6)."""

import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def owner_of(pid: int) -> dict[str, Any] | None:
    """None when there is no such process."""
    start = started(pid)
    if start is None:
        return None
    return {"owner": f"{pid}:{start}@{host()}", "pid": pid, "start": start, "host": host(), "boot": boot()}


def lost(entry: Mapping[str, Any], now: int) -> str:
    """Why this owner counts as gone; empty while it may live. Time alone decides only where nothing else can."""
    if not entry["pid"] or entry["host"] != host():
        return "its time was up" if now > entry["until"] else ""
    if entry["boot"] and entry["boot"] != boot():
        return f"the machine was started anew since process {entry['pid']} took it"
    start = started(entry["pid"])
    if start is None:
        return f"process {entry['pid']} is gone"
    return f"process {entry['pid']} is another one now" if start != entry["start"] else ""


def started(pid: int) -> int | None:
    """When it was started, in the kernel's own count. A zombie is gone: it only waits to be reaped."""
    if pid <= 0:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return None if _has_proc() else _without_proc(pid)
    fields = text.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" else None


def _without_proc(pid: int) -> int | None:
    import psutil  # Here, because a daemon's start should not wait for it.

    try:
        found = psutil.Process(pid)
        return None if found.status() == psutil.STATUS_ZOMBIE else int(found.create_time() * 1000)
    except psutil.Error:
        return None


@functools.cache
def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - asked once


@functools.cache
def boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@functools.cache
def host() -> str:
    return platform.node()
