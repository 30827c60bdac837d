"""Health of Holdfast, for the health page and the API."""

import os
import time
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.daemon.control import resident_bytes
from holdfast.doors.web.view_client import ViewClient

JOBS_SHOWN = 50
FINDINGS_KEPT_S = 10.0


def collect_health(client: ViewClient) -> dict[str, Any]:
    reader = client.reader()
    return {
        "daemon": client.status(),
        "web": {"pid": os.getpid(), "memory_bytes": resident_bytes()},
        "counts": reader.counts(),
        "jobs": reader.jobs(JOBS_SHOWN),
        "findings": findings(),
        "agents": agents(),
    }


class _Kept:
    """Caches checks of many files between views. Pages repair nothing."""

    def __init__(self, look: Callable[[], list[dict[str, Any]]]) -> None:
        self._look = look
        self._until = 0.0
        self._found: list[dict[str, Any]] = []

    def __call__(self) -> list[dict[str, Any]]:
        if time.monotonic() > self._until:
            self._found = self._look()
            self._until = time.monotonic() + FINDINGS_KEPT_S
        return self._found


def _run_doctor_checks() -> list[dict[str, Any]]:
    from holdfast.setup.doctor.checks import run_checks

    return [{"problem": one.problem, "mend": one.mend} for one in run_checks()]


def _look_at_agents() -> list[dict[str, Any]]:
    from holdfast.setup.doctor.readiness import look_at_agents

    return [{**msgspec.to_builtins(one), "ready": one.ready} for one in look_at_agents()]


findings = _Kept(_run_doctor_checks)
agents = _Kept(_look_at_agents)
