"""Runs every form of `executed_forms` for real and records exit status, output and which tests were executed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.features.checks.executed_forms import HIDDEN, NOTHING, PROOF

RECORDED = Path(__file__).parents[2] / "corpus" / "executed_forms.jsonl"
PASSING = "def test_a():\n    assert 1\n\ndef test_b():\n    assert 1\n\ndef test_c():\n    assert 1\n"
PLUGIN = """
import os
def pytest_runtest_logreport(report):
    if report.when == "call":
        with open(os.environ["HF_LOG"], "a") as log:
            log.write(report.outcome + "\\n")
"""


class Recorded(msgspec.Struct):
    label: str
    project: str
    command: str
    exit_code: int
    stdout: str
    stderr: str
    outcomes: list[str]


def make_project(folder: Path, passes: bool) -> Path:
    root = folder / ("pass" if passes else "fail")
    (root / "tests").mkdir(parents=True)
    (root / "fakebin").mkdir()
    (root / "tests" / "test_it.py").write_text(PASSING if passes else PASSING.replace("assert 1", "assert 0", 1))
    (root / "conftest.py").write_text(PLUGIN)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "README.md").write_text("A project.\n")
    (root / "old.log").write_text("...      [100%]\n3 passed in 0.01s\n")
    (root / "fake.sh").write_text("pytest() { cat old.log; }\n")
    fake = root / "fakebin" / "pytest"
    fake.write_text("#!/bin/sh\ncat old.log\n")
    fake.chmod(0o755)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(
        [
            "git",
            "-C",
            str(root),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.c",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
        check=True,
    )
    return root


def run_form(label: str, command: str, root: Path) -> Recorded:
    log = root.parent / f"{root.name}.log"
    log.unlink(missing_ok=True)
    tools = os.path.dirname(sys.executable)
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "USER") if name in os.environ}
    environment = {**kept, "PATH": f"{tools}:/usr/bin:/bin", "HF_LOG": str(log), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
    )
    out, err = (
        text.decode(errors="replace").replace(str(root), "/repo").replace(tools, "/usr/bin")
        for text in (done.stdout, done.stderr)
    )
    outcomes = log.read_text().split() if log.exists() else []
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Recorded(label, root.name, command, code, out[-4000:], err[-4000:], outcomes)


def main() -> None:
    groups = {"proof": PROOF, "hidden": HIDDEN, "nothing": NOTHING}
    with tempfile.TemporaryDirectory() as folder, RECORDED.open("wb") as file:
        roots = [make_project(Path(folder), passes) for passes in (True, False)]
        for label, commands in groups.items():
            for command in commands:
                for root in roots if label != "nothing" else roots[1:]:
                    file.write(msgspec.json.encode(run_form(label, command, root)) + b"\n")
                    file.flush()


if __name__ == "__main__":
    main()
