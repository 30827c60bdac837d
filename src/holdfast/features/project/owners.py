"""Who owns a lease: a process, told apart by its start time and the boot it belongs to (C5, D6)."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.machine import boot, host, look


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
    try:
        start = started(entry["pid"])
    except OSError:
        return ""  # The kernel would not say.
    if start is None:
        return f"process {entry['pid']} is gone"
    return f"process {entry['pid']} is another one now" if start != entry["start"] else ""


def started(pid: int) -> int | None:
    """When it was started, in the kernel's own count."""
    found = look(pid)
    return found.start if found else None
