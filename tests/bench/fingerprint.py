"""How long a look at the content takes: Django's sources with 50 changed files, one of them written just before each."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.core.fingerprint import Fingerprinter
from holdfast.core.job import run_briefly
from tests.bench.figures import fact, figure, heading, p50, percentile
from tests.bench.reindex import unpack_or_say
from tests.kit import git

LOOKS = 200
CHANGED = 50


def main() -> None:
    heading("A look at the content: Django's sources, 50 changed files")
    with tempfile.TemporaryDirectory() as folder:
        root = unpack_or_say(Path(folder))
        if root is None:
            return
        tracked = git(root, "ls-files").split()
        sources = [root / path for path in tracked if path.endswith(".py")]
        changed = sources[:: len(sources) // CHANGED][:CHANGED]
        for path in changed:
            _append(path, 0)
        looks = _look_often(root, changed)
        statuses = _times_of(20, lambda: subprocess.run(["git", "status"], cwd=root, capture_output=True, check=True))
    fact("files", str(len(tracked)))
    figure("p50", p50(looks), 30, unit="ms")
    figure("p95", percentile(looks, 0.95), 30, unit="ms")
    figure("p50 to git status", p50(looks) / p50(statuses), 1)


def _look_often(root: Path, changed: list[Path]) -> list[float]:
    fingerprinter = Fingerprinter(run_briefly, os.environ)
    fingerprinter.take_fingerprint(str(root), budget_s=10)
    # What the daemon does beside its answers, after a look that needed git.
    fingerprinter.remember_folders()
    looks, before = [], ""
    for number in range(LOOKS):
        _append(changed[number % len(changed)], number + 1)
        began = time.perf_counter()
        taken = fingerprinter.take_fingerprint(str(root), budget_s=10)
        looks.append((time.perf_counter() - began) * 1000)
        assert taken.content not in ("", before), f"look {number} did not see the change: {taken}"
        before = taken.content
    return looks


def _append(path: Path, number: int) -> None:
    with path.open("a") as file:
        file.write(f"# {number}\n")


def _times_of(times: int, work: Callable[[], object]) -> list[float]:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return took
