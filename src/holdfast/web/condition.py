"""How Holdfast is, for the health screen and the API: the daemon about itself, the jobs, and what doctor would say."""

import os
import time
from collections.abc import Iterator
from typing import Any

from holdfast.daemon.control import resident_bytes
from holdfast.web.asking import Asking

JOBS_SHOWN = 50
FINDINGS_KEPT_S = 10.0


def condition(asking: Asking) -> dict[str, Any]:
    reader = asking.reader()
    return {
        "daemon": asking.status(),
        "web": {"pid": os.getpid(), "memory_bytes": resident_bytes()},
        "counts": reader.counts(),
        "jobs": reader.jobs(JOBS_SHOWN),
        "findings": findings(),
    }


class _Findings:
    """The same checks as `holdfast doctor`; nothing is mended from a page. They look at many files: not at every view."""

    def __init__(self) -> None:
        self._until = 0.0
        self._found: list[dict[str, str]] = []

    def __call__(self) -> list[dict[str, str]]:
        if time.monotonic() > self._until:
            self._found = list(_checked())
            self._until = time.monotonic() + FINDINGS_KEPT_S
        return self._found


def _checked() -> Iterator[dict[str, str]]:
    from holdfast.doctor.checks import run_checks

    yield from ({"problem": one.problem, "mend": one.mend} for one in run_checks())


findings = _Findings()
