"""What a user adds counts wherever something is cleaned, in child processes too."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.analysis import redact
from holdfast.app import open_settings

TEXT = b"badge_number: 4711-x\nkeep ORD-99887766554433 and PROJ-1234"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = redact._Configured.read
    monkeypatch.setenv("HOLDFAST_CONFIG", str(tmp_path))
    (tmp_path / "settings.yaml").write_text(
        'redact:\n  names: [badge_number]\n  patterns: ["PROJ-[0-9]+"]\n  keep: ["ORD-99887766554433"]\n'
    )
    open_settings()
    yield
    redact._Configured.read = before


@pytest.mark.usefixtures("settings")
def test_rules_of_the_settings_count_everywhere() -> None:
    clean, count = redact.redact(TEXT)
    assert count == 2
    assert b"4711-x" not in clean and b"PROJ-1234" not in clean and b"ORD-99887766554433" in clean


@pytest.mark.usefixtures("settings")
def test_a_child_process_cleans_by_the_same_rules() -> None:
    program = "import sys; from holdfast.analysis.redact import redact; sys.stdout.buffer.write(redact(sys.stdin.buffer.read())[0])"
    child = subprocess.run(
        [sys.executable, "-c", program],
        input=TEXT,
        env=os.environ | redact.rules_environment(),
        capture_output=True,
        check=True,
    )
    assert child.stdout == redact.redact(TEXT)[0]
