"""`holdfast data redact`: text out without its secrets, and what was removed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOKEN = "gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6"


def run(tmp_path: Path, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    command = [sys.executable, "-c", "from holdfast.doors.cli import main; main()", "redact", *args]
    return subprocess.run(command, input=given, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("from_file", [True, False])
def test_a_text_is_printed_without_its_secrets(tmp_path: Path, from_file: bool) -> None:
    text = f"use {TOKEN}\nplain\n"
    (tmp_path / "a.txt").write_text(text)
    done = run(tmp_path, str(tmp_path / "a.txt")) if from_file else run(tmp_path, "-", given=text)
    assert done.stdout == "use [redacted:github-token]\nplain\n"
    assert "1 × github-token" in done.stderr


def test_lines_of_json_say_what_was_removed(tmp_path: Path) -> None:
    given = "".join(json.dumps({"text": text}) + "\n" for text in (f"a {TOKEN}", "nothing here"))
    lines = [json.loads(line) for line in run(tmp_path, "--json", "-", given=given).stdout.splitlines()]
    assert lines == [
        {"text": "a [redacted:github-token]", "removed": [{"kind": "github-token"}]},
        {"text": "nothing here", "removed": []},
    ]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, str(tmp_path / "missing"))
    assert done.returncode == 1
    assert "missing" in done.stderr
    assert "line 1" in run(tmp_path, "--json", "-", given="no json\n").stderr
