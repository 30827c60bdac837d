"""Commands that are really run: no verdict may contradict what happened, and what shows must be seen."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.features.checks.judge import Judgement, judge_command
from tests.features.checks.executed_forms import HIDDEN, NOTHING, PROOF

RECORDER = """
import os
def pytest_runtest_logreport(report):
    if report.when == "call":
        with open(os.environ["HF_LOG"], "a") as log:
            log.write(report.outcome + "\\n")
"""
PASSING = "def test_a():\n    assert 1\n\ndef test_b():\n    assert 1\n\ndef test_c():\n    assert 1\n"


def _project(folder: Path, passes: bool) -> Path:
    root = folder / ("pass" if passes else "fail")
    (root / "tests").mkdir(parents=True)
    (root / "fakebin").mkdir()
    (root / "tests" / "test_it.py").write_text(PASSING if passes else PASSING.replace("assert 1", "assert 0", 1))
    (root / "conftest.py").write_text(RECORDER)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "README.md").write_text("A project.\n")
    (root / "old.log").write_text("...      [100%]\n3 passed in 0.01s\n")
    (root / "fake.sh").write_text("pytest() { cat old.log; }\n")
    fake = root / "fakebin" / "pytest"
    fake.write_text("#!/bin/sh\ncat old.log\n")
    fake.chmod(0o755)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    folder = tmp_path_factory.mktemp("forms")
    return {passes: _project(folder, passes) for passes in (True, False)}


def _run(command: str, root: Path) -> tuple[Judgement, list[str]]:
    log = root.parent / "outcomes.log"
    log.unlink(missing_ok=True)
    tools = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HF_LOG": str(log), "PYTEST_ADDOPTS": "-p no:xdist"}
    for name in [n for n in environment if n.startswith(("PYTEST_XDIST", "PYTEST_CURRENT"))]:
        del environment[name]
    done = subprocess.run(["bash", "-c", command], cwd=root, env=environment, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    outcomes = log.read_text().split() if log.exists() else []
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return judge_command(command, ".", code, out, err), outcomes


def _verdicts(judgement: Judgement) -> set[str]:
    return {str(check.verdict) for check in judgement.checks if check.kind == "test"} & {"passed", "failed"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("passes", [True, False], ids=["pass", "fail"])
@pytest.mark.parametrize("command", PROOF)
def test_what_shows_is_seen(command: str, passes: bool, projects: dict[bool, Path]) -> None:
    judgement, outcomes = _run(command, projects[passes])
    assert outcomes, "the form itself is wrong: no test ran"
    assert _verdicts(judgement) == ({"passed"} if passes else {"failed"}), judgement
    assert judgement.proves_tests_pass is passes, judgement


@pytest.mark.parametrize("passes", [True, False], ids=["pass", "fail"])
@pytest.mark.parametrize("command", HIDDEN)
def test_what_does_not_show_is_not_claimed(command: str, passes: bool, projects: dict[bool, Path]) -> None:
    judgement, _outcomes = _run(command, projects[passes])
    assert not judgement.proves_tests_pass, judgement
    assert not _verdicts(judgement), judgement


@pytest.mark.parametrize("command", NOTHING)
def test_what_did_not_run_proves_nothing(command: str, projects: dict[bool, Path]) -> None:
    judgement, outcomes = _run(command, projects[False])
    assert not outcomes, "the form itself is wrong: tests ran"
    assert not judgement.proves_tests_pass, judgement
    assert not _verdicts(judgement), judgement
