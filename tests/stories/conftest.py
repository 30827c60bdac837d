"""After each story the documents that its daemon left are compared with its log, replayed in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def replayed(tmp_path: Path) -> Iterator[None]:
    """Set up before any world, and so torn down when the last daemon is gone."""
    yield
    if databases := [str(path) for path in sorted(tmp_path.rglob("state/holdfast.db"))]:
        command = [sys.executable, "-m", "tests.replay", *databases]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
