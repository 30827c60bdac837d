"""Acquires and releases leases through the daemon."""

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from holdfast.client import run_command
from holdfast.core.caller import LEASE_OWNERS_VARIABLE
from holdfast.core.errors import CommandRefused, HoldfastError

TTL_S = 300.0
# Short at first, then longer: a lease that is free soon is granted soon.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.25
Pause = Callable[[float], object]
Ask = Callable[..., Any]


def acquire_lease(
    name: str, pid: int, wait: float | None, *, pause: Pause = time.sleep, ask: Ask = run_command, **how: Any
) -> dict[str, Any]:
    """Ask repeatedly until it is granted, refused, or time is up. What `pause` raises ends the waiting and the
    request."""
    waits = wait is None or wait > 0
    answer: dict[str, Any] = ask("project.acquire", lease=name, pid=pid, wait=waits, within=leases_held_above(), **how)
    deadline = None if wait is None else time.monotonic() + wait
    seconds = FIRST_PAUSE_S
    try:
        while answer["answer"] == "waiting" and (deadline is None or time.monotonic() < deadline):
            pause(seconds)
            seconds = min(seconds * 1.5, LONGEST_PAUSE_S)
            answer |= ask("project.tend", lease=name, request=answer["request"])
    except BaseException:
        # Also on Ctrl-C: a request left in line would block others.
        release_lease(name, answer["owner"])
        raise
    if answer["answer"] == "waiting":
        release_lease(name, answer["owner"])
        return {**answer, "answer": "busy", "why": f"still held by others after {wait:g} s"}
    if answer["answer"] == "refused":
        raise CommandRefused(answer["why"])
    return answer


def leases_held_above() -> list[str]:
    """The leases this command runs under: they wait for it, so it must not wait for them."""
    return os.environ.get(LEASE_OWNERS_VARIABLE, "").split()


def release_lease(name: str, owner: str) -> None:
    with contextlib.suppress(HoldfastError):
        run_command("project.release", lease=name, owner=owner)
