"""kill -9 of an index run at random points; after each, the next run makes what a first one would make."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from holdfast.analysis.search.index import claim
from tests.analysis.search.tree import Tree
from tests.kit import wait_until

FULL = 100
WORKER = [sys.executable, "-m", "holdfast.analysis.search.worker"]
MANY, FEW = 400, 60
"""Files. From 300 on a run has several hands."""


def run(folder: Path, size: int) -> str:
    chance = random.Random(size)
    tree = Tree(folder / "project", folder / "state")
    tree.write({_name(n): _text(chance) for n in range(MANY if size >= FULL else FEW)})
    took = _timed(tree)
    for number in range(size):
        _change(tree, chance, number)
        rebuild = chance.random() < 0.5
        _killed(tree, chance.random() * took * (1.1 if rebuild else 0.6), rebuild)
        if tree.place.current():
            tree.ask("a number")
        assert tree.index().status == "completed"
        assert tree.content() == _fresh(tree, folder), f"kill {number}: not what a first run makes"
    left = sorted(p.name for p in tree.place.folder.glob("*.db"))
    assert left == [f"{tree.place.current()}.db"], left
    return f"{size} kills, each followed by an index equal to a fresh one"


def _name(number: int) -> str:
    return f"p{number % 7}/m{number}.py"


def _text(chance: random.Random) -> str:
    return "".join(
        f"def f{chance.randrange(999)}():\n    return {chance.random()}\n\n\n" for _ in range(chance.randrange(6))
    )


def _change(tree: Tree, chance: random.Random, number: int) -> None:
    for _ in range(chance.randrange(10)):
        tree.write({_name(chance.randrange(MANY)): _text(chance)})
    gone = tree.root / _name(chance.randrange(MANY))
    gone.unlink(missing_ok=True)
    moved = tree.root / _name(chance.randrange(MANY))
    if moved.exists():
        moved.replace(tree.root / f"moved{number}.py")


def _timed(tree: Tree) -> float:
    began = time.monotonic()
    _finished(tree)
    return time.monotonic() - began


def _finished(tree: Tree) -> None:
    subprocess.run(WORKER, input=msgspec.json.encode(tree.task()), capture_output=True, check=True)


def _killed(tree: Tree, after: float, rebuild: bool) -> None:
    """With all its hands, as the daemon's guard does it."""
    process = subprocess.Popen(
        WORKER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdin
    process.stdin.write(msgspec.json.encode(tree.task(rebuild=rebuild)))
    process.stdin.close()
    time.sleep(after)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: claim.claim_holder(tree.place.claim) is None, "the claim is free at once", 2.0)


def _fresh(tree: Tree, folder: Path) -> set:
    with tempfile.TemporaryDirectory(dir=folder) as state:
        other = Tree(tree.root, Path(state), repository=False)
        assert other.index().status == "completed"
        return other.content()
