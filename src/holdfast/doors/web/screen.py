"""The shape of a screen: where it is, which template shows it, and which views it asks; and what more than one shows: how Holdfast is."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.core.ports import Reader
from holdfast.daemon.control import resident_bytes
from holdfast.doors.web.view_client import ViewClient

# How Holdfast is, for the health screen and the API: the daemon about itself, the jobs, and what doctor would say.

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
    """What looks at many files, kept for a while: not at every view. Nothing is repaired from a page."""

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


@dataclass(frozen=True)
class Visit:
    """What a screen is given: what was asked for, and how to ask the features."""

    client: ViewClient
    query: Mapping[str, str]
    path: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> str:
        return self.query.get("project", "")

    def view(self, name: str, *, whose: str = "", of: str | None = None, **args: Any) -> Any:
        """One view of a feature. `of` is the project it is asked for (else the page's), `whose` the session."""
        return self.client.view(name, args, project=self.project if of is None else of, session=whose)

    def number(self, name: str, default: int = 0) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 17 else default

    @property
    def reader(self) -> Reader:
        return self.client.reader()


Page = Callable[[Visit], dict[str, Any]]
"""What the template is given. Raise a HoldfastError for what cannot be shown."""


@dataclass(frozen=True)
class Screen:
    name: str
    title: str
    path: str
    page: Page
    template: str = ""
    key: str = ""
    """`g` and this letter lead there; empty: it is not in the menu."""
    live: str = ""
    """Kinds of events after which the page is shown anew, by how they begin, e.g. "gate. decision."; "*" means all."""
    script: str = ""
    """A module of its own in static/, besides the core."""

    @property
    def file(self) -> str:
        return self.template or f"{self.name}.html"
