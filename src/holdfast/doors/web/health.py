"""Health of Holdfast, for the health page and the API."""

import os
from typing import Any

import msgspec

from holdfast.daemon.control import resident_bytes
from holdfast.doors.web.cached import Cached
from holdfast.doors.web.view_client import ViewClient

JOBS_SHOWN = 50


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


def _run_doctor_checks() -> list[dict[str, Any]]:
    from holdfast.setup.doctor.checks import run_checks

    return [{"problem": one.problem, "fix": one.fix} for one in run_checks(replay=False)]


def _look_at_agents() -> list[dict[str, Any]]:
    from holdfast.setup.doctor.readiness import look_at_agents

    return [{**msgspec.to_builtins(one), "ready": one.ready} for one in look_at_agents()]


# Many files are read for these.
findings = Cached(_run_doctor_checks)
agents = Cached(_look_at_agents)
