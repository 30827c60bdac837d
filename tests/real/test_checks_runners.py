"""Real runners on small projects: pass, fail, nothing collected, interrupted, and the verdict on each."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from holdfast.core.checks import CheckKind, Verdict
from holdfast.features.checks.judge import Judgement, judge_command

from .programs import ProgramUnavailable, program

pytestmark = pytest.mark.real

PYTHON = Path(sys.executable).parent


class RunnerProject(msgspec.Struct, frozen=True, kw_only=True):
    """`{n}` in a file is 1 where the test is to pass; `{pause}` is how many seconds it takes."""

    files: dict[str, str]
    command: str
    nothing: str
    """How it is asked for tests that are not there."""
    package: str = ""
    """From npm."""
    slow: bool = True
    """Its test can take its time, so that it can be interrupted."""


UNIT = (
    "import time, unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n"
    "        time.sleep({pause})\n        self.assertEqual(1, {n})\n"
)
JS_WAIT = "await new Promise(done => setTimeout(done, {pause} * 1000)); if (1 !== {n}) throw new Error('no');"
PROJECTS = {
    "pytest": RunnerProject(
        files={"test_a.py": "import time\ndef test_a():\n    time.sleep({pause})\n    assert 1 == {n}\n"},
        command="pytest -q -p no:cacheprovider", nothing="pytest -q -k absent",
    ),
    "unittest": RunnerProject(
        files={"test_a.py": UNIT}, command="python -m unittest", nothing="python -m unittest -k absent"
    ),
    "node": RunnerProject(
        files={"a.test.js": "require('node:test')('a', async () => {{ " + JS_WAIT + " }});\n"},
        command="node --test", nothing="node --test absent.test.js",
    ),
    "jest": RunnerProject(
        files={"a.test.js": "test('a', async () => {{ " + JS_WAIT + " }}, 60000);\n", "package.json": "{{}}"},
        command="jest", nothing="jest absent", package="jest",
    ),
    "vitest": RunnerProject(
        files={"a.test.mjs": "import {{ test }} from 'vitest';\ntest('a', async () => {{ " + JS_WAIT + " }}, 60000);\n"},
        command="vitest run", nothing="vitest run absent", package="vitest",
    ),
    "mocha": RunnerProject(
        files={"test/a.js": "it('a', async function () {{ this.timeout(60000); " + JS_WAIT + " }});\n"},
        command="mocha", nothing="mocha -g absent", package="mocha",
    ),
    "go": RunnerProject(
        files={
            "go.mod": "module x\n\ngo 1.19\n",
            "a_test.go": 'package x\n\nimport (\n\t"testing"\n\t"time"\n)\n\nfunc TestA(t *testing.T) {{\n'
            "\ttime.Sleep({pause} * time.Second)\n\tif {n} != 1 {{\n\t\tt.Fail()\n\t}}\n}}\n",
        },
        command="go test ./...", nothing="go test -run Absent ./...",
    ),
    "cargo": RunnerProject(
        files={
            "Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "#[test]\nfn a() {{ assert_eq!({n}, 1); }}\n",
        },
        command="cargo test --offline", nothing="cargo test --offline absent", slow=False,
    ),
    "bats": RunnerProject(
        files={"test/a.bats": '@test "a" {{ sleep {pause}; [ {n} = 1 ]; }}\n'},
        command="bats test", nothing="bats -f absent test",
    ),
    "rspec": RunnerProject(
        files={"spec/a_spec.rb": "RSpec.describe('x') {{ it('a') {{ sleep {pause}; expect({n}).to eq(1) }} }}\n"},
        command="rspec", nothing="rspec -e absent",
    ),
    "phpunit": RunnerProject(
        files={
            "tests/ATest.php": "<?php\nclass ATest extends PHPUnit\\Framework\\TestCase {{\n"
            "  function testA(): void {{ sleep({pause}); $this->assertSame({n}, 1); }}\n}}\n"
        },
        command="phpunit tests", nothing="phpunit --filter absent tests",
    ),
}  # fmt: skip
LINTERS = {
    "ruff": ({"a.py": "import os\n"}, {"a.py": "a = 1\n"}, "ruff check --no-cache .", CheckKind.LINT),
    "mypy": ({"a.py": "a: int = ''\n"}, {"a.py": "a: int = 1\n"}, "mypy --no-incremental a.py", CheckKind.TYPES),
    "shellcheck": ({"a.sh": "#!/bin/sh\nrm $1\n"}, {"a.sh": "#!/bin/sh\nexit 0\n"}, "shellcheck a.sh", CheckKind.LINT),
}


def write_files(folder: Path, files: dict[str, str], n: int = 1, pause: int = 0) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(n=n, pause=pause))


def search_path(wanted: str, package: str = "") -> str:
    try:
        extra = f"{program(package).parent}:" if package else ""
    except ProgramUnavailable as reason:
        pytest.skip(str(reason))
    path = f"{extra}{PYTHON}:{Path(shutil.which('cargo') or '/').parent}:/usr/local/bin:/usr/bin:/bin"
    if shutil.which(wanted, path=path) is None:
        pytest.skip(f"{wanted} is not installed")
    return path


def run(folder: Path, command: str, path: str) -> Judgement:
    environment = {
        "PATH": path,
        "HOME": str(Path(shutil.which("cargo") or "/a/b/c").parents[2]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CARGO_TARGET_DIR": str(folder / "target"),
        "LANG": "C.UTF-8",
        "CI": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
        timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return judge_command(command, ".", done.returncode, done.stdout, done.stderr)


def verdicts(judged: Judgement) -> set[Verdict]:
    return {check.verdict for check in judged.checks if check.kind is CheckKind.TEST}


@pytest.mark.parametrize("name", PROJECTS)
def test_pass_fail_nothing_and_interrupted(name: str, tmp_path: Path) -> None:
    project = PROJECTS[name]
    path = search_path(project.command.split()[0], project.package)
    if project.package:
        (tmp_path / "node_modules").symlink_to(program(project.package).parents[1])
    write_files(tmp_path, project.files)
    passed = run(tmp_path, project.command, path)
    assert verdicts(passed) == {Verdict.PASSED} and passed.proves_tests_pass, passed
    nothing = run(tmp_path, f"{project.nothing}; true", path)
    assert verdicts(nothing) <= {Verdict.DID_NOT_RUN, Verdict.UNKNOWN}, nothing
    write_files(tmp_path, project.files, n=2)
    failed = run(tmp_path, f"{project.command} 2>&1 || true", path)
    assert verdicts(failed) == {Verdict.FAILED}, failed
    if project.slow:
        write_files(tmp_path, project.files, pause=30)
        cut = run(tmp_path, f"timeout 2 {project.command}", path)
        assert verdicts(cut) <= {Verdict.UNKNOWN, Verdict.DID_NOT_RUN} and verdicts(cut), cut


@pytest.mark.parametrize("name", LINTERS)
def test_linters_and_type_checkers(name: str, tmp_path: Path) -> None:
    bad, good, command, kind = LINTERS[name]
    path = search_path(command.split()[0])
    for files, verdict in ((bad, Verdict.FAILED), (good, Verdict.PASSED)):
        write_files(tmp_path, files)
        (check,) = run(tmp_path, command, path).checks
        assert (check.kind, check.verdict) == (kind, verdict)


def test_make_and_npm_scripts_are_read_from_the_project(tmp_path: Path) -> None:
    write_files(tmp_path, PROJECTS["unittest"].files)
    (tmp_path / "Makefile").write_text("check:\n\tpython -m unittest -v\n")
    path = search_path("make")
    assert verdicts(run(tmp_path, "make check", path)) == {Verdict.PASSED}
    assert verdicts(run(tmp_path, "make -n check", path)) == {Verdict.DID_NOT_RUN}
    write_files(tmp_path, PROJECTS["unittest"].files, n=2)
    assert verdicts(run(tmp_path, "make -k check || true", path)) == {Verdict.FAILED}
