"""Leases as tools. Who holds one is a process: over stdio it is the agent that started us, over HTTP it must say which."""

import os
from collections.abc import Callable

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.lease_client import TTL_S, acquire_lease
from holdfast.mcp.told import told

LONGEST_WAIT_S = 20.0
Tool = Callable[..., str]


def lease_tools(*, alone: bool) -> tuple[Tool, ...]:
    """`alone`: one agent started us for itself."""

    def owner(pid: int) -> int:
        if not pid and not alone:
            raise CommandRefused("say which process holds it", fix="Give `pid`.")
        return pid or os.getppid()

    def lease_acquire(
        name: str,
        wait_seconds: float = 0,
        ttl_seconds: float = TTL_S,
        shared: bool = False,
        why: str = "",
        pid: int = 0,
    ) -> str:
        """Hold a shared thing (a database, a repository, a port) while you work on it; others wait in line. `answer` is
        granted or busy. Give it back with lease_release. `pid`: the process that holds it; needed over HTTP."""
        wait = max(0.0, min(wait_seconds, LONGEST_WAIT_S))
        how = {"exactly": bool(pid), "shared": shared, "ttl": ttl_seconds, "why": why}
        return told(lambda: acquire_lease(name, owner(pid), wait, **how))

    def lease_release(name: str, pid: int = 0) -> str:
        """Give a lease back."""
        return told(lambda: client.command("project.release", lease=name, pid=owner(pid), exactly=bool(pid)))

    return lease_acquire, lease_release
