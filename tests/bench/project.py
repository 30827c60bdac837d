"""The feature project: what a person waits for, what a look costs, how fast the document comes back from the log."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.app import build_app
from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.job import ClaimedJob
from holdfast.core.replay import Rebuild, document_at
from holdfast.daemon import children
from holdfast.daemon.files import put_file
from holdfast.features.project import FEATURE
from holdfast.features.project.jobs.refresh import refresh
from holdfast.features.project.state import project_ref
from tests.bench.figures import fact, figure, heading, p50
from tests.kit import BIN, World, git

FILES = int(os.environ.get("HOLDFAST_BENCH_FILES", "50000"))
EVENTS = int(os.environ.get("HOLDFAST_BENCH_PROJECT_EVENTS", "100000"))
ROUNDS = 15


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        world = World(Path(folder))
        heading(f"Project: a repository of {FILES:,} files")
        _repository(world.project)
        world.start()
        try:
            _show(world)
        finally:
            world.close()
        _look(world)
        heading(f"Project: rebuilt from {EVENTS:,} events")
        _rebuild(World(Path(folder) / "log"))


def _repository(folder: Path) -> None:
    for n in range(FILES // 100):
        below = folder / f"part{n // 50}" / f"pkg{n}"
        below.mkdir(parents=True)
        for m in range(100):
            (below / f"m{m}.py").write_text(f"x = {n * m}\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all of it")


def _show(world: World) -> None:
    """As a person sees it: from the key press to the document."""
    world.cli("state", "refresh")
    runs: dict[str, list[float]] = {"--version": [], "state show": []}
    for _ in range(ROUNDS):
        for words, took in runs.items():
            took.append(_timed(lambda words=words: _holdfast(world, *words.split())))  # type: ignore[misc]
    ratio = p50([a / b for a, b in zip(runs["state show"], runs["--version"], strict=True)])
    figure("holdfast state show, to holdfast --version", ratio, 3.0, note=f"{p50(runs['state show']) * 1000:.0f} ms")


def _holdfast(world: World, *words: str) -> None:
    subprocess.run([BIN / "holdfast", *words], env=world.env, cwd=world.project, capture_output=True, check=True)


def _look(world: World) -> None:
    """One look as the daemon's worker makes it, against one `git status` as a person types it."""
    app = build_app(world.paths)
    reader = app.store.reader()
    root = str(world.project)
    call = JobCall(
        job=ClaimedJob(id=1, kind="project.refresh", dedupe=root, attempts=1, payload={"project": root}),
        reader=reader, settings=lambda _project: None, now=int(time.time() * 1000), state_dir=world.paths.state,
        cancelled=lambda: False, run=children.run_child, put=put_file,
    )  # fmt: skip
    env = {**os.environ, "HOME": str(world.home)}
    works = {
        "plain": lambda: subprocess.run(["git", "status"], cwd=root, env=env, capture_output=True, check=True),
        "look": lambda: refresh(call),
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for n in range(ROUNDS):
        (world.project / "part0" / "pkg0" / "m0.py").write_text(f"x = {n}\n")
        for name in sorted(works, reverse=bool(n % 2)):
            took[name].append(_cost(works[name]))
    cpu, wall = (p50([a[k] / b[k] for a, b in zip(took["look"], took["plain"], strict=True)]) for k in (0, 1))
    note = f"{p50([t[0] for t in took['look']]) * 1000:.0f} ms of processor time"
    figure("one look, to one git status", cpu, 1.3, note=note)
    fact("the same by the clock, on this machine as busy as it is", f"{wall:.2f} ×")
    reader.close()
    app.store.close()


def _cost(work: Callable[[], Any]) -> tuple[float, float]:
    """(processor time of it and of every program it ran, time by the clock)"""
    before, began = os.times(), time.perf_counter()
    work()
    after = os.times()
    return sum(after[:4]) - sum(before[:4]), time.perf_counter() - began


def _rebuild(world: World) -> None:
    app = build_app(world.paths.prepare())
    for start in range(0, EVENTS, 2000):
        app.engine.handle([_event(n) for n in range(start, min(EVENTS, start + 2000))])
    reader = app.store.reader()
    work = Rebuild([FEATURE], reader)
    fact("events in the log, with what follows from them", f"{reader.head():,}")
    cpu, wall = _cost(work.read)
    figure("all documents of the feature", wall, 5.0, unit="s", note=f"{cpu:.1f} s of processor time")
    one = _timed(lambda: document_at(FEATURE, reader, project_ref("/p/0"), reader.head()))
    fact("one of ten projects, as it was at a moment", f"{one:.2f} s")
    reader.close()
    app.store.close()


def _event(n: int) -> Event:
    """A day's mixture: edits, commands, tests, turns; ten projects."""
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("prompt.submitted", {"prompt": "go on"}),
        ("tool.started", {"action": "edit", "paths": [f"/p/{n % 10}/src/m{n % 97}.py"]}),
        ("tool.finished", {"action": "edit", "paths": [f"/p/{n % 10}/src/m{n % 97}.py"]}),
        ("tool.finished", {"action": "shell", "command": "ls -la", "exit_code": 0, "output": "x"}),
        (
            "tool.finished",
            {"action": "shell", "command": "make docs && pytest -q", "exit_code": 0, "output": "3 passed in 1s"},
        ),
        ("tool.finished", {"action": "read", "paths": ["/x"]}),
        ("tool.finished", {"action": "shell", "command": "git commit -m x", "exit_code": 0}),
        ("turn.ended", {}),
    ]
    kind, data = kinds[n // 10 % len(kinds)]
    return Event(
        key=delivery_key(), kind=kind, at=1_700_000_000_000 + n * 500, session=f"s{n % 10}-{n // 5000}",
        agent="claude-code", project=f"/p/{n % 10}", data={"pid": 7, **data},
    )  # fmt: skip


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
