"""A real repository, and a runner of programs that counts what it ran."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.job import Ran
from tests.kit import git


class Runner:
    """Runs programs plainly and counts them."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def __call__(
        self, argv: Any, *, cwd: Any = None, env: Any = None, stdin: bytes = b"", timeout: float = 60, nice: int = 0
    ) -> Ran:
        self.ran.append([word for word in argv[1:] if not word.startswith("-")])
        done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run() -> Runner:
    return Runner()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("x = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first one")
    return folder
