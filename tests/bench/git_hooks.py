"""What git's own hooks cost a commit and a rebase, in a repository with a live session and in one nobody holds."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench.figures import fact, figure, heading, ms, p50
from tests.kit import World, git

COMMITS, REBASES, REBASED = 60, 7, 50
RULES = r"""
requirements:
  protected_branch: {type: guard, guard_type: protected_branch, protected_branches: [main]}
  tested:
    type: evidence
    command_pattern: 'git\s+push'
    evidence: {command: ['pytest*'], after_edit: 'src/**'}
"""


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        world = World(Path(folder))
        (world.root / "config").mkdir()
        (world.root / "config" / "settings.yaml").write_text(RULES)
        free = world.root / "free"
        free.mkdir()
        for place in (world.project, free):
            _prepare(place)
        world.start()
        try:
            world.cli("gate", "hooks", "on")
            world.session("bench").start()
            heading("Git hooks: a commit and a rebase, held and free")
            _compare("commit", COMMITS, 6.0, [(world.project, world), (free, world)], _commit)
            _compare(f"rebase of {REBASED}", REBASES, 800.0, [(world.project, world), (free, world)], _rebase)
        finally:
            world.close()


def _prepare(place: Path) -> None:
    git(place, "init", "-q", "-b", "main")
    git(place, "config", "user.email", "a@example.org")
    git(place, "config", "user.name", "A")
    git(place, "commit", "-q", "--allow-empty", "-m", "first")
    git(place, "checkout", "-q", "-b", "other")
    (place / "other.txt").write_text("other\n")
    git(place, "add", "other.txt")
    git(place, "commit", "-q", "-m", "other")
    git(place, "checkout", "-q", "-b", "topic", "main")


def _compare(name: str, rounds: int, most_ms: float, places: list[tuple[Path, World]], act) -> None:  # type: ignore[no-untyped-def]
    taken: list[list[int]] = [[], []]
    for number in range(rounds):
        for index in (0, 1) if number % 2 else (1, 0):
            taken[index].append(act(*places[index], number))
    held, free = p50(taken[0]), p50(taken[1])
    fact(f"{name}, held / free: p50", f"{ms(held)} / {ms(free)}")
    figure(f"{name}, ms more", (held - free) / 1e6, most_ms, unit="ms")


def _commit(place: Path, world: World, number: int) -> int:
    (place / "a.txt").write_text(f"{number}\n")
    _run(place, world, "add", "a.txt")
    return _run(place, world, "commit", "-qm", f"c{number}")


def _rebase(place: Path, world: World, number: int) -> int:
    _run(place, world, "checkout", "-q", "-B", f"work{number}", "main")
    for step in range(REBASED):
        (place / "b.txt").write_text(f"{step}\n")
        _run(place, world, "add", "b.txt")
        _run(place, world, "commit", "-qm", f"s{step}")
    return _run(place, world, "rebase", "-q", "other")


def _run(place: Path, world: World, *words: str) -> int:
    began = time.perf_counter_ns()
    subprocess.run(["git", *words], cwd=place, env=world.env, check=True, capture_output=True)
    return time.perf_counter_ns() - began
