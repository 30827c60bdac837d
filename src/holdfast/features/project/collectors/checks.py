"""Gap rules of the user's own: commands from trusted settings, run beside everything else."""

import os
from collections.abc import Iterable, Iterator

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.features.project.collectors.recent import recent_projects
from holdfast.features.project.model import empty, project_ref, said
from holdfast.features.project.settings import DEFAULTS, Check

SHELL = "/bin/sh"


def run_checks(call: JobCall) -> list[Event]:
    """Of one project after a change, or by schedule of all that have some and are due."""
    named = call.job.payload.get("project")
    roots = [str(named)] if named else recent_projects(call.reader, call.now)
    return [event for root in roots for event in _of(root, call, everything=bool(named))]


def _of(root: str, call: JobCall, *, everything: bool) -> Iterator[Event]:
    checks = (call.settings(root) or DEFAULTS).checks
    known = (call.reader.state(project_ref(root)) or empty(root))["checks"]
    for name, check in checks.items():
        if call.cancelled():
            return
        last = _last_run(root, name)
        if everything or call.now - last >= check.every * 1000:
            _RAN[(root, name)] = call.now
            yield from _changed(root, name, check, call, known, list(checks))


_RAN: dict[tuple[str, str], int] = {}
"""When each was last run by this daemon. Not in the log: a run that changed nothing is no news."""


def _last_run(root: str, name: str) -> int:
    return _RAN.get((root, name), 0)


def _changed(root: str, name: str, check: Check, call: JobCall, known: dict, names: Iterable[str]) -> Iterator[Event]:
    ran = call.run([SHELL, "-c", check.command], cwd=root, env=dict(os.environ), timeout=check.timeout)
    told = {"ok": ran.code == check.exit_code, "exit_code": ran.code, "rule": check.plain()}
    if known.get(name) != told:
        yield said("project.checked", root, call.now, name=name, names=list(names), **told)
