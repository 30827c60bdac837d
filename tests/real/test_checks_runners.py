"""Real runners on small projects: pass, fail, nothing collected, interrupted, and the verdict on each."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.checks import CheckKind
from holdfast.features.checks.judge import judge_command

pytestmark = pytest.mark.real

PYTHON = Path(sys.executable).parent
UNIT = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, {n})\n"
NODE = "const test = require('node:test');\nconst assert = require('node:assert');\ntest('a', () => assert.equal(1, {n}));\n"
RUST = "pub fn one() -> i32 {{ {n} }}\n#[test]\nfn a() {{ assert_eq!(one(), 1); }}\n"
FILES = {
    "pytest": {"test_a.py": "def test_a():\n    assert 1 == {n}\n"},
    "unittest": {"test_a.py": UNIT},
    "node": {"test/a.test.js": NODE, "package.json": '{{"scripts": {{"test": "node --test"}}}}'},
    "make": {"test_a.py": UNIT, "Makefile": "check:\n\tpython -m unittest -v\n"},
    "cargo": {"src/lib.rs": RUST, "Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n'},
}
CASES = [
    ("pytest", "pytest -q -p no:cacheprovider", 1, "passed"),
    ("pytest", "pytest -q -p no:cacheprovider", 2, "failed"),
    ("pytest", "pytest -q -k nothing; true", 1, "did_not_run"),
    ("pytest", "timeout 0.2 pytest -q; true", 1, None),
    ("unittest", "python -m unittest", 1, "passed"),
    ("unittest", "python -m unittest 2>&1 | tail -3", 2, "failed"),
    ("unittest", "python -m unittest -k nothing; true", 1, "did_not_run"),
    ("node", "node --test", 1, "passed"),
    ("node", "node --test | cat", 2, "failed"),
    ("node", "npm test", 1, "passed"),
    ("node", "npm test || true", 2, "failed"),
    ("make", "make check", 1, "passed"),
    ("make", "make -k check || true", 2, "failed"),
    ("make", "make -n check", 1, "did_not_run"),
    ("cargo", "cargo test --offline", 1, "passed"),
    ("cargo", "cargo test --offline; true", 2, "failed"),
    ("cargo", "cargo test --offline nothing", 1, "did_not_run"),
]


@pytest.mark.parametrize(("project", "command", "number", "verdict"), CASES)
def test_the_verdict_on_a_real_run(
    project: str, command: str, number: int, verdict: str | None, tmp_path: Path
) -> None:
    program = command.replace("timeout 0.2 ", "").split()[0]
    path = f"{PYTHON}:{Path(shutil.which('cargo') or '/').parent}:/usr/local/bin:/usr/bin:/bin"
    if shutil.which(program, path=path) is None:
        pytest.skip(f"{program} is not installed")
    for name, text in FILES[project].items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(n=number))
    home = Path(shutil.which("cargo") or "/a/b/c").parents[2]
    environment = {
        "PATH": path,
        "HOME": str(home),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CARGO_TARGET_DIR": str(tmp_path / "target"),
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    judged = judge_command(command, ".", done.returncode, done.stdout, done.stderr)
    verdicts = {str(check.verdict) for check in judged.checks if check.kind is CheckKind.TEST}
    assert verdicts == ({verdict} if verdict else {"unknown"}) or (
        verdict is None and verdicts <= {"passed", "did_not_run"}
    ), judged
    assert not judged.proves_tests_pass or number == 1
