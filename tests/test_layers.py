"""Who may import whom is checked, not hoped for: a forbidden import that is planted is found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def contracts(folder: Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [linter, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder / "src"), "HOME": str(folder)},
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.npz", "*.bin"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("core/ids.py", "import holdfast.doors.web"),
        ("daemon/run.py", "import holdfast_team.core"),
        ("features/gates/__init__.py", "from holdfast.features import project"),
        ("doors/mcp/tools.py", "from holdfast.doors.cli import render"),
    ],
)
def test_a_planted_import_breaks_a_contract(copy: Path, file: str, line: str) -> None:
    target = copy / "src" / "holdfast" / file
    target.write_text(f"{target.read_text()}\n{line}\n")
    done = contracts(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert " 0 broken" not in done.stdout


def test_as_it_is_no_contract_is_broken(copy: Path) -> None:
    done = contracts(copy)
    assert done.returncode == 0, done.stdout + done.stderr
